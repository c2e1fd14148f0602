package kill

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	stepping "github.com/jobweaver/jobweaver/local/suites/chaos/clock"
	"github.com/jobweaver/jobweaver/local/suites/kill/witness"
)

// ownClock returns the environment that gives PostgreSQL a clock that can be stepped.
func (h *fixture) ownClock() []string {
	h.t.Helper()
	library, err := stepping.Shim(h.dir)
	must(h.t, err)
	h.clock, err = stepping.NewControl(filepath.Join(h.dir, "clock"))
	must(h.t, err)
	h.t.Cleanup(func() { _ = h.clock.Close() })
	return []string{"LD_PRELOAD=" + library, stepping.Env + "=" + h.clock.Path()}
}

// whileOff is long enough for workers to reap others after a step: they send heartbeats for 10 s before.
const whileOff = 14 * time.Second

// PostgreSQL's clock is set forward by an hour while jobs run, and back. A worker dies just before it is set back, so
// its last heartbeat is in the future. Its attempts run again in time, and those of the other worker continue.
func TestASteppedClockEndsAndRepeatsNothing(t *testing.T) {
	duration(t)
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip("needs a C compiler, for a clock that can be stepped")
	}
	t.Parallel()
	rnd := newRand(t)
	h := build(t, plan{form: grouped, workers: 2, stepped: true})
	l, c := newLoad(t.Context(), h, rnd), &chaos{fixture: h, rnd: rnd}
	l.shapes = briefShapes[:2]
	submitting, stopSubmitting := context.WithCancel(t.Context())
	defer stopSubmitting()
	l.submitting.Go(func() { l.every(submitting, 100*time.Millisecond, l.submitOne) })
	lasts := &shape{
		name: "lasts", payload: works(10_000, 10_000), request: map[string]any{"timeoutMs": 20_000}, ends: one(completed),
	}
	start := func() {
		orders := l.submitMany(rnd, lasts, 6)
		must(t, within(t.Context(), recoverWithin, func(ctx context.Context) error { return h.runs(ctx, orders) }))
	}

	start()
	c.kill(h.clockOff(time.Hour), whileOff)
	start()
	dies := h.workers()[1]
	dead := dies.last().name
	must(t, dies.kill())
	c.kill(h.clockOff(0), whileOff)
	must(t, within(t.Context(), recoverWithin, func(ctx context.Context) error { return h.allReaped(ctx, dead) }))
	must(t, dies.start())
	stopSubmitting()
	l.submitting.Wait()
	must(t, h.drain(t.Context(), time.Time{}, recoverWithin))

	e := h.evidence(t.Context(), l, c)
	e.stepped = true
	e.check()
	e.checkSteps(dead, 10*time.Second+recoverWithin)
	h.checkDatabases(e)
	h.report(e)
	h.stopAll()
	e.summarize(t)
}

// runs returns an error until the start of each of the jobs is in the worker's database.
func (h *fixture) runs(ctx context.Context, orders []*order) error {
	var ids []string
	for _, o := range orders {
		ids = append(ids, o.id)
	}
	running, err := texts(ctx, h.urls.Worker, "select job_id::text from attempts "+
		"where job_id = any ($1::uuid[]) and started_at is not null and outcome is null", ids)
	if err == nil && len(running) < len(ids) {
		err = fmt.Errorf("of %d jobs only %d run", len(ids), len(running))
	}
	return err
}

// clockOff steps PostgreSQL's clock, and leaves it so.
func (h *fixture) clockOff(by time.Duration) target {
	return target{
		name: fmt.Sprintf("clock off by %s", by), kill: func() error { return h.clock.Step(by) },
		restart: func(ctx context.Context) error { return h.isOff(ctx, by) },
	}
}

// isOff returns an error unless PostgreSQL's clock differs from ours by this much.
func (h *fixture) isOff(ctx context.Context, by time.Duration) error {
	at, err := texts(ctx, h.urls.API, "select floor(extract(epoch from clock_timestamp()))::text")
	if err != nil {
		return err
	}
	seconds, err := strconv.ParseInt(at[0], 10, 64)
	if off := time.Until(time.Unix(seconds, 0)); err == nil && (off-by).Abs() > time.Minute {
		err = fmt.Errorf("PostgreSQL's clock is off by %s, not by %s", off, by)
	}
	return err
}

// allReaped returns an error while a process has an attempt without an outcome.
func (h *fixture) allReaped(ctx context.Context, process string) error {
	open, err := texts(ctx, h.urls.Worker, "select distinct worker_id from attempts where outcome is null")
	if err != nil {
		return err
	}
	lines, err := witness.Read(h.witnessFile())
	if err == nil && slices.ContainsFunc(lines, func(l witness.Line) bool {
		return l.What == witness.Worker && l.Process == process && slices.Contains(open, l.How)
	}) {
		err = fmt.Errorf("%s still has attempts", process)
	}
	return err
}

// checkSteps: only a dead process has lost attempts, and by the witness each job began for the last time soon after
// it was accepted.
func (e *evidence) checkSteps(died string, within time.Duration) {
	lost := 0
	for id, job := range e.jobs {
		for _, a := range job.Attempts {
			if process := e.processes[a.WorkerID]; a.Outcome != "completed" && process != died {
				e.find(id, "attempt %d is %s, and %s lived", a.Attempt, a.Outcome, process)
			} else if a.Outcome == "lost" {
				lost++
			}
		}
		if runs := e.ran[id]; len(runs) > 0 && e.orders[job.key()] != nil && !e.orders[job.key()].accepted.IsZero() {
			if took := runs[len(runs)-1].start.Sub(e.orders[job.key()].accepted); took > within {
				e.find(id, "began for the last time %s after it was accepted", ms(took))
			}
		}
	}
	if lost == 0 {
		e.find("", "the worker that died has lost nothing")
	}
}
