// Package outcome applies the outcomes of attempts that workers report: the job ends, gets its next attempt, or becomes
// a dead letter.
package outcome

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/retrypolicy"
	"github.com/jobweaver/jobweaver/shared/schedulerdb"
)

// Name is the function's name.
const Name = "outcome"

// Function settles attempts.
type Function struct {
	store *schedulerdb.Store
}

// New returns the function on the scheduler's database.
func New(store *schedulerdb.Store) *Function { return &Function{store} }

// Host is how the function is hosted.
func (f *Function) Host() funchost.Function {
	return funchost.Function{
		Name:   Name,
		Topics: []string{jobevent.TopicEnded},
		Handle: f.Handle, Ready: f.store.Ping, Pool: f.store.Connections,
	}
}

// Handle takes job.completed, job.failed and job.waiting events.
func (f *Function) Handle(ctx context.Context, batch []jobevent.Item) ([]jobevent.Item, error) {
	outcomes := make([]schedulerdb.Outcome, len(batch))
	for i, e := range batch {
		var err error
		if outcomes[i], err = read(e); err != nil {
			return nil, err
		}
		if outcomes[i].JobID == uuid.Nil {
			return nil, fmt.Errorf("take outcome %s without job: %w", e.ID(), jobevent.ErrInvalid)
		}
	}
	effects, err := f.store.Settle(ctx, outcomes)
	if err != nil {
		return nil, err
	}
	return effects.Events(Name)
}

func read(e jobevent.Item) (schedulerdb.Outcome, error) {
	switch e.Type() {
	case jobevent.TypeCompleted:
		d, err := jobevent.Decode[jobevent.Completed](e)
		return schedulerdb.Outcome{
			JobID: d.JobID, Attempt: d.Attempt, Kind: jobstate.KindCompleted, WorkerID: d.WorkerID, RanBy: d.RanBy,
			StartedAt: &d.StartedAt, FinishedAt: &d.FinishedAt, Output: d.Output,
		}, err
	case jobevent.TypeWaiting:
		d, err := jobevent.Decode[jobevent.Waiting](e)
		return schedulerdb.Outcome{
			JobID: d.JobID, Attempt: d.Attempt, Kind: jobstate.KindWaiting, WorkerID: d.WorkerID, RanBy: d.RanBy,
			StartedAt: &d.StartedAt, CallbackTimeout: millis(d.CallbackTimeoutMs),
		}, err
	case jobevent.TypeFailed:
		d, err := jobevent.Decode[jobevent.Failed](e)
		if err != nil {
			return schedulerdb.Outcome{}, err
		}
		return readFailed(d)
	default:
		return schedulerdb.Outcome{}, fmt.Errorf("take outcome of type %s: %w", e.Type(), jobevent.ErrInvalid)
	}
}

func readFailed(d jobevent.Failed) (schedulerdb.Outcome, error) {
	switch d.Kind {
	case jobevent.KindFailed, jobevent.KindLost:
		if d.ErrorCode == "" {
			return schedulerdb.Outcome{}, fmt.Errorf("take %s outcome without error code: %w", d.Kind, jobevent.ErrInvalid)
		}
	case jobevent.KindInterrupted, jobevent.KindCancelled, jobevent.KindSnoozed:
	case jobstate.KindCompleted, jobstate.KindWaiting:
		return schedulerdb.Outcome{}, fmt.Errorf("take failed outcome of kind %s: %w", d.Kind, jobevent.ErrInvalid)
	default:
		return schedulerdb.Outcome{}, fmt.Errorf("take failed outcome of unknown kind %q: %w", d.Kind, jobevent.ErrInvalid)
	}
	return schedulerdb.Outcome{
		JobID: d.JobID, Attempt: d.Attempt, Kind: d.Kind, WorkerID: d.WorkerID, RanBy: d.RanBy,
		StartedAt: d.StartedAt, FinishedAt: &d.FinishedAt, ErrorCode: d.ErrorCode, Message: d.Message,
		Retryable: d.Retryable, RetryAfter: millis(d.RetryAfterMs),
	}, nil
}

// millis converts a delay that a worker requests: at most a year, as in a retry policy.
func millis(ms int64) time.Duration {
	return time.Duration(min(max(ms, 0), retrypolicy.MaxDelayMs)) * time.Millisecond
}
