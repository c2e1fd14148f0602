package schedulerdb

import (
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
	WorkerID        string
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
	var say Say
	err = s.tx(ctx, func(q *gen.Queries) (err error) {
		say = Say{}
		say.Jobs, err = s.settle(ctx, q, outcomes)
		if err != nil {
			return err
		}
		if err := again(ctx, q, jobIDs(outcomes), &say); err != nil {
			return err
		}
		orders, err := s.dispatch(ctx, q, "outcome")
		say.Runs = append(say.Runs, orders...)
		return err
	})
	return say, err
}

// settle takes the plain way for a job whose attempt completed, and the long way, under a lock and
// through the rules of jobstate, for all others.
func (s *Store) settle(ctx context.Context, q *gen.Queries, outcomes []Outcome) ([]Snapshot, error) {
	said := map[uuid.UUID]int{}
	for _, o := range outcomes {
		said[o.JobID]++
	}
	var plain, others []Outcome
	for _, o := range outcomes {
		if o.Kind == jobstate.KindCompleted && said[o.JobID] == 1 {
			plain = append(plain, o)
		} else {
			others = append(others, o)
		}
	}
	if len(others) == 0 {
		return complete(ctx, q, plain)
	}
	// The plain ones too: who takes his rows in two goes meets others in the wrong order.
	jobs, err := lockJobs(ctx, q, jobIDs(outcomes))
	if err != nil {
		return nil, err
	}
	saved, err := s.apply(ctx, q, "outcome", others, jobs)
	if err != nil || len(plain) == 0 {
		return saved, err
	}
	completed, err := complete(ctx, q, plain)
	return append(saved, completed...), err
}

// apply settles by the rules of jobstate, on rows that are locked.
func (s *Store) apply(
	ctx context.Context, q *gen.Queries, by string, outcomes []Outcome, jobs map[uuid.UUID]*lockedJob,
) ([]Snapshot, error) {
	for _, o := range outcomes {
		if job := jobs[o.JobID]; job != nil {
			if err := job.outcome(by, o, s.cfg.MaxLost); err != nil {
				return nil, err
			}
		}
	}
	return saveJobs(ctx, q, jobs)
}

func jobIDs(outcomes []Outcome) []uuid.UUID {
	ids := make([]uuid.UUID, len(outcomes))
	for i, o := range outcomes {
		ids[i] = o.JobID
	}
	return ids
}

func complete(ctx context.Context, q *gen.Queries, outcomes []Outcome) ([]Snapshot, error) {
	// In the order in which JobsLock takes rows.
	slices.SortFunc(outcomes, func(a, b Outcome) int { return slices.Compare(a.JobID[:], b.JobID[:]) })
	var p gen.JobsCompleteParams
	for _, o := range outcomes {
		p.JobIDs = append(p.JobIDs, o.JobID)
		p.Attempts = append(p.Attempts, int32Of(o.Attempt))
		p.Outputs = append(p.Outputs, o.Output)
		p.WorkerIDs = append(p.WorkerIDs, o.WorkerID)
		p.StartedAts = append(p.StartedAts, orZero(o.StartedAt))
		p.Entries = append(p.Entries, mustJSON(jobevent.Move{
			To: string(jobstate.Completed), Attempt: o.Attempt, By: "outcome", Outcome: string(o.Kind),
			WorkerID: o.WorkerID, StartedAt: utc(o.StartedAt), FinishedAt: utc(o.FinishedAt),
		}))
	}
	rows, err := q.JobsComplete(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("complete jobs: %w", err)
	}
	return snapshotsOf(rows), nil
}
