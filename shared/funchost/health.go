package funchost

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jobweaver/jobweaver/shared/funchost/probe"
	"github.com/jobweaver/jobweaver/shared/funchost/sink"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

const (
	defaultReadinessGrace = 10 * time.Second
	// defaultStuckAfter is longer than a single call of a handler or a tick may take.
	defaultStuckAfter = 10 * time.Minute
)

// newMonitor returns the monitor of this function's dependencies, in the order in which a probe names them. A function
// with HTTP of its own needs no broker: it publishes accepted requests when the broker is back. The last dependency is
// that the function's work succeeds: it fails if the schema lacks a table or the role a right, although the database
// answers. The returned function closes what the checks hold open.
func (h *host) newMonitor() (*probe.Monitor, func(), error) {
	m, closing := probe.NewMonitor(h.cfg.ReadinessGrace), func() {}
	if h.f.Ready != nil {
		database := external("database is away", "ask database", h.f.Ready)
		database.Why, database.Certain = pgpool.Outage, pgpool.IsFull
		m.Add(database)
	}
	if h.f.HTTP != nil {
		return m, closing, nil
	}
	if h.cfg.Sink != "" && !h.f.Silent {
		m.Add(external("sink is away", "ask sink", h.cfg.reachSink))
	}
	if consumes := h.f.KafkaOnly || h.consumer != nil; consumes || h.cfg.Sink == "" && !h.f.Silent {
		ask, close, err := h.cfg.brokerCheck()
		if err != nil {
			return nil, nil, err
		}
		closing = close
		m.Add(external("broker is away", "ask broker", ask))
	}
	h.addOwn(m)
	return m, closing, nil
}

// brokerCheck returns how to ask whether a broker answers, by a connection that functions of one process share.
func (c Config) brokerCheck() (ask func(context.Context) error, closing func(), err error) {
	if c.beside != nil {
		return c.beside.askBroker, func() {}, nil
	}
	pulse, err := kafkaevent.NewPulse(c.Kafka)
	if err != nil {
		return nil, nil, err
	}
	return pulse.Ask, pulse.Close, nil
}

// addOwn adds the dependencies that this process checks without another system.
func (h *host) addOwn(m *probe.Monitor) {
	if h.f.Tick != nil && h.cfg.Ticks == ticksOn {
		m.Add(own("its ticks fail", func() bool { return !h.ticking.Ongoing() }))
	}
	if h.f.Failing != nil {
		m.Add(own("its work fails", func() bool { return !h.f.Failing() }))
	}
	if h.cfg.FuncTransport == TransportHTTP {
		return // a function that is not ready receives no events, so a failure of handling or publishing would never end
	}
	if h.consumer != nil {
		m.Add(own("not in its consumer group", h.consumer.Group().Joined))
		m.Add(own("handling events fails", func() bool { return !h.handlingFails() }))
	}
	if h.f.Joined != nil {
		m.Add(own("not in its consumer groups", h.f.Joined))
	}
	m.Add(own("cannot publish", func() bool { return !h.publisher.trouble.Ongoing() }))
}

func external(reason, what string, check func(context.Context) error) *probe.Dependency {
	return &probe.Dependency{Reason: reason, External: true, Check: check, Trouble: telemetry.Trouble{What: what}}
}

func own(reason string, holds func() bool) *probe.Dependency {
	return &probe.Dependency{Reason: reason, Check: func(context.Context) error {
		if !holds() {
			return errors.New(reason)
		}
		return nil
	}}
}

// handlingFails reports whether handling fails for records that this process holds. The records that failed may belong
// to another member of the group by now: a process without records to handle has no success that would end the trouble.
// Why: docs/decisions/events.md#pings-and-readiness-do-not-depend-on-the-broker
func (h *host) handlingFails() bool {
	lags := func(p *kafkaevent.Partition) bool { return p.Lag() > 0 }
	return h.handling.Ongoing() && slices.ContainsFunc(h.consumer.Group().Partitions(), lags)
}

// ready returns an error if the function cannot do its work. The details are in the log, not in the answer, which
// anyone may read.
func (h *host) ready(now time.Time) error {
	if h.stopping.Load() {
		return errStopping
	}
	return h.monitor.Ready(now)
}

// alive returns an error if a call has been under way for too long.
func (h *host) alive(now time.Time) error {
	oldest := []func() (string, time.Time){h.calls.Oldest}
	if h.f.Oldest != nil {
		oldest = append(oldest, h.f.Oldest)
	}
	return h.monitor.Alive(now, h.cfg.StuckAfter, oldest...)
}

// Reachable returns a function that checks whether the destination of events is available: whether the sink accepts a
// connection, or a broker answers.
func Reachable(cfg Config) func(ctx context.Context) error {
	if cfg.Sink != "" {
		return cfg.reachSink
	}
	return func(ctx context.Context) error { return kafkaevent.Answers(ctx, cfg.Kafka) }
}

func (c Config) reachSink(ctx context.Context) error {
	trust, err := c.sinkTrust()
	if err != nil {
		return err
	}
	return sink.Reach(ctx, c.Sink, trust)
}
