package schedulerdb

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/dispatch"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/nullable"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/emit"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/internal/gen"
)

// Outcome is the outcome of an attempt, as a worker or a callback reports it.
type Outcome struct {
	JobID           uuid.UUID
	Attempt         int
	Kind            jobstate.Kind
	WorkerID        string // empty: the outcome is that of a callback
	RanBy           string // the pull worker to which that worker gave the attempt; empty: none
	StartedAt       *time.Time
	FinishedAt      *time.Time
	Output          json.RawMessage
	ErrorCode       string
	Message         string
	Retryable       bool
	RetryAfter      time.Duration // zero: as the job's retry policy has it
	CallbackTimeout time.Duration // KindWaiting only
}

// ranBy returns the worker that the history names.
func (o *Outcome) ranBy() string { return cmp.Or(o.RanBy, o.WorkerID) }

// Settle applies outcomes in order, and dispatches jobs into the room that they make. An outcome of an old attempt
// changes nothing, and the current state of its job is published again.
func (s *Store) Settle(ctx context.Context, outcomes []Outcome) (emit.Effects, error) {
	outcomes, err := cleanOutcomes(outcomes)
	if err != nil {
		return emit.Effects{}, err
	}
	// JobsLock locks rows in this order. The outcomes of one job keep the order in which they came.
	slices.SortStableFunc(outcomes, func(a, b Outcome) int { return bytes.Compare(a.JobID[:], b.JobID[:]) })
	done, others := s.split(outcomes)
	if err := s.leaveCohorts(ctx, jobIDs(others)); err != nil {
		return emit.Effects{}, err
	}
	var effects emit.Effects
	for try := range applyTries {
		if len(others) == 0 {
			effects, err = s.settleCompleted(ctx, done, try > 0 || len(done) >= leastMembers)
		} else {
			effects, err = s.settle(ctx, outcomes, done, others)
		}
		if pgpool.IsTaken(err) && try < applyTries-1 { // another transaction completed a job of a cohort
			err = errMoved
		}
		if !errors.Is(err, errMoved) {
			break
		}
	}
	return effects, err
}

func (s *Store) settle(ctx context.Context, outcomes, done, others []Outcome) (emit.Effects, error) {
	var r result
	err := s.step(ctx, &r, nil, func(t step) error {
		r = result{}
		delta := dispatch.NewDelta()
		// Lock the completed jobs too, and complete no others here: a transaction that locks rows in two steps can deadlock
		// with another one.
		jobs, err := lockJobs(ctx, t.Queries, jobIDs(outcomes))
		if err != nil {
			return err
		}
		if r.Jobs, err = s.apply(ctx, t.Queries, "outcome", others, jobs, &delta); err != nil {
			return err
		}
		var locked, elsewhere []Outcome
		for _, o := range done {
			if jobs[o.JobID] != nil {
				locked = append(locked, o)
			} else {
				elsewhere = append(elsewhere, o)
			}
		}
		rows, err := t.JobsComplete(ctx, completeParams(locked))
		if err != nil {
			return fmt.Errorf("complete jobs: %w", err)
		}
		var together []gen.MembersCompleteRow
		if len(elsewhere) > 0 {
			if together, err = t.MembersComplete(ctx, membersParams(elsewhere)); err != nil {
				return fmt.Errorf("complete members of cohorts: %w", err)
			}
		}
		rows = append(rows, completedMembers(elsewhere, completeParams(elsewhere).Entries, together)...)
		l, err := s.lockLedger(ctx, t.Queries)
		if err != nil {
			return err
		}
		r.Jobs = append(r.Jobs, completedSnapshots(done, rows, &delta)...)
		return s.settled(ctx, t, outcomes, done, together, l, &r, &delta)
	})
	return r.Effects, err
}

// settleCompleted is settle for batches in which all attempts completed, as they did in most. The statements that write
// the jobs and lock the ledger travel with BEGIN, in one round trip. Without inCohorts it does not search cohorts, and
// the error is errMoved if a job is in one.
// Why a completed job leaves the table: docs/decisions/databases.md#a-completed-job-leaves-the-table
func (s *Store) settleCompleted(ctx context.Context, done []Outcome, inCohorts bool) (emit.Effects, error) {
	p := completeParams(done)
	var rows []gen.JobsCompleteRow
	var together []gen.MembersCompleteRow
	var ledger gen.DispatchLockRow
	var r result
	err := s.step(ctx, &r, func(b *pgx.Batch) {
		pgpool.QueueMany(b, &rows, pgx.RowToStructByPos[gen.JobsCompleteRow], gen.JobsComplete,
			p.JobIDs, p.Attempts, p.Entries, p.Outputs, p.StartedAts)
		if inCohorts {
			m := membersParams(done)
			pgpool.QueueMany(b, &together, pgx.RowToStructByPos[gen.MembersCompleteRow], gen.MembersComplete,
				m.BlockIDs, m.LastIDs, m.WorkerIDs, m.Wanted, m.Befores, m.Outputs, m.StartedAts, m.FinishedAts)
		}
		queueLock(b, &ledger)
	}, func(t step) error {
		r = result{}
		delta := dispatch.NewDelta()
		r.Jobs = completedSnapshots(done, append(rows, completedMembers(done, p.Entries, together)...), &delta)
		l, err := s.readLedger(ctx, t.Queries, ledger)
		if err != nil {
			return err
		}
		return s.settled(ctx, t, done, done, together, l, &r, &delta)
	})
	return r.Effects, err
}

// settled removes the completed jobs that were in cohorts from these, publishes again what the outcomes did not change,
// and dispatches. The ledger is locked. If a job has moved since its rows were searched, the error is errMoved: the
// transaction has to be tried again.
func (s *Store) settled(
	ctx context.Context, t step, outcomes, done []Outcome, together []gen.MembersCompleteRow, l *dispatch.Ledger,
	r *result, delta *dispatch.Delta,
) error {
	if err := removeCompleted(ctx, t.Queries, together); err != nil {
		return err
	}
	if changed := len(r.Jobs); changed < len(outcomes) {
		if err := republish(ctx, t.Queries, jobIDs(outcomes), r, delta); err != nil {
			return err
		}
		if anyOpen(done, r.Jobs[changed:]) {
			return errMoved
		}
	}
	l.Enter(*delta)
	return s.dispatchLocked(ctx, t, "outcome", l, r)
}

// anyOpen reports whether one of the completed attempts is still open by the current states of the jobs.
func anyOpen(done []Outcome, jobs []emit.Snapshot) bool {
	return slices.ContainsFunc(jobs, func(job emit.Snapshot) bool {
		at, found := slices.BinarySearchFunc(done, job.JobID, compareJob)
		status := jobstate.Status(job.Status)
		return found && done[at].Attempt == int(job.Attempt) && (status.InFlight() || status == jobstate.Waiting)
	})
}

func compareJob(o Outcome, id uuid.UUID) int { return bytes.Compare(o.JobID[:], id[:]) }

// split separates completed attempts, which one statement writes, from the other outcomes, to which the rules of
// jobstate apply under row locks.
func (s *Store) split(outcomes []Outcome) (done, others []Outcome) {
	for i, o := range outcomes {
		isOnly := (i == 0 || outcomes[i-1].JobID != o.JobID) && (i == len(outcomes)-1 || outcomes[i+1].JobID != o.JobID)
		if o.Kind == jobstate.KindCompleted && isOnly {
			done = append(done, o)
		} else {
			others = append(others, o)
		}
	}
	return done, others
}

// apply applies outcomes to locked rows by the rules of jobstate.
func (s *Store) apply(
	ctx context.Context, q *gen.Queries, by string, outcomes []Outcome, jobs map[uuid.UUID]*lockedJob,
	delta *dispatch.Delta,
) ([]emit.Snapshot, error) {
	for _, o := range outcomes {
		if job := jobs[o.JobID]; job != nil {
			job.outcome(by, o, s.cfg.MaxLost)
			if o.Kind == jobstate.KindSnoozed && o.ErrorCode == string(apierror.UnknownJobType) {
				delta.NoteSorted(job.row.Queue)
			}
		}
	}
	if err := keepBuilds(ctx, q, outcomes, jobs); err != nil {
		return nil, err
	}
	return saveJobs(ctx, q, jobs, delta)
}

// keepBuilds sets the build of locked jobs that keep their build: they stay on that of the attempt that has ended. As
// long as the build lives, that is the build that began the job.
func keepBuilds(ctx context.Context, q *gen.Queries, outcomes []Outcome, jobs map[uuid.UUID]*lockedJob) error {
	begunBy := map[uuid.UUID]string{}
	var workers []string
	for _, o := range outcomes {
		job := jobs[o.JobID]
		if job != nil && job.row.Build != nil && o.WorkerID != "" && o.StartedAt != nil && job.Attempt == o.Attempt {
			begunBy[o.JobID], workers = o.WorkerID, append(workers, o.WorkerID)
		}
	}
	if len(workers) == 0 {
		return nil
	}
	rows, err := q.WorkersBuilds(ctx, workers)
	if err != nil {
		return fmt.Errorf("read the builds of workers: %w", err)
	}
	builds := map[string]string{}
	for _, row := range rows {
		builds[row.WorkerID] = nullable.Value(row.Build)
	}
	var p gen.JobsKeepBuildParams
	for id, worker := range begunBy {
		job, build := jobs[id], builds[worker]
		if build == "" || build == nullable.Value(job.row.Build) {
			continue
		}
		lane := dispatch.LaneOnBuild(nullable.Value(job.row.Lane), job.row.JobType, build)
		job.row.Build, job.row.Lane = &build, &lane
		p.JobIDs, p.Builds, p.Lanes = append(p.JobIDs, id), append(p.Builds, build), append(p.Lanes, lane)
	}
	if len(p.JobIDs) == 0 {
		return nil
	}
	if err := q.JobsKeepBuild(ctx, p); err != nil {
		return fmt.Errorf("note the builds of jobs: %w", err)
	}
	return nil
}

func jobIDs(outcomes []Outcome) []uuid.UUID {
	ids := make([]uuid.UUID, len(outcomes))
	for i, o := range outcomes {
		ids[i] = o.JobID
	}
	return ids
}

// completedSnapshots returns the jobs that JobsComplete has written, and enters their ends into the delta. The outcomes
// are sorted by job.
func completedSnapshots(outcomes []Outcome, rows []gen.JobsCompleteRow, delta *dispatch.Delta) []emit.Snapshot {
	jobs := make([]emit.Snapshot, len(rows))
	for i := range rows {
		row := &rows[i]
		delta.NoteEnded(row.JobID, row.OrderingKey, row.OwnerID)
		delta.NoteTransition(row.JobType, jobstate.Completed, 1)
		if row.WasOut {
			delta.NoteOut(row.Queue, nullable.Value(row.WorkerID), nullable.Value(row.Partition), -1)
			delta.NoteRunning(classOf(row.Queue, row.JobType, row.OwnerID, row.FairnessKey), -1)
		}
		at, _ := slices.BinarySearchFunc(outcomes, row.JobID, compareJob)
		jobs[i] = emit.Snapshot{
			JobID: row.JobID, TraceID: row.TraceID, Status: string(jobstate.Completed), Version: row.Version,
			Attempt: row.Attempt, RetryCount: row.RetryCount, LastCommand: row.LastCommand, History: row.History,
			Output: outcomes[at].Output, StartedAt: cmp.Or(row.StartedAt, outcomes[at].StartedAt),
			FinishedAt: &row.UpdatedAt, UpdatedAt: row.UpdatedAt,
		}
	}
	return jobs
}

func completeParams(outcomes []Outcome) gen.JobsCompleteParams {
	n := len(outcomes)
	p := gen.JobsCompleteParams{
		JobIDs: make([]uuid.UUID, n), Attempts: make([]int32, n), Entries: make([]string, n),
		StartedAts: make([]time.Time, n),
	}
	ends, buffer := make([]int, n), make([]byte, 0, n*200)
	for i, o := range outcomes {
		p.JobIDs[i], p.Attempts[i], p.StartedAts[i] = o.JobID, int32Of(o.Attempt), nullable.Value(o.StartedAt)
		if o.Output != nil && p.Outputs == nil {
			p.Outputs = make([]json.RawMessage, n) // most have none
		}
		if o.Output != nil {
			p.Outputs[i] = o.Output
		}
		buffer = appendEnd(buffer, jobevent.Transition{
			To: string(jobstate.Completed), Attempt: o.Attempt, By: "outcome", Outcome: string(o.Kind),
			WorkerID: o.ranBy(), StartedAt: jobevent.UTC(o.StartedAt),
			FinishedAt: jobevent.UTC(o.FinishedAt),
		})
		ends[i] = len(buffer)
	}
	all, begin := string(buffer), 0
	for i, end := range ends {
		p.Entries[i], begin = all[begin:end], end
	}
	return p
}
