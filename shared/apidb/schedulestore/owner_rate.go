package schedulestore

import (
	"maps"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// paceRest is the least time for which an owner's schedules rest when the owner has used up its rate. It bounds how
	// many passes a second look at them.
	paceRest = 250 * time.Millisecond
	// pacedMost is how many owners' buckets are kept. Above it the full ones are forgotten.
	pacedMost = 10_000
)

// pace bounds how many jobs a second the schedules of one owner make in this process.
type pace struct {
	mu      sync.Mutex
	buckets map[string]*rate.Limiter
	rests   map[string]time.Time // by owner: until when its schedules rest
}

// take reports whether an owner's schedules may make another job now. perSecond 0: any number.
func (p *pace) take(owner string, perSecond float64) bool {
	if perSecond == 0 {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.bucket(owner, perSecond, now).AllowN(now, 1) {
		return true
	}
	p.rests[owner] = now.Add(max(paceRest, time.Duration(float64(time.Second)/perSecond)))
	return false
}

func (p *pace) bucket(owner string, perSecond float64, now time.Time) *rate.Limiter {
	bucket := p.buckets[owner]
	if bucket != nil {
		return bucket
	}
	if p.buckets == nil {
		p.buckets, p.rests = map[string]*rate.Limiter{}, map[string]time.Time{}
	}
	if len(p.buckets) >= pacedMost {
		maps.DeleteFunc(p.buckets, func(_ string, b *rate.Limiter) bool { return b.TokensAt(now) >= float64(b.Burst()) })
	}
	bucket = rate.NewLimiter(rate.Limit(perSecond), max(1, int(math.Ceil(perSecond))))
	p.buckets[owner] = bucket
	return bucket
}

// now returns the owners whose schedules rest at present, never nil, and how long until the first of them continues,
// at most idle.
func (p *pace) now(idle time.Duration) (owners []string, again time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	owners, again = []string{}, idle
	for owner, until := range p.rests {
		left := time.Until(until)
		if left <= 0 {
			delete(p.rests, owner)
			continue
		}
		owners, again = append(owners, owner), min(again, left)
	}
	return owners, again
}
