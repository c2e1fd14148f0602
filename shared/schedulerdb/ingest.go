package schedulerdb

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/dispatch"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/nullable"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/emit"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/internal/gen"
)

// Ingest stores new jobs. A due job is inserted as dispatched if there is room and no other job is ready: then its row
// is written only once. Ingest returns the status of a job that is due later, and again the status of a job that it
// stored before.
func (s *Store) Ingest(ctx context.Context, created []jobevent.Created) (emit.Effects, error) {
	for _, job := range created {
		if err := checkCreated(job); err != nil {
			return emit.Effects{}, err
		}
	}
	var all emit.Effects
	for len(created) > 0 {
		n := partOf(created)
		var r result
		var found arrivalFacts
		ids := createdIDs(created[:n])
		err := s.step(ctx, &r, func(b *pgx.Batch) {
			queueLock(b, &found.ledger)
			named := membersNamed(ids)
			pgpool.QueueOne(b, &found.near, pgx.RowTo[bool], gen.CohortsNear, named.FromIDs, named.ToIDs)
			pgpool.QueueMany(b, &found.known, pgx.RowTo[uuid.UUID], gen.JobsKnown, ids)
			pgpool.QueueMany(b, &found.early, pgx.RowToStructByPos[gen.EarlyCommandsRow], gen.EarlyCommands, ids)
			pgpool.QueueMany(b, &found.workers, pgx.RowToStructByPos[gen.WorkersLiveRow], gen.WorkersLive, silentAfter)
		}, func(t step) (err error) {
			r, err = s.ingest(ctx, t, created[:n], found)
			return err
		})
		if err != nil {
			return emit.Effects{}, err
		}
		all.Runs, all.Jobs = append(all.Runs, r.Runs...), append(all.Jobs, r.Jobs...)
		created = created[n:]
	}
	return all, nil
}

// maxAfter bounds the dependencies of one transaction's jobs: the ledger is locked while they are looked up.
const maxAfter = 10_000

// partOf returns how many of the jobs go into the next transaction: as a rule all.
func partOf(created []jobevent.Created) int {
	waitsFor := 0
	for i := range created {
		if waitsFor += len(created[i].After); waitsFor > maxAfter && i > 0 {
			return i
		}
	}
	return len(created)
}

// arrivalFacts are the rows that decide how new jobs begin.
type arrivalFacts struct {
	ledger  gen.DispatchLockRow
	near    bool        // whether some may be members of cohorts
	known   []uuid.UUID // those of the new jobs that were stored before; read later, since jobs move out of cohorts
	early   []gen.EarlyCommandsRow
	workers []gen.WorkersLiveRow
}

func (s *Store) ingest(
	ctx context.Context, t step, created []jobevent.Created, found arrivalFacts,
) (r result, err error) {
	l, err := s.readLedger(ctx, t.Queries, found.ledger)
	if err != nil {
		return r, err
	}
	room, err := newRoom(ctx, t.Queries, found.workers, l)
	if err != nil {
		return r, err
	}
	if found.near {
		together, err := members(ctx, t.Queries, createdIDs(created))
		if err != nil {
			return r, err
		}
		// Retention may have moved some out of their cohort since.
		if found.known, err = t.JobsKnown(ctx, createdIDs(created)); err != nil {
			return r, fmt.Errorf("look for known jobs: %w", err)
		}
		for _, row := range together {
			found.known = append(found.known, row.JobID)
		}
	}
	created = without(found.known, created)
	b, err := findBlocks(ctx, t.Queries, created)
	if err != nil {
		return r, err
	}
	atOnce := room
	if len(found.early) > 0 { // none of the jobs goes out before the commands have been applied
		atOnce = nil
	}
	arrivals, delta := dispatch.Place(created, b, l, atOnce)
	l.Enter(delta)
	together, alone := [][]dispatch.Arrival(nil), arrivals
	if len(found.early) == 0 {
		together, alone = s.cohorts(arrivals, b, l)
	}
	in := s.insertion(together, alone, b, l.At)
	in.send(arrivals)
	if err := in.insert(ctx, t.last); err != nil {
		return r, err
	}
	if b != nil || len(found.early)+len(in.scheduled.JobIDs)+len(in.waiting.JobIDs) > 0 { // later statements read the rows
		if err := t.flush(ctx); err != nil {
			return r, err
		}
	}
	r.Runs, r.sentOut = in.orders, in.sentOut
	if r.Jobs, err = snapshots(ctx, t.Queries, slices.Concat(in.scheduled.JobIDs, in.waiting.JobIDs)); err != nil {
		return r, err
	}
	if len(found.early) > 0 {
		changed, err := applyEarly(ctx, t.Queries, found.early, created, l)
		if err != nil {
			return r, err
		}
		r.Jobs = append(r.Jobs, changed...)
	}
	if b != nil {
		if err := settleBlocks(ctx, t.Queries, b, l); err != nil {
			return r, err
		}
	}
	if b != nil || len(found.early) > 0 {
		cancelled, err := s.release(ctx, t.Queries, "ingest", l)
		if err != nil {
			return r, err
		}
		r.Jobs = append(r.Jobs, cancelled...)
	}
	if err := s.sendOut(ctx, t, "ingest", room, l, l.ReadyQueues(), &r); err != nil {
		return r, err
	}
	again := dispatch.NewDelta()
	// Reconcile republishes job-created as long as the API has no status of the job. If each of these events repeated the
	// run order too, they would multiply the load of a slow broker: only the watchdog repeats it, after the lease.
	if _, err := republishStates(ctx, t.Queries, found.known, &r, &again); err != nil {
		return r, err
	}
	l.Enter(again)
	r.transitions = l.Transitions()
	return r, saveLedger(ctx, t.last, l)
}

// insertion has the parameters that insert a batch of new jobs: cohorts, and the others by the state in which they
// begin.
type insertion struct {
	together [][]dispatch.Arrival

	queued, pending, scheduled, waiting gen.JobsInsertParams

	orders  []emit.RunOrder // of the jobs that are dispatched at once
	sentOut []uuid.UUID     // of these, those whose orders carry outputs; read after the commit
}

func (s *Store) insertion(
	together [][]dispatch.Arrival, alone []dispatch.Arrival, b *dispatch.Blocks, at time.Time,
) insertion {
	in := insertion{
		together:  together,
		queued:    beginning(jobstate.Queued, at),
		pending:   beginning(jobstate.Pending, at),
		scheduled: beginning(jobstate.Scheduled, at),
		waiting:   beginning(jobstate.Waiting, at),
	}
	in.waiting.Attempt, in.waiting.CallbackDeadlineAt = 1, &noDeadline
	leaseExpiresAt := at.Add(s.cfg.Lease)
	in.queued.Attempt, in.queued.LeaseExpiresAt = 1, &leaseExpiresAt
	n, specs := len(alone), specBytes{}
	for i := range alone {
		job, p := &alone[i], &in.pending
		if job.Partition != nil {
			p = &in.queued
			p.Partitions = append(p.Partitions, *job.Partition)
		} else if job.Status == jobstate.Scheduled {
			p = &in.scheduled
			p.DueAts = append(p.DueAts, *job.RunAt)
		} else if job.Status == jobstate.Waiting {
			p = &in.waiting
			p.DueAts = append(p.DueAts, noDeadline)
		}
		addTo(p, job, specs.of(&job.Spec), n)
		addBlocks(p, b, job.Created)
	}
	return in
}

// noDeadline is when a fan-out has waited too long: never, since the jobs of its elements have no deadline together.
var noDeadline = time.Date(9999, time.January, 1, 0, 0, 0, 0, time.UTC)

// send adds the run orders of those jobs that are dispatched at once, in the order of their ranks.
func (in *insertion) send(arrivals []dispatch.Arrival) {
	var specs specBytes
	for i := range arrivals {
		job := &arrivals[i]
		switch {
		case job.Partition == nil:
		case len(job.Inputs) > 0:
			in.sentOut = append(in.sentOut, job.JobID)
		default:
			if in.orders == nil {
				in.orders = make([]emit.RunOrder, 0, len(arrivals)-i)
			}
			in.orders = append(in.orders, emit.RunOrder{
				JobID: job.JobID, TraceID: job.TraceID, Queue: job.Queue, JobType: job.JobType, Attempt: 1,
				Payload: job.Payload, Spec: specs.of(&job.Spec), Rank: job.Rank, Partition: job.Partition,
				ExpiresAt: job.ExpiresAt, OwnerID: job.OwnerID, FairnessKey: dispatch.FairnessKeyOf(job.Created),
				Event: job.Event, Prompt: job.Awaited,
			})
		}
	}
}

// specBytes encodes specs, and one that is equal to the one before only once.
type specBytes struct {
	last  *jobevent.Spec
	bytes json.RawMessage
}

func (b *specBytes) of(spec *jobevent.Spec) json.RawMessage {
	if b.last == nil || !spec.Equal(b.last) {
		b.last, b.bytes = spec, spec.Bytes()
	}
	return b.bytes
}

// insert writes the jobs, with one statement for each state in which some begin.
func (in *insertion) insert(ctx context.Context, q *gen.Queries) error {
	for _, cohort := range in.together {
		begin := &in.pending
		if cohort[0].Partition != nil {
			begin = &in.queued
		}
		if err := insertCohort(ctx, q, cohort, begin); err != nil {
			return err
		}
	}
	for _, p := range []*gen.JobsInsertParams{&in.queued, &in.pending, &in.scheduled, &in.waiting} {
		if len(p.JobIDs) == 0 {
			continue
		}
		if err := q.JobsInsert(ctx, *p); err != nil {
			return fmt.Errorf("insert jobs: %w", err)
		}
	}
	return nil
}

// beginning is a statement for jobs that begin in one state.
func beginning(status jobstate.Status, at time.Time) gen.JobsInsertParams {
	transition := jobevent.Transition{At: at.UTC(), To: string(status), By: "ingest"}
	if status == jobstate.Queued || status == jobstate.Waiting {
		transition.Attempt = 1
	}
	return gen.JobsInsertParams{Status: string(status), History: entriesOf([]jobevent.Transition{transition})}
}

// addTo adds a job to a statement for up to n.
func addTo(p *gen.JobsInsertParams, job *dispatch.Arrival, spec json.RawMessage, n int) {
	if p.JobIDs == nil {
		p.JobIDs = make([]uuid.UUID, 0, n)
		p.TraceIDs, p.JobTypes, p.Queues = make([]uuid.UUID, 0, n), make([]string, 0, n), make([]string, 0, n)
		p.Payloads, p.Specs = make([]json.RawMessage, 0, n), make([]json.RawMessage, 0, n)
		p.FairnessKeys = make([]string, 0, n)
		p.Ranks, p.CreatedAts = make([]time.Time, 0, n), make([]time.Time, 0, n)
	}
	p.JobIDs = append(p.JobIDs, job.JobID)
	p.TraceIDs = append(p.TraceIDs, job.TraceID)
	p.JobTypes = append(p.JobTypes, job.JobType)
	p.Queues = append(p.Queues, job.Queue)
	p.Payloads = append(p.Payloads, job.Payload)
	p.Specs = append(p.Specs, spec)
	p.Ranks = append(p.Ranks, job.Rank)
	p.CreatedAts = append(p.CreatedAts, job.CreatedAt)
	p.FairnessKeys = append(p.FairnessKeys, dispatch.FairnessKeyOf(job.Created))
	setLast(&p.OwnerIDs, len(p.JobIDs)-1, job.OwnerID)
	setLast(&p.Lanes, len(p.JobIDs)-1, job.Lane)
	setLast(&p.ExpiresAts, len(p.JobIDs)-1, nullable.Value(job.ExpiresAt))
	setLast(&p.FlowIDs, len(p.JobIDs)-1, job.FlowID)
	if job.KeepBuild {
		setLast(&p.Builds, len(p.JobIDs)-1, "+")
	}
	if len(job.Inputs) > 0 {
		p.Inputs = append(p.Inputs, make([]json.RawMessage, len(p.JobIDs)-1-len(p.Inputs))...)
		p.Inputs = append(p.Inputs, mustJSON(job.Inputs))
	}
	if job.Event != nil {
		p.Events = append(p.Events, make([]json.RawMessage, len(p.JobIDs)-1-len(p.Events))...)
		p.Events = append(p.Events, job.Event)
	}
}

// IngestUnusable stores a job as failed that the API accepted but that cannot run: otherwise the API would republish it
// for ever. It uses the job's ids, and its ordering key and predecessor as far as they could be read: later jobs of the
// key wait for all jobs accepted before them.
func (s *Store) IngestUnusable(ctx context.Context, job jobevent.Created, reason string) (emit.Effects, error) {
	var r result
	jobID := job.JobID
	err := s.step(ctx, &r, nil, func(t step) error {
		r = result{}
		l, err := s.lockLedger(ctx, t.Queries)
		if err != nil {
			return err
		}
		known, err := snapshots(ctx, t.Queries, []uuid.UUID{jobID})
		if err != nil {
			return err
		}
		if len(known) == 0 {
			if err := insertFailed(ctx, t.Queries, jobID, job.TraceID, l.At, reason); err != nil {
				return err
			}
			if err := closeGapOfUnusable(ctx, t.Queries, l, job); err != nil {
				return err
			}
			l.NoteEnded(jobID, nil, nil)
			l.NoteTransition("", jobstate.Failed, 1)
		}
		delta := dispatch.NewDelta()
		if err := republish(ctx, t.Queries, []uuid.UUID{jobID}, &r, &delta); err != nil {
			return err
		}
		l.Enter(delta)
		return s.dispatchLocked(ctx, t, "ingest", l, &r)
	})
	return r.Effects, err
}

func insertFailed(ctx context.Context, q *gen.Queries, jobID, traceID uuid.UUID, at time.Time, reason string) error {
	p := beginning(jobstate.Failed, at)
	spec := jobevent.Spec{TimeoutMs: 1}
	addTo(&p, &dispatch.Arrival{Rank: at, Created: &jobevent.Created{
		JobID: jobID, TraceID: traceID, Queue: jobevent.DefaultQueue,
		Payload: json.RawMessage("null"), CreatedAt: at,
	}}, spec.Bytes(), 1)
	code, message := "SCHEDULER.INVALID_JOB", jobevent.CleanMessage(reason)
	p.ErrorCode, p.ErrorMessage, p.FinishedAt = &code, &message, &at
	if err := q.JobsInsert(ctx, p); err != nil {
		return fmt.Errorf("insert unusable job: %w", err)
	}
	return nil
}

func createdIDs(created []jobevent.Created) []uuid.UUID {
	ids := make([]uuid.UUID, len(created))
	for i, job := range created {
		ids[i] = job.JobID
	}
	return ids
}

// without returns the jobs that are not known. If a job occurs twice, the first one counts.
func without(known []uuid.UUID, created []jobevent.Created) []jobevent.Created {
	if len(known) == 0 && inOrder(created) {
		return created
	}
	seen := make(map[uuid.UUID]bool, len(known)+len(created))
	for _, id := range known {
		seen[id] = true
	}
	var jobs []jobevent.Created
	for _, job := range created {
		if !seen[job.JobID] {
			seen[job.JobID] = true
			jobs = append(jobs, job)
		}
	}
	return jobs
}

// inOrder reports whether each id is greater than the one before, as UUIDv7s mostly are.
func inOrder(created []jobevent.Created) bool {
	for i := 1; i < len(created); i++ {
		if bytes.Compare(created[i-1].JobID[:], created[i].JobID[:]) >= 0 {
			return false
		}
	}
	return true
}
