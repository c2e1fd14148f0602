// Package fairshare divides a few places among callers, so that no caller keeps the others out.
package fairshare

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// Shares are places, with a limit for each caller and one for all callers together. Acquire waits in line for a place.
// A caller that has reached its own limit delays only itself.
type Shares struct {
	all  *semaphore.Weighted
	each int64

	mu sync.Mutex
	by map[string]*share
}

type share struct {
	places *semaphore.Weighted
	users  int // calls of Acquire that have a place or wait for one
}

// New returns Shares of all places, of which one caller may have at most each at once.
func New(all, each int) *Shares {
	return &Shares{all: semaphore.NewWeighted(int64(all)), each: int64(each), by: map[string]*share{}}
}

// Acquire waits for a place until ctx ends. The caller must call release once.
func (s *Shares) Acquire(ctx context.Context, caller string) (release func(), err error) {
	own := s.join(caller)
	if err := own.places.Acquire(ctx, 1); err != nil {
		s.leave(caller, own)
		return nil, err
	}
	if err := s.all.Acquire(ctx, 1); err != nil {
		own.places.Release(1)
		s.leave(caller, own)
		return nil, err
	}
	return func() {
		s.all.Release(1)
		own.places.Release(1)
		s.leave(caller, own)
	}, nil
}

func (s *Shares) join(caller string) *share {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.by[caller]
	if own == nil {
		own = &share{places: semaphore.NewWeighted(s.each)}
		s.by[caller] = own
	}
	own.users++
	return own
}

func (s *Shares) leave(caller string, own *share) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if own.users--; own.users == 0 {
		delete(s.by, caller)
	}
}
