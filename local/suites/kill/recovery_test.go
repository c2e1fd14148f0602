package kill

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
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
				c.kill(h.frozen(target.name), beyondLease)
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
		pause(t.Context(), time.Second) // so that the load has reached all processes
		c.kill(target, down)
		if err := h.drain(t.Context(), time.Now(), recoverWithin+15*time.Second); err != nil {
			t.Errorf("after %s: %v", target.name, err)
		}
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

// checkRecovery measures, for each fault, how long the jobs took that existed when it struck, or were accepted while
// it lasted: from the fault, or from their acceptance, to their end.
func (e *evidence) checkRecovery(t *testing.T) {
	for _, f := range e.chaos.faults {
		var took []time.Duration
		for id, job := range e.jobs {
			d, affected := e.recovery(job, e.orders[job.key()], f)
			if !affected {
				continue
			}
			took = append(took, d)
			if d > recoverWithin {
				e.find(id, "ended only %s after the fault of %s", ms(d), f.target)
			}
		}
		slices.Sort(took)
		if len(took) == 0 {
			t.Errorf("no job was there at the fault of %s", f.target)
			continue
		}
		t.Logf("%-14s down for %6s: of %3d jobs, half had ended within %7s, the last within %7s", f.target,
			ms(f.to.Sub(f.from)), len(took), ms(took[len(took)/2]), ms(took[len(took)-1]))
	}
}

func (e *evidence) recovery(job *shown, o *order, f fault) (took time.Duration, affected bool) {
	if o == nil || o.accepted.IsZero() || len(job.History) == 0 {
		return 0, false
	}
	ended := job.History[len(job.History)-1].At
	if o.accepted.After(f.to) || ended.Before(f.from) {
		return 0, false
	}
	from := f.from
	if o.accepted.After(from) {
		from = o.accepted
	}
	return ended.Sub(from), true
}

func ms(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
