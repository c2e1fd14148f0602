// Package fairshare has callers wait for each other where there are few places, so that none keeps the others out.
package fairshare

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// Shares are places, of which each caller has so many at once, and all have so many together. Who finds none waits in
// line: a caller that has all of its own holds up only itself.
type Shares struct {
	all  *semaphore.Weighted
	each int64

	mu sync.Mutex
	by map[string]*share
}

type share struct {
	places *semaphore.Weighted
	users  int // that have one of them or wait for one
}

// New makes so many places in all, and lets each caller have so many of them.
func New(all, each int) *Shares {
	return &Shares{all: semaphore.NewWeighted(int64(all)), each: int64(each), by: map[string]*share{}}
}

// Acquire waits for a place until ctx ends. release is to be called, once.
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
