package kill

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/local/suites/kill/witness"
	"github.com/jobweaver/jobweaver/shared/retry"
)

// pullStep is a fault at an instant of the test.
type pullStep struct {
	at     time.Duration
	target string
	lasts  time.Duration
	frozen bool
	frees  bool // once it is down, the jobs may end that were submitted first
}

// silentFor is longer than a pull worker continues without an answer to a heartbeat.
const silentFor = 6 * time.Second

// pullSteps kill and freeze the processes between a job and its handler, sometimes two at the same time. No pull is
// struck while one waits in a join for the end of a killed one's session: see chaos.run.
var pullSteps = []pullStep{
	{at: 2 * time.Second, target: "poller-1", lasts: time.Second},
	{at: 3 * time.Second, target: "poller-3", lasts: frozenFor, frozen: true, frees: true},
	{at: 5 * time.Second, target: "gateway", lasts: time.Second},
	{at: 8 * time.Second, target: "pull-1", lasts: time.Second},
	{at: 12 * time.Second, target: "poller-2", lasts: time.Second},
	{at: 18 * time.Second, target: "pull-2", lasts: frozenFor, frozen: true},
	{at: 30 * time.Second, target: "gateway", lasts: silentFor, frozen: true},
	{at: 37 * time.Second, target: "gateway", lasts: time.Second},
	{at: 38 * time.Second, target: "poller-1", lasts: time.Second},
	{at: 39 * time.Second, target: "pull-1", lasts: time.Second},
	{at: 42 * time.Second, target: "poller-2", lasts: time.Second},
}

// TestAnAttemptOfAPullWorkerStartsOnceWhateverIsKilled kills and freezes pull workers, both instances of pull and the
// gateway. The pull workers are the witnesses. They also settle lost attempts.
func TestAnAttemptOfAPullWorkerStartsOnceWhateverIsKilled(t *testing.T) {
	duration(t)
	t.Parallel()
	rnd := newRand(t)
	h := build(t, plan{pulls: 2, pollers: 3})
	follow, unfollow := context.WithCancel(t.Context())
	defer unfollow()
	l, c := newLoad(follow, h, rnd), &chaos{fixture: h, rnd: rnd}
	l.shapes, l.slower = pullShapes(), 2
	submitting, stopSubmitting := context.WithCancel(t.Context())
	defer stopSubmitting()
	// More jobs than two pull workers have slots, so that each of them runs some when the first fault strikes it.
	free := filepath.Join(h.dir, "free")
	long := l.submitMany(rnd, &shape{
		name: "long", payload: works(0, 0, "until", free), request: map[string]any{"queue": pullQueue}, ends: one(completed),
	}, 40)
	must(t, within(t.Context(), recoverWithin, func(context.Context) error { return h.allBusy(long, 3) }))
	l.run(submitting)
	c.strike(t.Context(), pullSteps, func() error { return os.WriteFile(free, nil, 0o600) })
	stopSubmitting()
	l.submitting.Wait()
	must(t, h.drain(t.Context(), time.Time{}, drainWithin))
	l.following.Wait()
	h.settleDown(drainWithin)

	e := h.evidence(t.Context(), l, c)
	e.check()
	h.checkDatabases(e)
	h.report(e)
	e.checkPulled(t, "poller-3")
	h.stopAll()
	e.summarize(t)
}

// allBusy returns an error until each of n pull workers has begun one of the jobs.
func (h *fixture) allBusy(orders []*order, n int) error {
	busy, err := h.begunBy(orders)
	slices.Sort(busy)
	if busy = slices.Compact(busy); err == nil && len(busy) < n {
		err = fmt.Errorf("only %v have begun a job", busy)
	}
	return err
}

// pullShapes returns the shapes of jobs that any pull worker can run.
func pullShapes() (list []*shape) {
	all := append(slices.Concat(shapes, waitingShapes), &shape{name: "longer", weight: 20, payload: works(1000, 2000), ends: one(completed)})
	for _, s := range all {
		if s.builtin != "" || s.mayOutlive || s.code == "WORKER.PANIC" {
			continue
		}
		own := *s
		own.request = map[string]any{"queue": pullQueue}
		maps.Copy(own.request, s.request)
		list = append(list, &own)
	}
	return list
}

// strike returns when all steps are done and all processes run.
func (c *chaos) strike(ctx context.Context, steps []pullStep, free func() error) {
	began := time.Now()
	var over sync.WaitGroup
	defer over.Wait()
	for _, s := range steps {
		if !retry.Pause(ctx, s.at-time.Since(began)) {
			return
		}
		target := c.fixture.targetsNamed(s.target)[0]
		if s.frozen {
			target = c.fixture.frozen(s.target)
		}
		if kill := target.kill; s.frees {
			target.kill = func() error { return errors.Join(kill(), free()) }
		}
		over.Go(func() { c.kill(target, s.lasts) })
	}
}

// struck reports whether a process whose name has one of the prefixes had a fault at any moment between from and to.
func (e *evidence) struck(from, to time.Time, names ...string) bool {
	return slices.ContainsFunc(e.chaos.faults, func(f fault) bool {
		return f.from.Before(to) && f.to.After(from) &&
			slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(f.target, name) })
	})
}

// cutOff reports whether a process between a pull worker and the scheduler was frozen at any moment between from and
// to: the pull worker may have learned the fate of its attempt too late.
func (e *evidence) cutOff(from, to time.Time) bool {
	return slices.ContainsFunc(e.chaos.faults, func(f fault) bool {
		return strings.HasSuffix(f.target, " frozen") && !strings.HasPrefix(f.target, "poller") &&
			f.from.Before(to) && f.to.After(from)
	})
}

// settled maps how a handler ended to the outcomes that its attempt may have after the pull worker's result got a
// 200.
var settled = map[string][]string{
	witness.OK:                  {"completed"},
	witness.Failed:              {"failed", "cancelled"},
	witness.Snoozed:             {"snoozed", "cancelled"},
	"the attempt was cancelled": {"cancelled"},
}

// checkPulledRun: a result that got a 200 is the outcome of the attempt, one that got a 409 is not, and an attempt
// was lost only by a fault.
func (e *evidence) checkPulledRun(job *shown, r run) {
	a := job.attempt(r.attempt)
	if a == nil {
		e.find(job.JobID, "attempt %d ran, and the API knows of none", r.attempt)
		return
	}
	same := slices.Contains(settled[r.how], a.Outcome)
	stored := slices.ContainsFunc(r.answers, func(answer string) bool { return strings.HasPrefix(answer, "200") })
	timedOut := a.Outcome == "failed" && a.ErrorCode == "WORKER.TIMEOUT"
	switch {
	case stored && !same:
		e.find(job.JobID, "attempt %d is %s, and the result of %q got %v", r.attempt, a.Outcome, r.how, r.answers)
	case same && a.Outcome != "cancelled" && slices.Contains(r.answers, "409"):
		e.find(job.JobID, "attempt %d is %s, and this result of %s got 409 at once", r.attempt, a.Outcome, r.process)
	case a.Outcome == "lost" || a.Outcome == "interrupted":
		poller, _, _ := strings.Cut(r.process, "#")
		to := r.start.Add(lease + frozenFor)
		if a.FinishedAt != nil {
			to = *a.FinishedAt
		}
		gaveUp := r.how == "no heartbeat was answered" // on a machine that was too busy
		if !gaveUp && !e.struck(r.start.Add(-lease), to, poller, "pull", "gateway") {
			e.find(job.JobID, "attempt %d was called %s, and nothing was killed or frozen", r.attempt, a.Outcome)
		}
	case !same && !timedOut && a.Outcome != "cancelled":
		e.find(job.JobID, "attempt %d is %s, and its handler ended with %q", r.attempt, a.Outcome, r.how)
	}
}

// checkPulled: a run without faults proves nothing.
func (e *evidence) checkPulled(t *testing.T, frozen string) {
	t.Helper()
	all, n := e.happened(), map[string]int{"settled late by a pull worker that woke": 0, "handlers of " + frozen + " at its freeze": 0}
	for _, what := range []string{
		"lost", "cancelled", "failed", "snoozed", "a worker died while a handler ran", "COMPLETED after a loss", "redriven",
	} {
		n[what] = all[what]
	}
	var froze freeze
	for _, life := range e.lives {
		if strings.HasPrefix(life.name, frozen) && len(life.frozen) > 0 {
			froze = life.frozen[0]
		}
	}
	for _, runs := range e.ran {
		for _, r := range runs {
			for _, answer := range r.answers {
				n["answered "+answer]++
			}
			if !strings.HasPrefix(r.process, frozen) || !r.start.Before(froze.from) || !r.end.After(froze.from) {
				continue
			}
			n["handlers of "+frozen+" at its freeze"]++
			if r.end.After(froze.to) && slices.ContainsFunc(r.answers, func(how string) bool { return strings.HasPrefix(how, "409") }) {
				n["settled late by a pull worker that woke"]++
			}
		}
	}
	for what, times := range n {
		if times == 0 {
			t.Errorf("never happened: %s", what)
		}
	}
	t.Logf("happened: %v", n)
}
