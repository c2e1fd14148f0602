package kill

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/jobweaver/jobweaver/shared/retry"
)

// target is something that can be killed.
type target struct {
	name    string
	kill    func() error
	restart func(context.Context) error
	stop    func() error // asks it to end, as a rollout does; nil: it is never asked
}

// targets returns the functions, each worker, the broker and PostgreSQL, except the spared ones.
func (h *fixture) targets(spared ...*process) []target {
	list := []target{
		{name: "postgres", kill: h.postgres.Kill, restart: h.postgres.Restart},
		{name: "broker", kill: h.broker.kill, restart: func(context.Context) error { return h.broker.start() }},
	}
	for _, p := range h.processes {
		if !slices.Contains(spared, p) {
			list = append(list, target{
				name: p.name, kill: p.kill, stop: p.stopInTime, restart: func(context.Context) error { return p.start() },
			})
		}
	}
	return list
}

// targetsNamed returns some of them, in that order.
func (h *fixture) targetsNamed(names ...string) (list []target) {
	for _, name := range names {
		for _, t := range h.targets() {
			if t.name == name {
				list = append(list, t)
			}
		}
	}
	return list
}

// fault is a kill with the start that followed.
type fault struct {
	target   string
	from, to time.Time
}

// stopped marks the name of a target that was stopped with SIGTERM.
const stopped = " stopped"

// chaos kills targets.
type chaos struct {
	fixture *fixture
	rnd     *rand.Rand

	mu     sync.Mutex
	faults []fault
}

// run kills until ctx ends: in rounds, in each of which every target is killed once, in a new order; now and then a
// function is stopped with SIGTERM instead. A killed target is restarted within two seconds, while others are killed.
// In the end all of them run.
func (c *chaos) run(ctx context.Context, targets []target) {
	up := make([]sync.Mutex, len(targets))
	var restarts sync.WaitGroup
	defer restarts.Wait()
	// One order for the whole run, so that no function is killed twice within the session of a group's member. The embedded
	// broker starts no session for a member that dies while it waits in a join, and such a member keeps its partitions
	// for ever. `make chaos` has no such limit, on Apache Kafka.
	order := c.rnd.Perm(len(targets))
	for {
		for _, i := range order {
			gap := 300*time.Millisecond + time.Duration(c.rnd.Int64N(int64(1200*time.Millisecond)))
			down := time.Duration(c.rnd.Int64N(int64(2 * time.Second)))
			if !retry.Pause(ctx, gap) {
				return
			}
			t := targets[i]
			if t.stop != nil && c.rnd.IntN(6) == 0 {
				t.name, t.kill = t.name+stopped, t.stop
			}
			up[i].Lock()
			restarts.Go(func() {
				defer up[i].Unlock()
				c.kill(t, down)
			})
		}
	}
}

// kill takes a target down for a while. It ignores any context: a killed target must be restarted.
func (c *chaos) kill(t target, down time.Duration) (f fault) {
	ctx := context.Background()
	f = fault{target: t.name, from: time.Now()}
	if err := t.kill(); err != nil {
		c.fixture.complain("kill %s: %v", t.name, err)
	}
	retry.Pause(ctx, down)
	if err := t.restart(ctx); err != nil {
		c.fixture.complain("start %s again: %v", t.name, err)
	}
	f.to = time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = append(c.faults, f)
	return f
}

// freezes freezes a worker for longer than its lease and the silence after which it is reaped, lets it run for a
// while, and so on, until ctx ends. In the end it is awake.
func (c *chaos) freezes(ctx context.Context, p *process) {
	for retry.Pause(ctx, 5*time.Second) {
		wake, err := p.freeze()
		if err != nil {
			c.fixture.complain("%v", err)
			return
		}
		f := fault{target: p.name + " frozen", from: time.Now()}
		retry.Pause(ctx, frozenFor)
		if err := wake(); err != nil {
			c.fixture.complain("%v", err)
		}
		f.to = time.Now()
		c.mu.Lock()
		c.faults = append(c.faults, f)
		c.mu.Unlock()
	}
}

// frozenFor is longer than a lease of 15 s and a silence of 10 s.
const frozenFor = 26 * time.Second

// kills counts the faults of each target.
func (c *chaos) kills() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := map[string]int{}
	for _, f := range c.faults {
		n[f.target]++
	}
	return n
}
