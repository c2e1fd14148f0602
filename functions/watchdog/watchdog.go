// Package watchdog consumes the workers' heartbeats, and asks about attempts that no worker lists. It settles no
// attempt: only the workers' database decides an outcome.
package watchdog

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/schedulerdb"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// Name is the function's name.
const Name = "watchdog"

const (
	// every is how often it looks for expired leases.
	every = 2 * time.Second
	// slowest is how often it looks at least if looking takes long: an open transaction keeps dead index entries, and
	// counting scans them.
	slowest = 10 * time.Second
	// share bounds the time of looking: at most 1 / share of all time.
	share = 20
)

// Function keeps the leases.
type Function struct {
	store *schedulerdb.Store

	mu   sync.Mutex
	last time.Time // when it looked last; zero: not yet

	counted atomic.Pointer[telemetry.QueueFigures] // at the last look
}

// New returns the function on the scheduler's database.
func New(store *schedulerdb.Store) *Function { return &Function{store: store} }

// Host is how the function is hosted.
func (f *Function) Host() funchost.Function {
	return funchost.Function{
		Name: Name, Topics: []string{jobevent.TopicHeartbeat}, Handle: f.Handle, Tick: f.Tick, Ready: f.store.Ping,
		Pool: f.store.Connections, Metrics: func(m telemetry.Meter) func() { return m.WatchQueues(f.counted.Load) },
	}
}

// Handle takes worker.heartbeat events.
func (f *Function) Handle(ctx context.Context, batch []jobevent.Item) ([]jobevent.Item, error) {
	heartbeats := make([]jobevent.Heartbeat, len(batch))
	for i, e := range batch {
		var err error
		if heartbeats[i], err = jobevent.DecodeAs[jobevent.Heartbeat](e, jobevent.TypeHeartbeat); err != nil {
			return nil, err
		}
	}
	effects, err := f.store.Heartbeat(ctx, heartbeats)
	if err != nil {
		return nil, err
	}
	return effects.Events(Name)
}

// Tick counts the attempts that are out and the jobs that wait, asks again about attempts whose lease has run out, and
// repeats unanswered cancels.
func (f *Function) Tick(ctx context.Context) ([]jobevent.Item, time.Duration, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now, sinceLast := time.Now(), every
	if !f.last.IsZero() {
		sinceLast = now.Sub(f.last)
	}
	counted, err := f.store.Count(ctx)
	if err != nil {
		return nil, 0, err
	}
	f.counted.Store(counted.Figures())
	next := min(max(every, share*time.Since(now)), slowest)
	effects, err := f.store.AskAgain(ctx, counted, sinceLast)
	if err != nil {
		return nil, 0, err
	}
	f.last = now
	if len(effects.Runs) >= schedulerdb.AskMost {
		next = 0 // there are more
	}
	events, err := effects.Events(Name)
	return events, next, err
}
