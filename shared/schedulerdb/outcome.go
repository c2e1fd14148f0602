package schedulerdb

import (
	"bytes"
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

// Outcome is what a worker says became of an attempt.
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

// Settle applies outcomes, in order, and sends out what the room they leave is good for. An outcome
// of an old attempt changes nothing; the state of its job is told again.
func (s *Store) Settle(ctx context.Context, outcomes []Outcome) (Say, error) {
	outcomes, err := cleanOutcomes(outcomes)
	if err != nil {
		return Say{}, err
	}
	// In the order in which JobsLock takes rows; of one job's, in the order in which they were said.
	slices.SortStableFunc(outcomes, func(a, b Outcome) int { return bytes.Compare(a.JobID[:], b.JobID[:]) })
	plain, others := split(outcomes)
	completed := completeParams(plain)
	var ahead func(q *gen.Queries)
	if len(others) == 0 {
		ahead = func(q *gen.Queries) {
			_, _ = q.JobsComplete(ctx, completed)
			_, _ = q.DispatchLock(ctx)
		}
	}
	var say Say
	err = s.txSayAhead(ctx, &say, ahead, func(q *gen.Queries) (err error) {
		say = Say{}
		news := newTally()
		if len(others) > 0 {
			// The plain ones too: who takes his rows in two goes meets others in the wrong order.
			jobs, err := lockJobs(ctx, q, jobIDs(outcomes))
			if err != nil {
				return err
			}
			if say.Jobs, err = s.apply(ctx, q, "outcome", others, jobs, &news); err != nil {
				return err
			}
		}
		if len(plain) > 0 {
			done, err := complete(ctx, q, plain, completed, &news)
			if err != nil {
				return err
			}
			say.Jobs = append(say.Jobs, done...)
		}
		if len(say.Jobs) < len(outcomes) {
			if err := again(ctx, q, jobIDs(outcomes), &say, &news); err != nil {
				return err
			}
		}
		return s.dispatch(ctx, q, "outcome", news, &say)
	})
	return say, err
}

// split gives those that take the plain way, a job whose attempt completed, and those that take the long way, under a
// lock and through the rules of jobstate.
func split(outcomes []Outcome) (plain, others []Outcome) {
	for i, o := range outcomes {
		isOnly := (i == 0 || outcomes[i-1].JobID != o.JobID) && (i == len(outcomes)-1 || outcomes[i+1].JobID != o.JobID)
		if o.Kind == jobstate.KindCompleted && isOnly {
			plain = append(plain, o)
		} else {
			others = append(others, o)
		}
	}
	return plain, others
}

// apply settles by the rules of jobstate, on rows that are locked.
func (s *Store) apply(
	ctx context.Context, q *gen.Queries, by string, outcomes []Outcome, jobs map[uuid.UUID]*lockedJob,
	news *tally,
) ([]Snapshot, error) {
	for _, o := range outcomes {
		if job := jobs[o.JobID]; job != nil {
			if err := job.outcome(by, o, s.cfg.MaxLost); err != nil {
				return nil, err
			}
		}
	}
	return saveJobs(ctx, q, jobs, news)
}

func jobIDs(outcomes []Outcome) []uuid.UUID {
	ids := make([]uuid.UUID, len(outcomes))
	for i, o := range outcomes {
		ids[i] = o.JobID
	}
	return ids
}

// complete takes outcomes in the order of their jobs, and as parameters.
func complete(
	ctx context.Context, q *gen.Queries, outcomes []Outcome, p gen.JobsCompleteParams, news *tally,
) ([]Snapshot, error) {
	rows, err := q.JobsComplete(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("complete jobs: %w", err)
	}
	jobs := make([]Snapshot, len(rows))
	for i := range rows {
		row := &rows[i]
		news.ends(row.JobID, row.OrderingKey, row.OwnerID)
		news.moved(row.JobType, jobstate.Completed, 1)
		if row.WasOut {
			news.out.add(row.Queue, orEmpty(row.WorkerID), partitionOf(row.Partition), -1)
			news.runs(row.JobType, orEmpty(row.OwnerID), -1)
		}
		at, _ := slices.BinarySearchFunc(outcomes, row.JobID, func(o Outcome, id uuid.UUID) int {
			return bytes.Compare(o.JobID[:], id[:])
		})
		jobs[i] = Snapshot{
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
			WorkerID: o.WorkerID, StartedAt: utc(o.StartedAt), FinishedAt: utc(o.FinishedAt),
		})
		ends[i] = len(buffer)
	}
	all, begin := string(buffer), 0
	for i, end := range ends {
		p.Entries[i], begin = all[begin:end], end
	}
	return p
}
