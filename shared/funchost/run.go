package funchost

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/shared/eventkeys"
	"github.com/jobweaver/jobweaver/shared/funchost/httpserver"
	"github.com/jobweaver/jobweaver/shared/funchost/probe"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

const (
	// maxBatch is the most items of one call of Handle.
	maxBatch = 1000
	// endPatience is how long after the grace period parts may take to return whose context has just ended.
	endPatience = time.Second
)

// host is one function, and everything that it needs to run.
type host struct {
	cfg       Config
	f         Function
	meter     telemetry.Meter
	tracing   *telemetry.Tracing
	publisher *publisher
	httpKeys  *eventkeys.Keys           // verify events over HTTP; nil: all are accepted
	topicKeys *eventkeys.Keys           // the same for records
	consumer  *kafkaevent.BatchConsumer // nil: consumes no topic
	clock     chan struct{}             // has one value while a tick is under way
	pinged    chan struct{}             // has one value while a ping waits for its turn to tick
	slots     chan struct{}             // has one value for each request that is being handled
	shared    sharedCalls               // of requests
	backlog   *backlog

	calls    probe.Calls
	handling telemetry.Trouble
	ticking  telemetry.Trouble
	stuck    telemetry.Trouble
	monitor  *probe.Monitor
	inFlight httpserver.InFlight
	stopping atomic.Bool // accept no new work

	previous <-chan struct{} // closed when the events of the batch before are published; nil: there was no batch
}

// gcPercent is how much the heap may grow beyond the live memory before a garbage collection. A function keeps little
// memory and allocates much: with Go's default of 100 a fifth of its CPU time under load goes into collecting.
const gcPercent = 300

// relaxGC sets it for the process, unless the operator has set GOGC.
var relaxGC = sync.OnceFunc(func() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
})

// Run hosts f until ctx ends, then drains: it accepts no new work, finishes what it has accepted, publishes, commits,
// and returns nil. It returns an error if it cannot start, if f.Run fails, or if the drain takes longer than the grace
// period; then events that were not acknowledged are delivered again.
func Run(ctx context.Context, cfg Config, f Function) error {
	relaxGC()
	cfg = cfg.withDefaults()
	ctx, stop := context.WithCancel(telemetry.With(ctx, telemetry.FieldService, f.Name))
	defer stop()
	tracing, err := telemetry.OpenTracing(cfg.Trace, f.Name, Version, telemetry.Logger(ctx))
	if err != nil {
		return err
	}
	defer tracing.Close() // after the drain, which has spans too
	ctx = telemetry.WithTracing(ctx, tracing)
	h, err := newHost(cfg, f, tracing)
	if err != nil {
		return err
	}
	work, endWork := context.WithCancel(context.WithoutCancel(ctx))
	defer endWork()
	h.backlog = newBacklog(work)
	parts := &group{stop: stop}
	err = h.startMonitor(ctx, parts)
	var web *web
	if err == nil {
		cfg.beside.add(h)
		web, err = h.listen(work)
	}
	if err != nil {
		stop()
		h.publisher.close()
		return errors.Join(err, parts.Wait())
	}
	telemetry.Logger(ctx).InfoContext(ctx, "function runs", "version", Version,
		"transport", cfg.FuncTransport, "topics", f.Topics, "sink", cfg.Sink, "address", web.address())

	defer h.watched()()
	h.start(ctx, work, parts)
	serving := &group{stop: stop}
	for _, server := range web.servers {
		serving.start(server.serve)
	}
	<-ctx.Done()
	h.stopping.Store(true)
	telemetry.Logger(ctx).InfoContext(ctx, "function stops", "grace", cfg.ShutdownGrace.String())
	grace := time.AfterFunc(cfg.beside.left(cfg.ShutdownGrace), endWork)
	defer grace.Stop()
	return h.drain(work, web, parts, serving)
}

func newHost(cfg Config, f Function, tracing *telemetry.Tracing) (*host, error) {
	if err := cfg.check(f); err != nil {
		return nil, err
	}
	meter := telemetry.NewMeter(f.Name)
	meter.Runs(Version)
	h := &host{
		cfg: cfg, f: f, meter: meter, tracing: tracing,
		clock:    make(chan struct{}, 1),
		pinged:   make(chan struct{}, 1),
		slots:    make(chan struct{}, maxRequests),
		handling: telemetry.Trouble{What: "handle"},
		ticking:  telemetry.Trouble{What: "tick"},
		stuck:    telemetry.Trouble{What: "liveness probe"},
	}
	if len(f.Topics) > 0 && cfg.FuncTransport == TransportKafka {
		consumer, err := kafkaevent.NewBatchConsumer(cfg.Kafka, "jobweaver-"+f.Name, f.Topics, maxBatch)
		if err != nil {
			return nil, err
		}
		consumer.Grace = cfg.ShutdownGrace + endPatience // the context work ends first
		consumer.Group().Watch = kafkaevent.Watch{Committed: meter.Committed, Disconnected: meter.Disconnected}
		h.consumer = consumer
	}
	err := h.openKeys()
	if err != nil {
		return nil, err
	}
	if h.publisher, err = newPublisher(cfg, meter); err != nil {
		return nil, err
	}
	h.publisher.tracing = tracing
	return h, nil
}

// startMonitor watches what the function depends on, if the process serves probes.
func (h *host) startMonitor(ctx context.Context, parts *group) error {
	if h.cfg.NoListen && h.cfg.beside == nil {
		return nil
	}
	monitor, closing, err := h.newMonitor()
	if err != nil {
		return err
	}
	h.monitor = monitor
	parts.start(func() error {
		defer closing()
		monitor.Run(ctx)
		return nil
	})
	return nil
}

// watched registers the metrics that are read on demand; the returned function unregisters them.
func (h *host) watched() (unwatched func()) {
	var stops []func()
	if h.f.Pool != nil {
		stops = append(stops, h.meter.WatchPool(h.f.Pool))
	}
	if h.monitor != nil {
		stops = append(stops, h.meter.WatchReady(func() bool { return h.ready(time.Now()) == nil }))
	}
	if h.f.Metrics != nil {
		stops = append(stops, h.f.Metrics(h.meter))
	}
	if h.consumer != nil {
		stops = append(stops, h.meter.WatchPartitions(h.consumer.Group().Figures))
	}
	return func() {
		for _, stop := range stops {
			stop()
		}
	}
}

// start starts the parts. They accept no new work once ctx ends, and finish with the context work.
func (h *host) start(ctx, work context.Context, parts *group) {
	if h.consumer != nil {
		parts.start(func() error {
			return h.consumer.Run(ctx, func(_ context.Context, batch []*sarama.ConsumerMessage) (func() error, error) {
				return h.consume(work, batch)
			})
		})
	}
	if h.f.Tick != nil && h.cfg.Ticks == ticksOn {
		parts.start(func() error { h.tickLoop(ctx, work); return nil })
	}
	if len(h.f.Fence.Topics) > 0 && len(h.cfg.Kafka.Brokers) > 0 && (h.cfg.Sink == "" || h.f.KafkaOnly) {
		parts.start(func() error { h.checkFence(ctx); return nil })
	}
	if h.f.Run != nil {
		parts.start(func() error { return h.f.Run(ctx, h.publisher.publish) })
	}
}

// group is a group of parts: if one fails, all stop.
type group struct {
	errgroup.Group
	stop func()
}

func (g *group) start(part func() error) {
	g.Go(func() error {
		err := part()
		if err != nil {
			g.stop()
		}
		return err
	})
}

// drain waits until all parts have ended, in the order of their dependencies, or until the grace period is over.
func (h *host) drain(work context.Context, web *web, parts, serving *group) error {
	ended := make(chan error, 1)
	go func() {
		if h.servesHTTP() && !h.f.HTTPLast {
			h.inFlight.Quiet(work, h.cfg.ShutdownDelay, h.cfg.ShutdownGrace/2)
			web.shutdown(work)
		}
		if h.f.HTTPEnded != nil {
			h.f.HTTPEnded()
		}
		err := parts.Wait()
		h.backlog.finish(h.cfg.ShutdownGrace / 2)
		web.shutdown(work) // the probes
		err = errors.Join(err, serving.Wait())
		h.publisher.close()
		ended <- err
	}()
	var err error
	select {
	case err = <-ended:
	case <-work.Done():
		select {
		case err = <-ended:
		case <-time.After(endPatience):
		}
	}
	if err == nil && work.Err() != nil {
		return fmt.Errorf("stop within %s: %w", h.cfg.ShutdownGrace, errLate)
	}
	return err
}

var errLate = errors.New("unfinished work did not end in time, its events are delivered again")
