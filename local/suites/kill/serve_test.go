package kill

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/infra/laptop/freeport"
	"github.com/jobweaver/jobweaver/local/suites/balancer"
	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/retry"
	"github.com/jobweaver/jobweaver/shared/testwait"
)

// startServes starts processes of jobweaver serve with the job types of the worker.
func (h *fixture) startServes(bin string, p plan) {
	h.t.Helper()
	add := func(name, does string, n int) {
		for n := range n {
			one := h.process(fmt.Sprintf("%s-%d", name, n+1), bin, "runjob", "SERVE_FUNCTIONS="+does)
			one.port = freeport.For(h.t)
			h.processes = append(h.processes, one)
		}
	}
	if p.form == grouped {
		add("api", "api,pull", p.copies)
		add("scheduler", "scheduler", p.copies)
		add("runjob", "worker", p.workers)
	} else {
		add("serve", "", 2)
	}
	gateway := h.processes[0].address()
	if p.form == paired {
		gateway = h.balance()
	}
	for _, one := range h.processes {
		one.env = append(one.env, h.outside.settings(gateway)...)
		one.env = append(one.env, "HOST=127.0.0.1", "PORT="+one.port, "AUTH=off", "DATABASE_URL="+h.postgres.URL(),
			"QUEUES="+strings.Join(h.allQueues(), ","), "JOB_TYPES=WITNESS,ECHO,"+otherType, "WITNESS_FILE="+h.witnessFile())
		if p.form == grouped {
			one.env = append(one.env, "KAFKA_BROKERS="+h.brokers[0])
		}
		if p.env != nil {
			one.env = append(one.env, p.env(one.name)...)
		}
		must(h.t, one.start())
	}
	h.api = client.New(gateway, "")
	if p.form == paired {
		must(h.t, h.settled(h.t.Context()))
		return
	}
	for _, one := range h.processes {
		if err := awaitReady(h.t.Context(), one.port); err != nil {
			h.t.Fatalf("%s is not ready: %v\n%s", one.name, err, tail(one.log, 2000))
		}
	}
}

// balance starts a load balancer in front of the processes, and returns its address.
func (h *fixture) balance() string {
	b := balancer.Start(h.processes[0].address(), h.processes[1].address())
	h.t.Cleanup(b.Close)
	return b.URL
}

func (p *process) address() string { return "http://127.0.0.1:" + p.port }

// probe returns an error unless a probe of the process gets its 200.
func (p *process) probe(ctx context.Context, which string) error {
	return balancer.Probe(ctx, p.address(), which)
}

// settled waits until one process serves and the other one stands by.
func (h *fixture) settled(ctx context.Context) error {
	return within(ctx, recoverWithin, func(ctx context.Context) error {
		var errs []error
		serving := 0
		for _, p := range h.processes {
			if p.probe(ctx, "readiness") == nil {
				serving++
			}
			errs = append(errs, p.probe(ctx, "liveness"))
		}
		if serving != 1 {
			errs = append(errs, fmt.Errorf("%d processes serve", serving))
		}
		return errors.Join(errs...)
	})
}

// takeoverWithin is how long a standby may take.
const takeoverWithin = 10 * time.Second

// pair makes faults of a jobweaver serve and its standby.
type pair struct {
	*chaos
	ctx   context.Context // not that of the load: each fault has to end
	takes []time.Duration // of the takeovers
}

// pairFaults are the faults. A fault is over when one of the two serves, and all that was killed or frozen runs.
var pairFaults = map[string]func(p *pair, serves, standby *process) error{
	"serving one killed": func(p *pair, serves, standby *process) error {
		began := time.Now()
		return errors.Join(serves.kill(), p.takeover(standby, began), p.later(serves.start))
	},
	"serving one stopped": func(p *pair, serves, standby *process) error {
		code, err := serves.stop()
		if code != 0 {
			err = fmt.Errorf("%s ended with %d after SIGTERM", serves.name, code)
		}
		return errors.Join(err, p.takeover(standby, time.Now()), serves.start())
	},
	"serving one frozen": func(p *pair, serves, standby *process) error {
		began, lives := time.Now(), len(serves.all())
		wake, err := serves.freeze()
		if err != nil {
			return err
		}
		err = errors.Join(p.takeover(standby, began), p.later(wake))
		return errors.Join(err, within(p.ctx, takeoverWithin, func(context.Context) error {
			if len(serves.all()) == lives { // its supervisor has not begun another
				return fmt.Errorf("%s goes on, and the other one has taken over", serves.name)
			}
			return nil
		}))
	},
	"serving one frozen for a moment": func(p *pair, serves, _ *process) error {
		wake, err := serves.freeze()
		if err != nil {
			return err
		}
		return p.later(wake)
	},
	"both killed": func(p *pair, serves, standby *process) error {
		return errors.Join(standby.kill(), serves.kill(), p.later(standby.start), serves.start())
	},
	"standby frozen, serving one killed": func(p *pair, serves, standby *process) error {
		wake, err := standby.freeze()
		if err != nil {
			return err
		}
		err = errors.Join(serves.kill(), p.later(wake))
		return errors.Join(err, p.takeover(standby, time.Now()), serves.start())
	},
	"postgres killed": func(p *pair, _, _ *process) error {
		server := p.fixture.postgres
		return errors.Join(server.Kill(), p.later(func() error { return server.Restart(p.ctx) }))
	},
	"postgres and the serving one killed": func(p *pair, serves, standby *process) error {
		server := p.fixture.postgres
		err := errors.Join(server.Kill(), serves.kill(), p.later(func() error { return server.Restart(p.ctx) }))
		return errors.Join(err, p.takeover(standby, time.Now()), serves.start())
	},
}

// later does something within two seconds.
func (p *pair) later(do func() error) error {
	retry.Pause(p.ctx, time.Duration(p.rnd.Int64N(int64(2*time.Second))))
	return do()
}

// takeover waits until a process serves, and checks how long that took.
func (p *pair) takeover(by *process, began time.Time) error {
	err := within(p.ctx, recoverWithin, func(ctx context.Context) error { return by.probe(ctx, "readiness") })
	took := time.Since(began)
	p.takes = append(p.takes, took)
	testwait.CheckPromptly(p.fixture.t, "the takeover", took, takeoverWithin)
	return err
}

// run makes faults one after another until ctx ends: in rounds, each with every kind in a new order.
func (p *pair) run(ctx context.Context) {
	kinds := make([]string, 0, len(pairFaults))
	for kind := range pairFaults {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	for {
		for _, i := range p.rnd.Perm(len(kinds)) {
			if !retry.Pause(ctx, time.Duration(p.rnd.Int64N(int64(3*time.Second)))) {
				return
			}
			serves, standby := p.fixture.processes[0], p.fixture.processes[1]
			if serves.probe(p.ctx, "readiness") != nil {
				serves, standby = standby, serves
			}
			f := fault{target: kinds[i], from: time.Now()}
			if err := errors.Join(pairFaults[kinds[i]](p, serves, standby), p.fixture.settled(p.ctx)); err != nil {
				p.fixture.complain("%s: %v", kinds[i], err)
			}
			f.to = time.Now()
			p.mu.Lock()
			p.faults = append(p.faults, f)
			p.mu.Unlock()
		}
	}
}

// TestNothingIsLostWhateverHappensToServeAndItsStandby runs an installation that has a PostgreSQL and two processes.
func TestNothingIsLostWhateverHappensToServeAndItsStandby(t *testing.T) {
	d := duration(t)
	t.Parallel()
	rnd := newRand(t)
	h := build(t, plan{form: paired})
	for _, p := range h.processes {
		p.supervise()
	}
	var p *pair
	e := h.survive(rnd, d, func(submitting context.Context, _ *load, c *chaos) {
		p = &pair{chaos: c, ctx: t.Context()}
		p.run(submitting)
	})
	if happened := e.happened(); happened["lost"] == 0 || happened["COMPLETED after a loss"] == 0 || len(p.takes) < 2 {
		t.Errorf("too little happened: %d takeovers, %v", len(p.takes), happened)
	}
	slices.Sort(p.takes)
	t.Logf("took over %d times, at last after %s: %v", len(p.takes), ms(p.takes[len(p.takes)-1]), p.takes)
	h.stopAll()
	e.summarize(t)
}
