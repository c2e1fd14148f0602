package schedulerdb

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/dispatch"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobevent/emit"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/internal/gen"
)

// Outcome is what became of an attempt, as its worker reports it.
type Outcome struct {
	JobID           uuid.UUID
	Attempt         int
	Kind            jobstate.Kind
	WorkerID        string // empty: an outside system called back
	StartedAt       *time.Time
	FinishedAt      *time.Time
	Output          json.RawMessage
	ErrorCode       string
	Message         string
	Retryable       bool
	RetryAfter      time.Duration // zero: the job's policy
	CallbackTimeout time.Duration // KindWaiting only
}

// Settle applies outcomes, in order, and sends out what finds room then. An outcome of an old attempt changes nothing;
// the state of its job is published again.
func (s *Store) Settle(ctx context.Context, outcomes []Outcome) (emit.Effects, error) {
	outcomes, err := cleanOutcomes(outcomes)
	if err != nil {
		return emit.Effects{}, err
	}
	// In the order in which JobsLock locks rows; the outcomes of one job in the order in which they came.
	slices.SortStableFunc(outcomes, func(a, b Outcome) int { return bytes.Compare(a.JobID[:], b.JobID[:]) })
	done, others := split(outcomes)
	completed := completeParams(done)
	var ahead func(q *gen.Queries)
	if len(others) == 0 {
		ahead = func(q *gen.Queries) {
			_, _ = q.JobsComplete(ctx, completed)
			_, _ = q.DispatchLock(ctx)
		}
	}
	var r result
	err = s.txResultAhead(ctx, &r, ahead, func(q *gen.Queries) (err error) {
		r = result{}
		delta := dispatch.NewDelta()
		if len(others) > 0 {
			// Lock the completed ones too: a transaction that locks rows in two steps meets others in the wrong order, and
			// both wait for ever.
			jobs, err := lockJobs(ctx, q, jobIDs(outcomes))
			if err != nil {
				return err
			}
			if r.Jobs, err = s.apply(ctx, q, "outcome", others, jobs, &delta); err != nil {
				return err
			}
		}
		if len(done) > 0 {
			jobs, err := complete(ctx, q, done, completed, &delta)
			if err != nil {
				return err
			}
			r.Jobs = append(r.Jobs, jobs...)
		}
		if len(r.Jobs) < len(outcomes) {
			if err := republish(ctx, q, jobIDs(outcomes), &r, &delta); err != nil {
				return err
			}
		}
		return s.dispatch(ctx, q, "outcome", delta, &r)
	})
	return r.Effects, err
}

// split separates the jobs whose attempt completed, which take the fast path in one statement, from those that go under
// a row lock through the rules of jobstate.
func split(outcomes []Outcome) (done, others []Outcome) {
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

// apply settles locked rows by the rules of jobstate.
func (s *Store) apply(
	ctx context.Context, q *gen.Queries, by string, outcomes []Outcome, jobs map[uuid.UUID]*lockedJob,
	delta *dispatch.Delta,
) ([]emit.Snapshot, error) {
	for _, o := range outcomes {
		if job := jobs[o.JobID]; job != nil {
			if err := job.outcome(by, o, s.cfg.MaxLost); err != nil {
				return nil, err
			}
		}
	}
	return saveJobs(ctx, q, jobs, delta)
}

func jobIDs(outcomes []Outcome) []uuid.UUID {
	ids := make([]uuid.UUID, len(outcomes))
	for i, o := range outcomes {
		ids[i] = o.JobID
	}
	return ids
}

// complete settles completed attempts in one statement. It takes the outcomes in the order of their jobs, and as
// parameters.
func complete(
	ctx context.Context, q *gen.Queries, outcomes []Outcome, p gen.JobsCompleteParams, delta *dispatch.Delta,
) ([]emit.Snapshot, error) {
	rows, err := q.JobsComplete(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("complete jobs: %w", err)
	}
	jobs := make([]emit.Snapshot, len(rows))
	for i := range rows {
		row := &rows[i]
		delta.NoteEnded(row.JobID, row.OrderingKey, row.OwnerID)
		delta.NoteTransition(row.JobType, jobstate.Completed, 1)
		if row.WasOut {
			delta.NoteOut(row.Queue, orEmpty(row.WorkerID), partitionOf(row.Partition), -1)
			delta.NoteRunning(row.JobType, orEmpty(row.OwnerID), -1)
		}
		at, _ := slices.BinarySearchFunc(outcomes, row.JobID, func(o Outcome, id uuid.UUID) int {
			return bytes.Compare(o.JobID[:], id[:])
		})
		jobs[i] = emit.Snapshot{
			JobID: row.JobID, TraceID: row.TraceID, Status: string(jobstate.Completed), Version: row.Version,
			Attempt: row.Attempt, RetryCount: row.RetryCount, LastCommand: row.LastCommand, History: row.History,
			Output: outcomes[at].Output, StartedAt: row.StartedAt, FinishedAt: &row.UpdatedAt, UpdatedAt: row.UpdatedAt,
		}
	}
	return jobs, nil
}

func completeParams(outcomes []Outcome) gen.JobsCompleteParams {
	n := len(outcomes)
	p := gen.JobsCompleteParams{
		JobIDs: make([]uuid.UUID, n), Attempts: make([]int32, n), Entries: make([]string, n),
		StartedAts: make([]time.Time, n),
	}
	ends, buffer := make([]int, n), make([]byte, 0, n*200)
	for i, o := range outcomes {
		p.JobIDs[i], p.Attempts[i], p.StartedAts[i] = o.JobID, int32Of(o.Attempt), orZero(o.StartedAt)
		if o.Output != nil && p.Outputs == nil {
			p.Outputs = make([]json.RawMessage, n) // most have none
		}
		if o.Output != nil {
			p.Outputs[i] = o.Output
		}
		buffer = appendEnd(buffer, jobevent.Move{
			To: string(jobstate.Completed), Attempt: o.Attempt, By: "outcome", Outcome: string(o.Kind),
			WorkerID: o.WorkerID, StartedAt: jobevent.UTC(o.StartedAt), FinishedAt: jobevent.UTC(o.FinishedAt),
		})
		ends[i] = len(buffer)
	}
	all, begin := string(buffer), 0
	for i, end := range ends {
		p.Entries[i], begin = all[begin:end], end
	}
	return p
}
