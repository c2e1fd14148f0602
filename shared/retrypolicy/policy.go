// Package retrypolicy computes when a failed attempt is retried.
package retrypolicy

import (
	"fmt"
	"slices"
	"time"

	"github.com/jobweaver/jobweaver/shared/apierror"
)

// The types of a policy.
const (
	Exponential = "exponential" // min(baseMs·2ⁿ, capMs) after the n-th failure
	Fixed       = "fixed"       // delayMs after each failure
	List        = "list"        // delaysMs one after another; the last one repeats
)

// Limits of a policy.
const (
	MaxDelayMs = 365 * 24 * 3_600_000 // of any delay, base or cap: a year
	MaxDelays  = 100                  // entries of a list
)

// Policy is a job's own retry policy. A nil Policy is Default.
type Policy struct {
	Type     string  `json:"type"`
	BaseMs   int64   `json:"baseMs,omitempty"`
	CapMs    int64   `json:"capMs,omitempty"`
	DelayMs  int64   `json:"delayMs,omitempty"`
	DelaysMs []int64 `json:"delaysMs,omitempty"`
	Jitter   float64 `json:"jitter,omitempty"` // the part of each delay that is random, 0–1
}

// Default is the policy of a job without one of its own: 10, 20, 40, 80, 160, 300, 300 … s, exact.
var Default = Policy{Type: Exponential, BaseMs: 5_000, CapMs: 300_000}

// Equal reports whether two policies have the same fields.
func (p *Policy) Equal(q *Policy) bool {
	a, b := p.orDefault(), q.orDefault()
	return a.Type == b.Type && a.BaseMs == b.BaseMs && a.CapMs == b.CapMs &&
		a.DelayMs == b.DelayMs && slices.Equal(a.DelaysMs, b.DelaysMs) && a.Jitter == b.Jitter
}

// Delay returns the time from the n-th failure (n ≥ 1) to the next attempt. With jitter j it is uniformly distributed
// in ((1−j)·d, d], so it never exceeds the delay of the policy. rnd returns a number in [0, 1); without jitter it is
// not called.
func (p *Policy) Delay(n int, rnd func() float64) time.Duration {
	p = p.orDefault()
	ms := min(max(p.delayMs(max(n, 1)), 0), MaxDelayMs)
	d := time.Duration(ms) * time.Millisecond
	if p.Jitter > 0 {
		d -= time.Duration(float64(d) * min(p.Jitter, 1) * rnd())
	}
	return d
}

func (p *Policy) delayMs(n int) int64 {
	switch p.Type {
	case Fixed:
		return p.DelayMs
	case List:
		if len(p.DelaysMs) == 0 {
			return 0
		}
		return p.DelaysMs[min(n, len(p.DelaysMs))-1]
	default:
		// Doubling stops at the cap, so it cannot overflow, however large n is.
		ms, limit := p.BaseMs, min(p.CapMs, MaxDelayMs)
		for ; n > 0 && ms > 0 && ms < limit; n-- {
			ms *= 2
		}
		return min(ms, limit)
	}
}

func (p *Policy) orDefault() *Policy {
	if p == nil {
		return &Default
	}
	return p
}

// Validate returns the problems, each with its path relative to the policy; nil if there are none. A field of another
// type must be zero.
func (p *Policy) Validate() []apierror.Detail {
	p = p.orDefault()
	var wrong []apierror.Detail
	add := func(path, format string, args ...any) {
		wrong = append(wrong, apierror.Detail{Path: path, Message: fmt.Sprintf(format, args...)})
	}
	if !slices.Contains([]string{Exponential, Fixed, List}, p.Type) {
		add("type", "must be %s, %s or %s", Exponential, Fixed, List)
		return wrong
	}
	delay := func(path, owner string, ms int64) {
		switch {
		case p.Type != owner && ms != 0:
			add(path, "does not belong to a policy of type %s", p.Type)
		case ms < 0 || ms > MaxDelayMs:
			add(path, "must be from 0 to %d", int64(MaxDelayMs))
		}
	}
	delay("baseMs", Exponential, p.BaseMs)
	delay("capMs", Exponential, p.CapMs)
	delay("delayMs", Fixed, p.DelayMs)
	if p.Type == List && (len(p.DelaysMs) == 0 || len(p.DelaysMs) > MaxDelays) {
		add("delaysMs", "must have from 1 to %d entries", MaxDelays)
	} else if p.Type != List && len(p.DelaysMs) > 0 {
		add("delaysMs", "does not belong to a policy of type %s", p.Type)
	} else {
		for i, ms := range p.DelaysMs {
			delay(fmt.Sprintf("delaysMs[%d]", i), List, ms)
		}
	}
	if !(p.Jitter >= 0 && p.Jitter <= 1) { // so written, it refuses NaN too
		add("jitter", "must be from 0 to 1")
	}
	return wrong
}
