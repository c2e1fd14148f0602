// Package held releases debounced jobs when no request has changed them for their delay.
package held

import (
	"context"
	"time"

	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/functions/gateway/publishbuffer"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apievent"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// lookEvery is the longest time between two looks: another process may have accepted a job, or a job got a command.
const lookEvery = time.Second

// Releaser publishes jobs that were held. All gateways do it, each for other jobs.
// Why the API holds debounced jobs: docs/decisions/scheduling.md#a-debounced-job-is-held-by-the-api
type Releaser struct {
	store     *jobstore.Store
	outgoing  *publishbuffer.Buffer
	wake      chan struct{}
	releasing telemetry.Trouble
}

// New makes a releaser.
func New(store *jobstore.Store, outgoing *publishbuffer.Buffer) *Releaser {
	return &Releaser{
		store: store, outgoing: outgoing, wake: make(chan struct{}, 1),
		releasing: telemetry.Trouble{What: "release debounced jobs"},
	}
}

// Wake makes Run look when the next job is due, because one has been accepted or changed.
func (r *Releaser) Wake() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Run releases jobs until ctx ends.
func (r *Releaser) Run(ctx context.Context) {
	for {
		next := lookEvery
		err := edge.Within(ctx, edge.RequestPatience, func(ctx context.Context) (err error) {
			next, err = r.pass(ctx)
			return err
		})
		if ctx.Err() != nil {
			return
		}
		if r.releasing.Note(ctx, err); err != nil {
			next = lookEvery
		}
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		case <-time.After(next):
		}
	}
}

// pass releases some jobs. It returns how long to wait for the next pass.
func (r *Releaser) pass(ctx context.Context) (next time.Duration, err error) {
	released, err := r.store.Release(ctx)
	if err != nil {
		return 0, err
	}
	events := make([]jobevent.Item, 0, len(released.Jobs)+len(released.Commands))
	for _, job := range released.Jobs {
		e, err := apievent.Created(job)
		if err != nil {
			return 0, err
		}
		telemetry.SetRoot(ctx, &e, "release job")
		events = append(events, e)
	}
	for _, command := range released.Commands {
		e, err := apievent.Command(command)
		if err != nil {
			return 0, err
		}
		events = append(events, e)
	}
	r.outgoing.Add(events)
	if released.More {
		return 0, nil
	}
	return min(released.Next, lookEvery), nil
}
