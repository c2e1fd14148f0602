// Package retention deletes the scheduler's jobs that ended long ago. Its events make the API delete them too.
package retention

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/schedulerdb"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// Name is the function's name.
const Name = "retention"

const (
	// page is how many jobs one transaction visits.
	page = 1000
	// share bounds the time of the walks: at most 1 / share of all time.
	share = 10
	// pauseMost bounds the pause after a page that took long.
	pauseMost = 5 * time.Second
	// rest is the time between two walks.
	rest = time.Hour
)

// Function walks over the jobs in the order of their ids, which is that of their age. Its position is in memory only:
// if it is lost, the next walk finds the remaining jobs.
type Function struct {
	store *schedulerdb.Store
	keep  schedulerdb.Retention

	mu     sync.Mutex
	after  uuid.UUID     // the last id of the walk
	pause  time.Duration // before the next page
	begins time.Time     // the next walk
	gone   int           // jobs in this walk
}

// New returns the function on the scheduler's database. An error begins with the setting's name.
func New(keep schedulerdb.Retention, store *schedulerdb.Store) (*Function, error) {
	if err := keep.Check(); err != nil {
		return nil, err
	}
	return &Function{store: store, keep: keep}, nil
}

// Host is how the function is hosted.
func (f *Function) Host() funchost.Function {
	return funchost.Function{
		Name: Name, Tick: f.Tick, Ready: f.store.Ping, Pool: f.store.Connections,
		Fence: funchost.Fence{Setting: "FORGET_AFTER", Age: f.keep.Forget, Topics: []string{jobevent.TopicCreated}},
	}
}

// Tick waits for the pause after the previous page, and then handles one page of the walk. So pings do as much as the
// function's own clock. Between two walks it does nothing.
func (f *Function) Tick(ctx context.Context) ([]jobevent.Item, time.Duration, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if left := time.Until(f.begins); left > 0 {
		return nil, left, nil
	}
	select {
	case <-time.After(f.pause):
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
	began := time.Now()
	effects, done, err := f.store.Retire(ctx, f.keep, f.after, page)
	if err != nil {
		return nil, 0, err
	}
	f.pause = min((share-1)*time.Since(began), pauseMost)
	f.after, f.gone = done.Last, f.gone+done.Deleted+done.Forgotten
	events, err := effects.Events(Name)
	if done.More || err != nil {
		return events, 0, err
	}
	if f.gone > 0 {
		telemetry.Logger(ctx).InfoContext(ctx, "old jobs deleted", "jobs", f.gone)
	}
	f.after, f.gone, f.begins = uuid.Nil, 0, time.Now().Add(rest)
	return events, rest, nil
}
