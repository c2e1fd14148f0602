package funchost

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/jobweaver/jobweaver/shared/kafkaevent"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

const (
	defaultReadinessGrace = 10 * time.Second

	// askEvery is how long after an answer a need is asked again, where the grace is no shorter than five of them.
	askEvery = 2 * time.Second
	// askAgain is the same after an ask without one: who is back is to be known at once.
	askAgain = 250 * time.Millisecond
	// lookAgain is the same of what this process knows by itself.
	lookAgain = 50 * time.Millisecond
	// askPatience is how long an ask may take, where the grace is no shorter than two of them: a pool of connections
	// may be busy, and that is no reason to take the function away from those who wait for it.
	askPatience = 5 * time.Second
)

// care knows whether what a function cannot work without is there. It asks from the background, so that a probe is
// answered at once, whatever hangs.
type care struct {
	grace time.Duration
	needs []*need
}

// need is one thing. It is there from its first answer on, and away when it has not answered for as long as the grace:
// a broker that moves its leaders or a database that fails over is none of a probe's business.
type need struct {
	away    string // what a probe is told
	outside bool   // nothing that this process could mend by starting again
	ask     func(ctx context.Context) error
	trouble telemetry.Trouble

	mu    sync.Mutex
	seen  bool      // it has answered
	since time.Time // when the first ask began that had no answer; zero: the last one had
	last  time.Time // when the last ask ended that had none
}

func (n *need) note(began time.Time, err error) (there bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case err == nil:
		n.seen, n.since = true, time.Time{}
		return true
	case n.since.IsZero():
		n.since = began
	}
	n.last = time.Now()
	return false
}

// ready is an error where it is not there, or has been away for longer than the grace.
func (n *need) ready(grace time.Duration, now time.Time) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.seen || !n.since.IsZero() && now.Sub(n.since) > grace {
		return errors.New(n.away)
	}
	return nil
}

// lastAway is when it was last away, as far as is known; now, where it is.
func (n *need) lastAway(now time.Time) time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.seen || !n.since.IsZero() {
		return now
	}
	return n.last
}

// watch asks until ctx ends.
func (c *care) watch(ctx context.Context) {
	var asking sync.WaitGroup
	for _, n := range c.needs {
		asking.Go(func() { c.watchOne(ctx, n) })
	}
	asking.Wait()
}

func (c *care) watchOne(ctx context.Context, n *need) {
	for {
		began := time.Now()
		err := c.askOne(ctx, n)
		if ctx.Err() != nil {
			return
		}
		if n.outside {
			n.trouble.Note(ctx, err)
		}
		wait := askEvery
		switch there := n.note(began, err); {
		case there:
		case n.outside:
			wait = askAgain
		default:
			wait = lookAgain
		}
		if !pause(ctx, min(wait, c.grace/5)) {
			return
		}
	}
}

func (c *care) askOne(ctx context.Context, n *need) error {
	ctx, cancel := context.WithTimeout(ctx, min(askPatience, c.grace/2))
	defer cancel()
	return n.ask(ctx)
}

// ready says the first thing that is away.
func (c *care) ready(now time.Time) error {
	for _, n := range c.needs {
		if err := n.ready(c.grace, now); err != nil {
			return err
		}
	}
	return nil
}

// lastAway is when one of the things outside was last away.
func (c *care) lastAway(now time.Time) (at time.Time) {
	for _, n := range c.needs {
		if n.outside {
			if away := n.lastAway(now); away.After(at) {
				at = away
			}
		}
	}
	return at
}

// newCare is what this function needs, in the order in which a probe names it. A function with HTTP of its own needs no
// broker: what it has accepted is published when that is back. The last need is that its work succeeds: a schema that
// lacks a table, or a role that lacks a right, fails it although the database answers. The returned function closes
// what asking holds open.
func (h *host) newCare() (*care, func(), error) {
	c, closing := &care{grace: h.cfg.ReadinessGrace}, func() {}
	if h.f.Ready != nil {
		c.add(true, "database is away", "ask database", h.f.Ready)
	}
	if h.f.HTTP != nil {
		return c, closing, nil
	}
	if h.cfg.Sink != "" && !h.f.Silent {
		c.add(true, "sink is away", "ask sink", h.cfg.reachSink)
	}
	if hears := h.f.KafkaOnly || h.consumer != nil; hears || h.cfg.Sink == "" && !h.f.Silent {
		pulse, err := kafkaevent.NewPulse(h.cfg.Kafka)
		if err != nil {
			return nil, nil, err
		}
		closing = pulse.Close
		c.add(true, "broker is away", "ask broker", pulse.Ask)
	}
	if h.f.Tick != nil && h.cfg.Ticks == ticksOn {
		c.add(false, "its ticks fail", "", func(context.Context) error { return unless(!h.ticking.Ongoing()) })
	}
	if h.f.Failing != nil {
		c.add(false, "its work fails", "", func(context.Context) error { return unless(!h.f.Failing()) })
	}
	if h.cfg.FuncTransport == TransportHTTP {
		return c, closing, nil // while nobody calls us nothing is handled or published, so trouble with that would never end
	}
	if h.consumer != nil {
		c.add(false, "not in its consumer group", "", func(context.Context) error {
			return unless(h.consumer.Group().Joined())
		})
		c.add(false, "handling events fails", "", func(context.Context) error { return unless(!h.handlingFails()) })
	}
	if h.f.Joined != nil {
		c.add(false, "not in its consumer groups", "", func(context.Context) error { return unless(h.f.Joined()) })
	}
	c.add(false, "cannot publish", "", func(context.Context) error { return unless(!h.publisher.trouble.Ongoing()) })
	return c, closing, nil
}

func (c *care) add(outside bool, away, what string, ask func(context.Context) error) {
	c.needs = append(c.needs, &need{away: away, outside: outside, ask: ask, trouble: telemetry.Trouble{What: what}})
}

// handlingFails says whether records that are this process's fail to be handled. Those that failed last may be somebody
// else's since: a process with nothing left to handle has no success that would end the trouble.
func (h *host) handlingFails() bool {
	lags := func(p *kafkaevent.Partition) bool { return p.Lag() > 0 }
	return h.handling.Ongoing() && slices.ContainsFunc(h.consumer.Group().Partitions(), lags)
}

var errNotSo = errors.New("not so")

func unless(so bool) error {
	if so {
		return nil
	}
	return errNotSo
}
