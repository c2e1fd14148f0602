package funchost

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	waitAtLeast = 100 * time.Millisecond
	waitAtMost  = 5 * time.Second
)

// backoff is how long to wait before the next try: twice as long each time, a random half of it less.
type backoff struct{ last time.Duration }

func (b *backoff) next() time.Duration {
	b.last = min(max(2*b.last, waitAtLeast), waitAtMost)
	return b.last/2 + rand.N(b.last/2)
}

// pause waits and says whether ctx is still alive after it.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
