// Package runjob is the worker: it takes attempts from the run-job topics of its queues, runs each at most once, and
// publishes the outcomes.
//
//	records → claim batch → bounded pool → settle batch → publish → mark → commit
//
// A Go program can run its own job types in the same worker: see the example.
package runjob

import (
	"cmp"
	"crypto/rand"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/functions/runjob/pool"
	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/funchost/probe"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
	"github.com/jobweaver/jobweaver/shared/sealing"
	"github.com/jobweaver/jobweaver/shared/telemetry"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

// Name is the function's name.
const Name = "runjob"

// Function is one worker. Its id is new at each start, so a Function runs once.
type Function struct {
	id        string
	startedAt time.Time
	cfg       Config
	timing    timing
	store     *workerdb.Store
	registry  *handlers.Registry
	sealer    *sealing.Sealer
	metrics   *metrics
	troubles  *troubles
	meter     telemetry.Meter

	consumers  *consumers
	cancels    *kafkaevent.Tailer
	pool       *pool.Pool
	heartbeats *heartbeats
	wake       chan struct{} // there may be attempts to claim and room for them
	wantsRoom  atomic.Bool   // claiming waits for room, not for records

	unclaimed unclaimed // with a Demand only

	calls      probe.Calls
	finished   *intake[pool.Finished] // decided by the pool, to be settled
	toPublish  *intake[pool.Finished] // settled, to be published
	wishes     *intake[wish]          // requests to cancel attempts that are not in the pool
	saves      *intake[save]          // checkpoints to be saved
	left       chan struct{}          // closed at the end of Run
	answered   atomic.Int64           // the number of the latest claim whose attempts are in the pool
	settling   atomic.Int64           // outcomes that settleAll has taken
	publishing atomic.Int64           // outcomes that publishAll has taken
	weight     atomic.Int64           // bytes of all outcomes that are not published yet
}

// New returns a worker that uses the database of store and runs the registry's job types. Metrics go to registerer.
func New(
	cfg Config, store *workerdb.Store, registry *handlers.Registry, registerer prometheus.Registerer,
) (*Function, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	sealer, err := sealing.New(cfg.Sealing)
	if err != nil {
		return nil, err
	}
	f := &Function{
		id: newID(), startedAt: time.Now().UTC(), cfg: cfg, timing: defaultTiming, store: store, registry: registry,
		sealer:   sealer,
		meter:    telemetry.NewMeter(cmp.Or(cfg.As, Name)),
		troubles: newTroubles(),
		wake:     make(chan struct{}, 1),
		finished: newIntake[pool.Finished](), toPublish: newIntake[pool.Finished](), wishes: newIntake[wish](),
		saves: newIntake[save](), left: make(chan struct{}),
	}
	f.heartbeats = newHeartbeats()
	f.pool = pool.New(cfg.PoolSize, cfg.QueueSize, f.timing.silence, f.decided, f.poolChanged)
	if cfg.Demand != nil {
		f.pool.Demand, f.pool.Defers = cfg.Demand.Slots, true
	}
	if f.consumers, err = newConsumers(f.cfg, f.meter, f.wakeUp, f.heartbeats.change); err != nil {
		return nil, err
	}
	if f.cancels, err = kafkaevent.NewTailer(cfg.Kafka, jobevent.TopicAttemptCancel); err != nil {
		return nil, err
	}
	if f.metrics, err = newMetrics(f, registerer); err != nil {
		return nil, err
	}
	return f, nil
}

// newID returns an id that no other worker has, now or later.
func newID() string {
	host, err := os.Hostname()
	if err != nil {
		host = "worker"
	}
	return pool.Clean(host, 64) + "-" + strings.ToLower(rand.Text()[:10])
}

// ID returns the worker's id in events and rows.
func (f *Function) ID() string { return f.id }

// Queues returns the queues that the worker serves at the moment.
func (f *Function) Queues() []string { return f.consumers.queues() }

// Host is how the function is hosted.
func (f *Function) Host() funchost.Function {
	return funchost.Function{
		Name: cmp.Or(f.cfg.As, Name), Run: f.Run, Ready: f.store.Ping, Joined: f.consumers.joined, Oldest: f.oldest,
		KafkaOnly: true,
		Failing:   f.troubles.ongoing,
		Pool:      f.store.Connections,
		Metrics:   func(m telemetry.Meter) func() { return m.WatchPartitions(f.consumers.figures) },
		Fence:     f.cfg.fence(),
	}
}

// oldest returns the start of the worker's oldest step that must not take long; the liveness probe fails when it does.
// A handler may run until its timeout. But if the handlers in all slots are past their timeout, only a new process can
// run attempts.
func (f *Function) oldest() (what string, since time.Time) {
	what, since = f.calls.Oldest()
	if at := f.pool.Outstayed(time.Now()); !at.IsZero() && (since.IsZero() || at.Before(since)) {
		return "every slot's handler", at
	}
	return what, since
}

func (f *Function) decided(one pool.Finished) {
	if a := one.Attempt; f.cfg.Demand != nil && a != nil && a.StartedAt.IsZero() {
		f.cfg.Demand.Forget(a.Key())
	}
	one.Bytes = one.Weight()
	f.weight.Add(one.Bytes)
	f.finished.put(one)
}

func (f *Function) poolChanged(room int) {
	f.heartbeats.change()
	if room > 0 && f.wantsRoom.Load() {
		f.wakeUp()
	}
}

func (f *Function) wakeUp() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}
