// Package bulk executes operations: one command for many jobs, a page of jobs at a time.
package bulk

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apievent"
	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// Name is the function's name.
const Name = "bulk"

const (
	// every is the time between looks for operations without a notification.
	every = time.Second
	// atOnce is how many operations share a pass.
	atOnce = 100
	// most bounds roughly how many commands a pass stores. It publishes them at its end.
	most = 2_000
	// keep is how long an operation that has ended is kept.
	keep = 30 * 24 * time.Hour
	// forgetEvery is how often operations older than that are deleted.
	forgetEvery = time.Hour
)

// Function ticks while there are operations.
type Function struct {
	store  stores
	wake   chan struct{}
	last   uuid.UUID // the operation of the last step
	forget time.Time // when it deletes old operations next
}

// New returns the function on the API's database.
func New(db *apidb.Store) *Function {
	return &Function{store: newStores(db), wake: make(chan struct{}, 1)}
}

// Host is how the function is hosted.
func (f *Function) Host() funchost.Function {
	return funchost.Function{
		Name: Name, Tick: f.Tick, Wake: f.wake, Ready: f.store.Ping, Pool: f.store.Connections, Run: f.listen,
	}
}

// Tick takes a step of each unfinished operation, beginning after the last one of the pass before, so that a few large
// operations do not use up all passes. It publishes the commands that it has stored; reconcile republishes lost ones.
func (f *Function) Tick(ctx context.Context) (events []jobevent.Item, next time.Duration, err error) {
	ids, err := f.store.operations.UnfinishedOperations(ctx, f.last, atOnce)
	if err != nil {
		return nil, 0, err
	}
	next = every
	var failed []error
	for _, id := range ids {
		f.last = id
		commands, more, err := f.store.operations.Operate(ctx, id)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		if more {
			next = 0
		}
		for _, command := range commands {
			e, err := apievent.Command(command)
			if err != nil {
				return nil, 0, err
			}
			events = append(events, e)
		}
		if len(events) >= most {
			return events, 0, nil
		}
	}
	if len(failed) > 0 && len(events) == 0 { // if there are events to publish, the next pass meets the error again
		return nil, 0, errors.Join(failed...)
	}
	f.forgetOld(ctx)
	return events, next, nil
}

// forgetOld deletes old operations. Its failure does not hold up the pass.
func (f *Function) forgetOld(ctx context.Context) {
	if time.Now().Before(f.forget) {
		return
	}
	f.forget = time.Now().Add(forgetEvery)
	if err := f.store.operations.ForgetOperations(ctx, keep); err != nil {
		telemetry.Logger(ctx).WarnContext(ctx, "cannot forget old operations", "error", err)
	}
}

// listen lets the database wake the clock, which also ticks without notifications.
func (f *Function) listen(ctx context.Context, _ funchost.Publish) error {
	funchost.Listen(ctx, f.wake, f.store.operations.ListenOperations)
	return nil
}
