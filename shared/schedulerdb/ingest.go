package schedulerdb

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/internal/gen"
)

// rankPerPriority is what one level of priority is worth in waiting time.
const rankPerPriority = 10 * time.Second

// Ingest takes jobs in. One that is due and finds room with nobody waiting before it goes out at once,
// in its only write; the others are stored, and told if they are due later. A job that is known already is told again.
func (s *Store) Ingest(ctx context.Context, created []jobevent.Created) (Say, error) {
	for _, job := range created {
		if err := checkCreated(job); err != nil {
			return Say{}, err
		}
	}
	var all Say
	for len(created) > 0 {
		n := partOf(created)
		var say Say
		ids := createdIDs(created[:n])
		err := s.txSayAhead(ctx, &say, func(q *gen.Queries) {
			_, _ = q.DispatchLock(ctx)
			_, _ = q.JobsKnown(ctx, ids)
			_, _ = q.WorkersLive(ctx, silentAfter)
		}, func(q *gen.Queries) (err error) {
			say, err = s.ingest(ctx, q, created[:n], ids)
			return err
		})
		if err != nil {
			return Say{}, err
		}
		all.Runs, all.Jobs = append(all.Runs, say.Runs...), append(all.Jobs, say.Jobs...)
		created = created[n:]
	}
	return all, nil
}

// afterMost bounds the jobs that those of one transaction wait for: the lock of dispatching is held while they are
// looked at.
const afterMost = 10_000

// partOf is how many jobs go into the next transaction, mostly all.
func partOf(created []jobevent.Created) int {
	waitsFor := 0
	for i := range created {
		if waitsFor += len(created[i].After); waitsFor > afterMost && i > 0 {
			return i
		}
	}
	return len(created)
}

func (s *Store) ingest(
	ctx context.Context, q *gen.Queries, created []jobevent.Created, ids []uuid.UUID,
) (say Say, err error) {
	l, err := s.lockDispatch(ctx, q)
	if err != nil {
		return say, err
	}
	known, err := q.JobsKnown(ctx, ids)
	if err != nil {
		return say, fmt.Errorf("look for known jobs: %w", err)
	}
	r, err := measureRoom(ctx, q, l)
	if err != nil {
		return say, err
	}
	created = without(known, created)
	t, err := tie(ctx, q, created)
	if err != nil {
		return say, err
	}
	in := s.place(created, t, l, r)
	if err := in.insert(ctx, q); err != nil {
		return say, err
	}
	if err := l.enter(ctx, q, in.news); err != nil {
		return say, err
	}
	say.Runs = in.orders
	if say.Jobs, err = snapshots(ctx, q, in.scheduled.JobIDs); err != nil {
		return say, err
	}
	if t != nil {
		ended, err := s.settleTies(ctx, q, t, l)
		if err != nil {
			return say, err
		}
		say.Jobs = append(say.Jobs, ended...)
	}
	if err := s.sendOut(ctx, q, "ingest", r, l, l.waiting(), &say); err != nil {
		return say, err
	}
	news := newTally()
	// Reconcile publishes job.created for as long as the API has not heard of a job. Behind a slow broker an order with
	// each of these would multiply the load (knative A1): only the watchdog repeats it, after its lease.
	if _, err := statesAgain(ctx, q, known, &say, &news); err != nil {
		return say, err
	}
	if err := l.enter(ctx, q, news); err != nil {
		return say, err
	}
	say.moves = l.moves
	return say, l.save(ctx, q)
}

// placed is a batch ready to be inserted, by the state in which its jobs begin.
type placed struct {
	queued, pending, scheduled gen.JobsInsertParams

	most   int        // jobs in the batch
	orders []RunOrder // of those that go out at once
	news   tally
	ties   *ties
}

func (in *placed) addTo(p *gen.JobsInsertParams, job arrival) {
	addTo(p, job, in.most)
	in.ties.addTo(p, job.Created)
	if job.ExpiresAt != nil && p != &in.queued {
		in.news.falls(*job.ExpiresAt)
	}
}

// arrival is a new job with its rank.
type arrival struct {
	*jobevent.Created
	rank time.Time
	lane string
}

// place decides where each new job begins. Of one queue the best rank is placed first.
func (s *Store) place(jobs []jobevent.Created, t *ties, l *ledger, r *room) placed {
	arrivals, due := make([]arrival, len(jobs)), map[string]int{}
	for i := range jobs {
		job := &jobs[i]
		arrivals[i] = arrival{job, rankOf(job, l.at), l.controls.laneOf(job.JobType, job.OwnerID)}
		if (job.RunAt == nil || !job.RunAt.After(l.at)) && t.blocks(job.JobID) == "" {
			due[job.Queue]++
		}
	}
	slices.SortStableFunc(arrivals, func(a, b arrival) int {
		return cmp.Or(a.rank.Compare(b.rank), bytes.Compare(a.JobID[:], b.JobID[:]))
	})
	places := map[string][]place{}
	for queue, n := range due {
		if !l.waitsOpen(queue) {
			places[queue] = r.take(queue, min(n, l.roomOfQueue(queue)))
		}
	}
	in := placed{
		most: len(jobs), news: newTally(), ties: t,
		queued:    beginning(jobstate.Queued, l.at),
		pending:   beginning(jobstate.Pending, l.at),
		scheduled: beginning(jobstate.Scheduled, l.at),
	}
	leaseExpiresAt := l.at.Add(s.cfg.Lease)
	in.queued.Attempt, in.queued.LeaseExpiresAt = 1, &leaseExpiresAt
	for _, job := range arrivals {
		switch to := places[job.Queue]; {
		case job.RunAt != nil && job.RunAt.After(l.at):
			in.addTo(&in.scheduled, job)
			in.scheduled.DueAts = append(in.scheduled.DueAts, *job.RunAt)
			in.news.falls(*job.RunAt)
		case t.blocks(job.JobID) != "":
			in.addTo(&in.pending, job)
		case len(to) > 0 && l.lets(job.JobType, job.OwnerID):
			places[job.Queue] = to[1:]
			in.send(job, &to[0].partition)
			l.starts(job.JobType, job.OwnerID)
			l.spend(subject{jobevent.ControlQueue, job.Queue}, 1)
		default:
			in.addTo(&in.pending, job)
			in.news.waits(job.Queue, job.lane, job.rank)
		}
	}
	for queue, left := range places {
		r.giveBack(queue, left) // of jobs that a control holds back
	}
	return in
}

func (in *placed) send(job arrival, partition *int16) {
	if in.orders == nil {
		in.orders = make([]RunOrder, 0, in.most)
	}
	in.addTo(&in.queued, job)
	in.queued.Partitions = append(in.queued.Partitions, *partition)
	in.news.out.add(job.Queue, "", *partition, 1)
	in.orders = append(in.orders, RunOrder{
		JobID: job.JobID, TraceID: job.TraceID, Queue: job.Queue, JobType: job.JobType, Attempt: 1,
		Payload: job.Payload, TimeoutMs: int32Of(job.TimeoutMs), Rank: job.rank, Partition: partition,
		ExpiresAt: job.ExpiresAt, OwnerID: job.OwnerID,
	})
}

// insert writes the jobs, with one statement for each state that some begin in.
func (in *placed) insert(ctx context.Context, q *gen.Queries) error {
	for _, p := range []*gen.JobsInsertParams{&in.queued, &in.pending, &in.scheduled} {
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
	move := jobevent.Move{At: at.UTC(), To: string(status), By: "ingest"}
	if status == jobstate.Queued {
		move.Attempt = 1
	}
	return gen.JobsInsertParams{Status: string(status), History: entriesOf([]jobevent.Move{move})}
}

// addTo adds a job to a statement for up to n.
func addTo(p *gen.JobsInsertParams, job arrival, n int) {
	if p.JobIDs == nil {
		p.JobIDs = make([]uuid.UUID, 0, n)
		p.TraceIDs, p.JobTypes, p.Queues = make([]uuid.UUID, 0, n), make([]string, 0, n), make([]string, 0, n)
		p.Payloads, p.TimeoutsMs = make([]json.RawMessage, 0, n), make([]int32, 0, n)
		p.Priorities, p.MaxRetryCounts = make([]int16, 0, n), make([]int16, 0, n)
		p.Ranks, p.CreatedAts = make([]time.Time, 0, n), make([]time.Time, 0, n)
	}
	if job.RetryPolicy != nil {
		// Most have none: the array begins with the first that has, and what it lacks at its end is null.
		p.RetryPolicies = append(p.RetryPolicies, make([]json.RawMessage, len(p.JobIDs)-len(p.RetryPolicies))...)
		p.RetryPolicies = append(p.RetryPolicies, mustJSON(job.RetryPolicy))
	}
	p.JobIDs = append(p.JobIDs, job.JobID)
	p.TraceIDs = append(p.TraceIDs, job.TraceID)
	p.JobTypes = append(p.JobTypes, job.JobType)
	p.Queues = append(p.Queues, job.Queue)
	p.Payloads = append(p.Payloads, job.Payload)
	p.Priorities = append(p.Priorities, int16Of(job.Priority))
	p.MaxRetryCounts = append(p.MaxRetryCounts, int16Of(job.MaxRetryCount))
	p.TimeoutsMs = append(p.TimeoutsMs, int32Of(job.TimeoutMs))
	p.Ranks = append(p.Ranks, job.rank)
	p.CreatedAts = append(p.CreatedAts, job.CreatedAt)
	setLast(&p.OwnerIDs, len(p.JobIDs)-1, job.OwnerID)
	setLast(&p.Lanes, len(p.JobIDs)-1, job.lane)
	setLast(&p.ExpiresAts, len(p.JobIDs)-1, orZero(job.ExpiresAt))
}

// rankOf orders the queue for ever: a level of priority is worth ten seconds of waiting.
func rankOf(job *jobevent.Created, at time.Time) time.Time {
	ready := job.CreatedAt
	if ready.IsZero() || ready.After(at) {
		ready = at
	}
	if job.RunAt != nil && job.RunAt.After(ready) {
		ready = *job.RunAt
	}
	return ready.Add(-time.Duration(job.Priority) * rankPerPriority)
}

// IngestUnusable stores a job that was accepted and yet cannot be run, as failed: or the API would say it again for
// ever. Of the job its ids count, and its place in an order, as far as they could be read: who comes after it waits for
// all that were accepted before it.
func (s *Store) IngestUnusable(ctx context.Context, job jobevent.Created, reason string) (Say, error) {
	var say Say
	jobID := job.JobID
	err := s.txSay(ctx, &say, func(q *gen.Queries) error {
		say = Say{}
		l, err := s.lockDispatch(ctx, q)
		if err != nil {
			return err
		}
		known, err := q.JobsKnown(ctx, []uuid.UUID{jobID})
		if err != nil {
			return fmt.Errorf("look for known jobs: %w", err)
		}
		if len(known) == 0 {
			if err := insertFailed(ctx, q, jobID, job.TraceID, l.at, reason); err != nil {
				return err
			}
			if err := arriveUnusable(ctx, q, l, job); err != nil {
				return err
			}
			l.ended = append(l.ended, jobID)
			l.moved("", jobstate.Failed, 1)
		}
		news := newTally()
		if err := again(ctx, q, []uuid.UUID{jobID}, &say, &news); err != nil {
			return err
		}
		if err := l.enter(ctx, q, news); err != nil {
			return err
		}
		return s.dispatchLocked(ctx, q, "ingest", l, &say)
	})
	return say, err
}

func insertFailed(ctx context.Context, q *gen.Queries, jobID, traceID uuid.UUID, at time.Time, reason string) error {
	p := beginning(jobstate.Failed, at)
	addTo(&p, arrival{rank: at, Created: &jobevent.Created{
		JobID: jobID, TraceID: traceID, Queue: jobevent.DefaultQueue,
		Payload: json.RawMessage("null"), TimeoutMs: 1, CreatedAt: at,
	}}, 1)
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

// without gives the jobs that are not known. Of one that was said twice the first counts.
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

// inOrder says whether each id is greater than the one before, as ids by time mostly are.
func inOrder(created []jobevent.Created) bool {
	for i := 1; i < len(created); i++ {
		if bytes.Compare(created[i-1].JobID[:], created[i].JobID[:]) >= 0 {
			return false
		}
	}
	return true
}
