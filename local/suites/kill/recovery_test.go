package kill

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/retry"
)

// recoverWithin bounds the time until the jobs of a killed process run again, with default settings.
const recoverWithin = 30 * time.Second

// needed are the functions for which jobs wait. No other fault happens while one of them is frozen.
var needed = []string{"gateway", "projection", "ingest", "outcome", "watchdog"}

// beyondLease is how long functions are frozen.
const beyondLease = lease + time.Second

// TestJobsRunAgainWithinHalfAMinute kills one process at a time, freezes one function at a time beyond a lease, kills
// everything at once, and lets the jobs recover in between. Three installations run concurrently with a third of the
// faults each.
func TestJobsRunAgainWithinHalfAMinute(t *testing.T) {
	duration(t)
	t.Parallel()
	for third := range 3 {
		t.Run(fmt.Sprintf("third %d", third+1), func(t *testing.T) {
			t.Parallel()
			recovers(t, third)
		})
	}
}

// recovers makes a third of the faults. Functions for which no job waits are frozen, one by one, while others are
// killed, in another installation than the one in which they are killed.
func recovers(t *testing.T, third int) {
	rnd := newRand(t)
	h := build(t, plan{workers: 2, copies: 1})
	follow, unfollow := context.WithCancel(t.Context())
	defer unfollow()
	l, c := newLoad(follow, h, rnd), &chaos{fixture: h, rnd: rnd}
	l.shapes, l.slower = longerShapes, 2
	submitting, stopSubmitting := context.WithCancel(t.Context())
	defer stopSubmitting()
	l.run(submitting)

	alone := h.targets()
	workers := slices.DeleteFunc(slices.Clone(alone), func(t target) bool { return !strings.HasPrefix(t.name, "runjob") })
	rounds := slices.Clone(alone)
	for _, name := range needed {
		rounds = append(rounds, h.frozen(name))
	}
	rounds = append(rounds, together("both workers", workers), together("everything", alone))
	var aside sync.WaitGroup
	aside.Go(func() {
		for n, target := range alone {
			if (n+1)%3 == third && slices.Contains(functions, target.name) && !slices.Contains(needed, target.name) {
				l.recoverFrom(t, c, h.frozen(target.name), beyondLease, recoverWithin+15*time.Second)
			}
		}
	})
	for n, target := range rounds {
		if n%3 != third {
			continue
		}
		if n >= len(alone) {
			aside.Wait()
		}
		down := time.Duration(rnd.Int64N(int64(2 * time.Second)))
		if strings.HasSuffix(target.name, " frozen") {
			down = beyondLease
		}
		retry.Pause(t.Context(), time.Second) // so that the load has reached all processes
		l.recoverFrom(t, c, target, down, recoverWithin+15*time.Second)
	}
	stopSubmitting()
	l.submitting.Wait()
	if err := h.drain(t.Context(), time.Time{}, drainWithin); err != nil {
		t.Fatal(err)
	}
	e := h.evidence(t.Context(), l, c)
	e.check()
	e.checkRecovery(t)
	h.report(e)
	h.stopAll()
	e.summarize(t)
}

// together returns a target of many, killed and started together.
func together(name string, targets []target) target {
	all := func(do func(target) error) error {
		errs := make([]error, len(targets))
		var group sync.WaitGroup
		for i, t := range targets {
			group.Go(func() { errs[i] = do(t) })
		}
		group.Wait()
		return errors.Join(errs...)
	}
	return target{
		name: name,
		kill: func() error { return all(func(t target) error { return t.kill() }) },
		restart: func(ctx context.Context) error {
			return all(func(t target) error { return t.restart(ctx) })
		},
	}
}

// strikes is how often a fault is made at most. The processes of other tests may have taken the processor from the jobs
// of one fault, but not from those of each: a product that recovers too slowly does so every time.
const strikes = 3

// recoverFrom makes a fault and waits until all jobs have ended that were accepted before its end, and repeats both
// while one of them took too long.
func (l *load) recoverFrom(t *testing.T, c *chaos, target target, down, limit time.Duration) {
	var err error
	for range strikes {
		f := c.kill(target, down)
		if err = l.fixture.drain(t.Context(), time.Now(), limit); err != nil {
			continue
		}
		if time.Since(f.from) <= recoverWithin {
			return // without a look at each job
		}
		e := &evidence{orders: map[string]*order{}}
		for _, o := range l.all() {
			e.orders[o.key] = o
		}
		err = within(t.Context(), recoverWithin, func(ctx context.Context) (err error) {
			e.jobs, err = l.fixture.jobs(ctx)
			return err
		})
		if err == nil && inTime(e.recoveries(f)) {
			return
		}
	}
	if err != nil {
		t.Errorf("after %s: %v", target.name, err)
	}
}

// checkRecovery measures, for each fault, how long the jobs took that existed when it struck, or were accepted while
// it lasted. Of a fault that was repeated one time is enough in which no job took too long.
func (e *evidence) checkRecovery(t *testing.T) {
	recovered := map[string]bool{}
	for _, f := range e.chaos.faults {
		recovered[f.target] = recovered[f.target] || inTime(e.recoveries(f))
	}
	for _, f := range e.chaos.faults {
		all := e.recoveries(f)
		for id, took := range all {
			if took > recoverWithin && !recovered[f.target] {
				e.find(id, "ended only %s after the fault of %s", ms(took), f.target)
			}
		}
		took := slices.Sorted(maps.Values(all))
		if len(took) == 0 {
			t.Errorf("no job was there at the fault of %s", f.target)
			continue
		}
		t.Logf("%-14s down for %6s: of %3d jobs, half had ended within %7s, the last within %7s", f.target,
			ms(f.to.Sub(f.from)), len(took), ms(took[len(took)/2]), ms(took[len(took)-1]))
	}
}

// inTime reports whether no job took too long.
func inTime(took map[string]time.Duration) bool {
	for _, d := range took {
		if d > recoverWithin {
			return false
		}
	}
	return true
}

// recoveries returns how long the jobs took that a fault affected, by id: from the fault, or from their acceptance, to
// their end.
func (e *evidence) recoveries(f fault) map[string]time.Duration {
	took := map[string]time.Duration{}
	for id, job := range e.jobs {
		if d, affected := recovery(job, e.orders[job.key()], f); affected {
			took[id] = d
		}
	}
	return took
}

func recovery(job *shown, o *order, f fault) (took time.Duration, affected bool) {
	if o == nil || len(job.History) == 0 {
		return 0, false
	}
	o.mu.Lock()
	accepted := o.accepted
	o.mu.Unlock()
	ended := job.History[len(job.History)-1].At
	if accepted.IsZero() || accepted.After(f.to) || ended.Before(f.from) {
		return 0, false
	}
	from := f.from
	if accepted.After(from) {
		from = accepted
	}
	return ended.Sub(from), true
}

func ms(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

func TestTheCheckOfRecoveriesFindsWhatIsLateEachTime(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		seconds []int // of the last job of each fault
		find    string
	}{
		"in time":               {[]int{30}, ""},
		"in time the last time": {[]int{31, 40, 29}, ""},
		"late":                  {[]int{31}, "ended only 31s"},
		"late each time":        {[]int{31, 40, 32}, "ended only 32s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := &evidence{chaos: &chaos{}, orders: map[string]*order{}, jobs: map[string]*shown{}}
			for i, seconds := range c.seconds {
				from, key := at(100*i), fmt.Sprint(i)
				e.chaos.faults = append(e.chaos.faults, fault{target: "ingest", from: from, to: from.Add(time.Second)})
				e.orders[key] = &order{key: key, accepted: from}
				e.jobs[key] = &shown{Tags: []string{key}, History: []shownMove{{At: at(100*i + seconds)}}}
			}
			e.checkRecovery(t)
			e.wants(t, c.find)
		})
	}
}
