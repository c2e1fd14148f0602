// Package dispatch is the scheduler's clock: it makes due jobs ready, and dispatches jobs that other functions have
// left.
package dispatch

import (
	"context"
	"time"

	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/schedulerdb"
)

// Name is the function's name.
const Name = "dispatch"

// idle is the longest sleep of the clock.
const idle = 10 * time.Second

// Function ticks when something is due.
type Function struct {
	store *schedulerdb.Store
	wake  chan struct{}
}

// New returns the function on the scheduler's database.
func New(store *schedulerdb.Store) *Function {
	return &Function{store: store, wake: make(chan struct{}, 1)}
}

// Host is how the function is hosted.
func (f *Function) Host() funchost.Function {
	return funchost.Function{
		Name: Name, Tick: f.Tick, Wake: f.wake, Ready: f.store.Ping, Pool: f.store.Connections, Run: f.listen,
	}
}

// Tick is one pass of the clock.
func (f *Function) Tick(ctx context.Context) ([]jobevent.Item, time.Duration, error) {
	effects, next, err := f.store.Due(ctx, idle)
	if err != nil {
		return nil, 0, err
	}
	events, err := effects.Events(Name)
	return events, next, err
}

// listen lets the database wake the clock, which also ticks without notifications.
func (f *Function) listen(ctx context.Context, _ funchost.Publish) error {
	funchost.Listen(ctx, f.wake, f.store.Listen)
	return nil
}
