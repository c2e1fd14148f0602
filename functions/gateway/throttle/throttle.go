// Package throttle limits rates and amounts for each caller. Its state stays in this process.
//
// Why no count is shared: docs/decisions/security.md#an-owner-gets-half-of-what-is-free
package throttle

import (
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// generation is the least number of callers that are remembered; there may be up to twice as many. A caller is
// forgotten only after that many others have been seen since its last request, and then starts with a full bucket.
const generation = 10_000

// Table has a token bucket for each caller. A nil table allows everything.
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

// New gives each caller perSecond tokens a second, and lets it save up to burst, at least 1. It is nil for 0 a second.
func New(perSecond float64, burst int) *Table {
	if perSecond == 0 {
		return nil
	}
	return &Table{limit: rate.Limit(perSecond), burst: max(burst, 1), now: map[string]*bucket{}}
}

// Verdict is the answer to a request for tokens.
type Verdict struct {
	OK    bool
	Left  int           // the tokens left
	After time.Duration // when the next token is available; 0: now
}

// Take takes n tokens if the caller has at least one. Tokens that it lacks become a debt, and it gets none until the
// debt is paid: a caller may take more at once than the burst, but in the long run gets no more than others.
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

// Look returns the verdict on the next token, without taking it.
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

// bucket returns the bucket of a caller, or makes a full one.
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

// Policy returns the limit of the table: quota tokens in a number of seconds.
func (t *Table) Policy() (quota, seconds int) {
	return t.burst, max(1, int(math.Round(float64(t.burst)/float64(t.limit))))
}
