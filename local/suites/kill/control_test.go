package kill

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/retry"
)

// group is jobs of one sort that are submitted together.
type group struct {
	n       int
	request []any // pairs
}

// The subjects of the controls. A job may be under several.
const (
	narrow = "narrow" // a queue
	acme   = "acme"   // an owner
	paced  = "paced"  // an owner whose jobs start at a rate
	rate   = 20
)

// has returns a test for shapes with a request field.
func has(name, value string) func(*shape) bool {
	return func(s *shape) bool { return s.request[name] == value }
}

// TestOrdersAndLimitsHold runs jobs of many keys, and jobs under limits of their type, queue and owner, on two processes
// of each service and three workers. Limits change, an owner is paused, and PostgreSQL is killed meanwhile. The witness
// records what ran when.
func TestOrdersAndLimitsHold(t *testing.T) {
	duration(t)
	t.Parallel()
	rnd := newRand(t)
	h := build(t, plan{form: grouped, workers: 3, copies: 2, queues: []string{"default", narrow}})
	began := time.Now()
	follow, unfollow := context.WithCancel(t.Context())
	defer unfollow()
	l, c := newLoad(follow, h, rnd), &chaos{fixture: h, rnd: rnd}
	byType := &limited{subject: "type/" + otherType, of: has("jobType", otherType)}
	byQueue := &limited{subject: "queue/" + narrow, of: has("queue", narrow)}
	byOwner := &limited{subject: "owner/" + acme, of: has("ownerId", acme)}
	byRate := &limited{subject: "owner/" + paced, of: has("ownerId", paced)}
	h.set(t.Context(), byType, atMost(4))
	h.set(t.Context(), byQueue, atMost(3))
	h.set(t.Context(), byOwner, atMost(5))
	h.set(t.Context(), byRate, atMostASecond(rate))

	l.fill(rnd, byType, "jobType", otherType)
	l.fill(rnd, byQueue, "queue", narrow)
	l.fill(rnd, byOwner, "ownerId", acme)
	lines := l.submitLines(t.Context())
	l.submitGroups(rnd, group{200, []any{"jobType", otherType}}, group{150, []any{"queue", narrow}}, group{200, []any{"ownerId", acme}},
		group{50, []any{"jobType", otherType, "queue", narrow, "ownerId", acme}})
	retry.Pause(t.Context(), 2*time.Second)
	for _, postgres := range h.targetsNamed("postgres") {
		c.kill(postgres, 500*time.Millisecond)
	}
	h.set(t.Context(), byType, atMost(2))
	h.set(t.Context(), byOwner, control{Paused: true})
	l.submitGroups(rnd, group{80, []any{"ownerId", paced}}, group{100, nil})
	retry.Pause(t.Context(), 3*time.Second)
	h.set(t.Context(), byType, atMost(6))
	h.set(t.Context(), byQueue, atMost(1))
	retry.Pause(t.Context(), 2*time.Second)
	h.set(t.Context(), byOwner, atMost(5))
	h.set(t.Context(), byQueue, control{})
	l.submitting.Wait()

	stuck := lines[0]
	must(t, within(t.Context(), drainWithin, func(ctx context.Context) error { return h.hasOnly(ctx, stuck) }))
	freed := time.Now()
	stuck.orders[0].shape.cancelIn = time.Millisecond
	l.cancel(stuck.orders[0])
	must(t, h.drain(t.Context(), time.Time{}, drainWithin))
	l.following.Wait()
	h.settleDown(drainWithin)

	e := h.evidence(t.Context(), l, c)
	e.check()
	for _, n := range lines {
		e.checkLine(n)
	}
	if job := e.jobs[stuck.orders[1].id]; job == nil || len(e.ran[job.JobID]) > 0 && e.ran[job.JobID][0].start.Before(freed) {
		t.Error("what came after the stuck job did not wait for it")
	}
	h.checkDatabases(e)
	for _, l := range []*limited{byType, byQueue, byOwner} {
		most, first := e.checkLimit(l), l.phases[0].most
		if t.Logf("%s: at most %d at work at once of %d runs", l.subject, most, len(e.runsOf(l))); most < first {
			t.Errorf("%s never had %d running jobs, so its limit has delayed none", l.subject, first)
		}
	}
	most, jitter := e.checkRate(byRate)
	t.Logf("%s: at most %d starts in a second; from the scheduler to the start it took more or less %s", byRate.subject, most, ms(jitter))
	if most < rate/2 {
		t.Errorf("of %s at most %d were started in a second, %d may be", byRate.subject, most, rate)
	}
	h.report(e)
	h.stopAll()
	e.summarize(t)
	t.Logf("took %s", time.Since(began).Round(time.Second))
}

// fill submits one job more than a limit allows to run, and lets them end once all run that may.
func (l *load) fill(rnd *rand.Rand, under *limited, request ...any) {
	l.fixture.t.Helper()
	file, most := filepath.Join(l.fixture.dir, l.name("filled")), under.phases[0].most
	orders := l.submitMany(rnd, &shape{
		name: "fills " + under.subject, payload: works(0, 0, "until", file), request: with(map[string]any{}, request...),
		ends: one(completed),
	}, most+1)
	must(l.fixture.t, within(l.fixture.t.Context(), recoverWithin, func(context.Context) error {
		begun, err := l.fixture.begunBy(orders)
		if err == nil && len(begun) != most {
			err = fmt.Errorf("%d jobs of %s have begun, not %d", len(begun), under.subject, most)
		}
		return err
	}))
	must(l.fixture.t, os.WriteFile(file, nil, 0o600))
}

// submitGroups submits the jobs of all groups mixed, in batches.
func (l *load) submitGroups(rnd *rand.Rand, groups ...group) {
	var orders []*order
	for _, g := range groups {
		s := &shape{
			name: fmt.Sprintf("limited by %v", g.request), payload: works(50, 150), request: with(map[string]any{}, g.request...),
			ends: one(completed),
		}
		for range g.n {
			orders = append(orders, l.newOrder(rnd, s, "batch", true))
		}
	}
	rnd.Shuffle(len(orders), func(i, j int) { orders[i], orders[j] = orders[j], orders[i] })
	for part := range slices.Chunk(orders, 100) {
		l.submitAll(l.fixture.t.Context(), part)
	}
}

// hasOnly returns an error until only the jobs of one key are open.
func (h *fixture) hasOnly(ctx context.Context, n *line) error {
	open, err := h.open(ctx, time.Time{})
	if err != nil {
		return err
	}
	mine := map[string]bool{}
	for _, o := range n.orders {
		mine[o.id] = true
	}
	open = slices.DeleteFunc(open, func(id string) bool { return mine[id] })
	if len(open) > 0 {
		return fmt.Errorf("%d jobs of others have not ended: %v", len(open), first(open, 5))
	}
	return nil
}
