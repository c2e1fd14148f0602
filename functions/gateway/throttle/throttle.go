// Package throttle counts what callers ask for, and says who asks for too much. What it knows stays in this process.
package throttle

import (
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// generation is how many callers are known at least; up to twice as many may be. A caller is forgotten only when as
// many others have come since it was last heard of, and begins anew then.
const generation = 10_000

// Table has a bucket of tokens for each caller. A nil one lets everybody in.
type Table struct {
	limit rate.Limit
	burst int

	mu           sync.Mutex
	now, earlier map[string]*bucket
}

type bucket struct {
	mu      sync.Mutex
	limiter *rate.Limiter
}

// New gives each caller so many tokens a second, of which it may keep burst, 1 at least. It is nil for 0 a second.
func New(perSecond float64, burst int) *Table {
	if perSecond == 0 {
		return nil
	}
	return &Table{limit: rate.Limit(perSecond), burst: max(burst, 1), now: map[string]*bucket{}}
}

// Verdict reports whether a caller got what it asked for.
type Verdict struct {
	OK    bool
	Left  int           // tokens that it still has
	After time.Duration // when it can have another one; 0: now
}

// Take gives a caller n tokens when it has one at least. What it does not have it owes, and gets nothing until that is
// paid back: who asks for more at once than anybody can have gets it, but no more in the end than others.
func (t *Table) Take(caller string, n int, at time.Time) Verdict {
	if t == nil {
		return Verdict{OK: true}
	}
	b := t.bucket(caller)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.limiter.TokensAt(at) < 1 {
		return t.verdict(b, at, false)
	}
	b.limiter.SetBurstAt(at, max(n, t.burst)) // one reservation is at most a burst
	b.limiter.ReserveN(at, n)
	b.limiter.SetBurstAt(at, t.burst)
	return t.verdict(b, at, true)
}

// Look returns what a caller would get, and takes nothing.
func (t *Table) Look(caller string, at time.Time) Verdict {
	if t == nil {
		return Verdict{OK: true}
	}
	t.mu.Lock()
	b := t.now[caller]
	if b == nil {
		b = t.earlier[caller]
	}
	t.mu.Unlock()
	if b == nil {
		return Verdict{OK: true, Left: t.burst}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return t.verdict(b, at, b.limiter.TokensAt(at) >= 1)
}

func (t *Table) verdict(b *bucket, at time.Time, ok bool) Verdict {
	tokens := b.limiter.TokensAt(at)
	v := Verdict{OK: ok, Left: int(max(tokens, 0))}
	if tokens < 1 {
		v.After = time.Duration(math.Ceil((1 - tokens) / float64(t.limit) * float64(time.Second)))
	}
	return v
}

// bucket finds a caller's, or makes it, full.
func (t *Table) bucket(caller string) *bucket {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.now[caller]
	if b != nil {
		return b
	}
	if b = t.earlier[caller]; b == nil {
		b = &bucket{limiter: rate.NewLimiter(t.limit, t.burst)}
	}
	if len(t.now) >= generation {
		t.now, t.earlier = map[string]*bucket{}, t.now
	}
	t.now[caller] = b
	return b
}

// Policy is what the table allows: so many tokens in so many seconds.
func (t *Table) Policy() (quota, seconds int) {
	return t.burst, max(1, int(math.Round(float64(t.burst)/float64(t.limit))))
}
