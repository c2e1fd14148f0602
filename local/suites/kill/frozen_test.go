package kill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/local/suites/kill/witness"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/retry"
)

// TestAFrozenWorkerChangesNothingWhenItWakes freezes a worker, with running handlers and attempts that wait for a
// slot, for longer than its lease and the silence after which it is reaped. Its jobs end elsewhere. Then it wakes.
func TestAFrozenWorkerChangesNothingWhenItWakes(t *testing.T) {
	duration(t)
	t.Parallel()
	rnd := newRand(t)
	h := build(t, plan{form: grouped, workers: 2})
	follow, unfollow := context.WithCancel(t.Context())
	defer unfollow()
	l, c := newLoad(follow, h, rnd), &chaos{fixture: h, rnd: rnd}
	sleepy := h.workers()[0]

	// Attempts go to a worker ahead of its slots while its jobs are brief. So brief jobs come first, then jobs that
	// last: some run, and the others wait for a slot until the worker freezes. If a busy machine was slow in between, they
	// went only to its slots: again.
	var asleep string
	must(t, within(t.Context(), 3*recoverWithin, func(ctx context.Context) error {
		l.submitMany(rnd, &shape{name: "brief", payload: works(0, 0), ends: one(completed)}, 50)
		if err := h.isQuick(ctx, sleepy); err != nil {
			return err
		}
		asleep = filepath.Join(h.dir, l.name("asleep"))
		lasts := &shape{name: "until it sleeps", payload: works(500, 500, "until", asleep), ends: one(completed)}
		l.submitMany(rnd, lasts, 100)
		err := within(ctx, 5*time.Second, func(ctx context.Context) error { return h.isFull(ctx, sleepy) })
		if err != nil {
			return errors.Join(err, os.WriteFile(asleep, nil, 0o600), h.drain(ctx, time.Time{}, recoverWithin))
		}
		return nil
	}))
	wake, err := sleepy.freeze()
	must(t, err)
	froze := time.Now()
	must(t, os.WriteFile(asleep, nil, 0o600))
	must(t, h.drain(t.Context(), time.Time{}, 2*recoverWithin))
	retry.Pause(t.Context(), frozenFor-time.Since(froze))
	before := h.evidence(t.Context(), l, c)
	outcomes := h.outcomes()
	held, waited := before.heldBy(sleepy.last().name, froze)
	if t.Logf("%d attempts were held by the worker that froze, %d waited for a slot", len(held), waited); waited == 0 {
		t.Error("no attempt waited for a slot: it could have begun none")
	}

	must(t, wake())
	// It has answered for every attempt that it held: the outcome that others settled is published once more.
	must(t, within(t.Context(), recoverWithin, func(context.Context) error { return h.answered(held) }))
	l.submitMany(rnd, briefShapes[0], 1)
	must(t, h.drain(t.Context(), time.Time{}, recoverWithin))
	must(t, within(t.Context(), recoverWithin, func(context.Context) error {
		return h.hasConsumed("jobweaver-outcome", jobevent.TopicEnded)
	}))

	after := h.evidence(t.Context(), l, c)
	for id, job := range before.jobs {
		if now := after.jobs[id].withoutLogs(t); !maps.Equal(now, job.withoutLogs(t)) {
			after.find(id, "was changed by a worker that woke: %s", job.raw)
		}
		if len(after.ran[id]) != len(before.ran[id]) {
			after.find(id, "was started by a worker that woke")
		}
	}
	if now := h.outcomes(); !slices.Equal(now[:len(outcomes)], outcomes) {
		t.Errorf("outcomes were overruled: %v, before %v", now, outcomes)
	}
	after.check()
	h.report(after)
	h.stopAll()
	after.summarize(t)
}

// withoutLogs returns all that the API shows of a job except the log lines of its handlers.
func (s *shown) withoutLogs(t *testing.T) map[string]string {
	t.Helper()
	var raw map[string]json.RawMessage
	must(t, json.Unmarshal(s.raw, &raw))
	delete(raw, "logs")
	fields := map[string]string{}
	for name, value := range raw {
		fields[name] = string(value)
	}
	return fields
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// submitMany submits jobs of one shape in one batch.
func (l *load) submitMany(rnd *rand.Rand, s *shape, n int) (orders []*order) {
	for range n {
		orders = append(orders, l.newOrder(rnd, s, "batch", true))
	}
	l.submitAll(l.fixture.t.Context(), orders)
	return orders
}

// isQuick returns an error until the scheduler knows that a worker ends many attempts a second.
func (h *fixture) isQuick(ctx context.Context, p *process) error {
	const many = 200
	worker, _, err := h.begun(p)
	if err != nil {
		return err
	}
	quick, err := texts(ctx, h.urls.Scheduler, "select worker_id from workers where worker_id = $1 and rate >= $2", worker, many)
	if err == nil && len(quick) == 0 {
		return fmt.Errorf("the scheduler does not know that %s ends %d attempts a second", p.name, many)
	}
	return err
}

// isFull returns an error unless a worker has several attempts that it has not begun.
func (h *fixture) isFull(ctx context.Context, p *process) error {
	const several = 5
	open, err := texts(ctx, h.urls.Worker, "select worker_id || ' ' || job_id || ' ' || attempt "+
		"from attempts where outcome is null")
	if err != nil {
		return err
	}
	worker, begun, err := h.begun(p)
	if err != nil {
		return err
	}
	waiting := 0
	for _, attempt := range open {
		if strings.HasPrefix(attempt, worker+" ") && !begun[attempt] {
			waiting++
		}
	}
	if worker == "" || waiting < several {
		return fmt.Errorf("%s has only %d attempts that it has not begun", p.name, waiting)
	}
	return nil
}

// begun returns the worker's id of a process, empty until it has one, and which attempts its handlers have begun:
// "<worker> <job> <attempt>".
func (h *fixture) begun(p *process) (worker string, attempts map[string]bool, err error) {
	lines, err := witness.Read(h.witnessFile())
	attempts = map[string]bool{}
	for _, l := range lines {
		if l.Process == p.last().name && l.What == witness.Worker {
			worker = l.How
		}
		if l.Process == p.last().name && l.What == witness.Start {
			attempts[fmt.Sprintf("%s %s %d", worker, l.Job, l.Attempt)] = true
		}
	}
	return worker, attempts, err
}

// begunBy returns the process of each attempt of some jobs that has begun.
func (h *fixture) begunBy(orders []*order) (processes []string, err error) {
	lines, err := witness.Read(h.witnessFile())
	for _, l := range lines {
		if l.What == witness.Start && slices.ContainsFunc(orders, func(o *order) bool { return o.key == l.Key }) {
			processes = append(processes, l.Process)
		}
	}
	return processes, err
}

// heldBy returns the outcomes of the attempts that a process held when it froze, and how many it had not begun. An
// attempt that its last heartbeat listed as not started is interrupted instead of lost.
func (e *evidence) heldBy(name string, froze time.Time) (attempts []string, waited int) {
	for id, job := range e.jobs {
		for _, a := range job.Attempts {
			if a.Outcome != "lost" && a.Outcome != "interrupted" || e.processes[a.WorkerID] != name {
				continue
			}
			if a.FinishedAt == nil || a.FinishedAt.Before(froze) {
				continue // given back by the process itself
			}
			attempts = append(attempts, fmt.Sprintf("%s.%d.%s", id, a.Attempt, a.Outcome))
			if !slices.ContainsFunc(e.ran[id], func(r run) bool { return r.attempt == a.Attempt }) {
				waited++
			}
		}
	}
	return attempts, waited
}

// answered returns an error until each outcome was published a second time.
func (h *fixture) answered(outcomes []string) error {
	if len(outcomes) == 0 {
		return fmt.Errorf("no attempt was lost")
	}
	published, err := h.published(jobevent.TopicEnded)
	if err != nil {
		return err
	}
	for _, id := range outcomes {
		if published[id] < 2 {
			return fmt.Errorf("%s was published %d times", id, published[id])
		}
	}
	return nil
}

// outcomes returns the outcome of every attempt from the worker's database, in the order of their ends.
func (h *fixture) outcomes() []string {
	h.t.Helper()
	list, err := texts(h.t.Context(), h.urls.Worker, `
		select job_id || '.' || attempt || ' ' || coalesce(outcome, 'open') || ' ' || worker_id
		from attempts order by finished_at, job_id, attempt`)
	if err != nil {
		h.t.Fatal(err)
	}
	return list
}
