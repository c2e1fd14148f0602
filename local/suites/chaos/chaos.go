package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/jobweaver/jobweaver/local/suites/chaos/installation"
	"github.com/jobweaver/jobweaver/shared/retry"
)

// fault is one fault, or two at a time, from its start until it has healed.
type fault struct {
	kinds        []string
	what         []string // the processes and links that it hits
	from, healed time.Time
	first        time.Duration // from the healing to the first end of any attempt
	cleared      time.Duration // from the healing until all brisk jobs accepted before it were done
	gap          time.Duration // the longest time without any end
	alone        bool          // a single process was frozen, and nothing else was wrong
	cutOff       []string      // workers that were cut off
}

func (f *fault) String() string { return strings.Join(f.kinds, " + ") }

func (f *fault) hits(format string, args ...any) {
	f.what = append(f.what, fmt.Sprintf(format, args...))
}

// kind is a kind of fault.
type kind struct {
	name    string
	area    string        // two concurrent faults are of different areas
	hold    time.Duration // how long it lasts, at least
	last    bool          // it comes late in a run, because it has lasting effects
	bound   time.Duration // for clearing the backlog; 0: clearedWithin
	freezes bool          // it freezes a single process
	strike  func(c *chaos, f *fault) (heal func() error, err error)
}

const (
	clearedWithin   = 60 * time.Second
	continuesWithin = 10 * time.Second // for all other work while one process is frozen
	machineRoom     = 5 * time.Second  // allowance for a machine with two cores
)

// chaos makes the faults.
type chaos struct {
	system *installation.Installation
	load   *load
	rnd    *rand.Rand
	ctx    context.Context // for cleaning up, whatever happens
	faults []*fault
	clocks []installation.Interval
	broken []string // what could not be healed, or took too long

	steppedBack bool // PostgreSQL's clock was set back by an hour
	hourLate    int  // the jobs that had to wait for that hour
}

// run makes faults for span: first each kind once, in a random order, then any. Most come together with another one.
// On a machine that is too slow for all of them in a whole run, it continues until each was made.
func (c *chaos) run(ctx context.Context, span time.Duration, kinds []*kind) {
	due, until, all := shuffled(c.rnd, kinds), time.Now().Add(span), false
	for retry.Pause(ctx, 500*time.Millisecond+time.Duration(c.rnd.Int64N(int64(1500*time.Millisecond)))) {
		if len(due) == 0 {
			due, all = shuffled(c.rnd, kinds), true
		}
		if time.Now().After(until) && (all || span < fitsAll) {
			return
		}
		var both []*kind
		both, due = draw(c.rnd, due)
		if !c.make(both) {
			return
		}
	}
}

// shuffled shuffles the kinds, with those that have lasting effects last.
func shuffled(rnd *rand.Rand, kinds []*kind) []*kind {
	list := slices.Clone(kinds)
	rnd.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	slices.SortStableFunc(list, func(a, b *kind) int {
		switch {
		case a.last == b.last:
			return 0
		case a.last:
			return 1
		default:
			return -1
		}
	})
	return list
}

// draw takes the next kind that is due, and mostly another one of a different area. Freezes more often come alone,
// because only then the other processes can be seen to continue.
func draw(rnd *rand.Rand, due []*kind) (drawn, rest []*kind) {
	drawn, rest = due[:1:1], slices.Clone(due[1:])
	chance := 85
	if drawn[0].freezes {
		chance = 35
	}
	if rnd.IntN(100) >= chance {
		return drawn, rest
	}
	i := slices.IndexFunc(rest, func(k *kind) bool {
		return k.area != drawn[0].area && k.last == drawn[0].last && !k.freezes
	})
	if i < 0 {
		return drawn, rest
	}
	return append(drawn, rest[i]), slices.Delete(rest, i, i+1)
}

// make makes one fault, or two at a time, heals, and waits until the backlog is cleared; false: it never was.
func (c *chaos) make(kinds []*kind) bool {
	f := &fault{from: time.Now(), alone: len(kinds) == 1 && kinds[0].freezes}
	c.faults = append(c.faults, f)
	var heals []func() error
	hold, bound := time.Duration(0), clearedWithin
	for _, k := range kinds {
		f.kinds = append(f.kinds, k.name)
		heal, err := k.strike(c, f)
		if err != nil {
			c.breaks("%s: %v", k.name, err)
		}
		if heal != nil {
			heals = append(heals, heal)
		}
		hold, bound = max(hold, k.hold), max(bound, k.bound)
	}
	retry.Pause(c.ctx, hold)
	c.rnd.Shuffle(len(heals), func(i, j int) { heals[i], heals[j] = heals[j], heals[i] })
	for _, heal := range heals {
		if err := heal(); err != nil {
			c.breaks("heal %s: %v", f, err)
		}
	}
	f.healed = time.Now()
	recovered := c.measure(f, bound)
	c.system.Log(fmt.Sprintf("%s %-60s held %5s, first end after %6s, cleared after %6s  %s", clockTime(f.from), f,
		seconds(f.healed.Sub(f.from)), seconds(f.first), seconds(f.cleared), strings.Join(f.what, ", ")))
	return recovered
}

// measure waits for the recovery and measures it.
func (c *chaos) measure(f *fault, bound time.Duration) bool {
	ctx, cancel := context.WithTimeout(c.ctx, bound)
	defer cancel()
	at, ok := c.system.Witness.NextEnd(ctx, f.healed)
	if !ok {
		at = time.Now()
	}
	f.first = at.Sub(f.healed)
	late := c.load.late(f.healed)
	for len(late) > 0 && retry.Pause(ctx, 50*time.Millisecond) {
		late = c.load.late(f.healed)
	}
	if f.cleared = time.Since(f.healed); len(late) == 0 {
		f.cleared = c.clearedAt(f.healed).Sub(f.healed)
		return true
	}
	c.breaks("%s (%v): %s after the heal at %s the work of %d jobs was not done: %v", f, f.what, bound,
		clockTime(f.healed), len(late), late[:min(len(late), 10)])
	return false
}

// clearedAt returns when the last brisk job that was accepted before the healing was done.
func (c *chaos) clearedAt(healed time.Time) time.Time {
	last := healed
	for _, o := range c.load.all() {
		if at, done := c.system.Witness.DoneAt(o.key); done && o.shape.brisk && !o.accepted.IsZero() &&
			o.accepted.Before(healed) && at.After(last) {
			last = at
		}
	}
	return last
}

func (c *chaos) breaks(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	c.system.Log("! " + text)
	c.broken = append(c.broken, text)
}

// healAll runs all of heals, in order.
func healAll(heals ...func() error) func() error {
	return func() error {
		var errs []error
		for _, heal := range heals {
			errs = append(errs, heal())
		}
		return errors.Join(errs...)
	}
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1fs", d.Seconds()) }
