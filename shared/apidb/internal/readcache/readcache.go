// Package readcache caches results that many requests read at the same time and that may be slightly old.
package readcache

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/jobweaver/jobweaver/shared/apidb/internal/callershare"
)

// cachePatience bounds a shared read, however long its readers would wait.
const cachePatience = 10 * time.Second

// Cache holds one result. Concurrent readers share one read, and each waits no longer than its own context.
type Cache[T any] struct {
	held   atomic.Pointer[cached[T]]
	flight singleflight.Group
	era    atomic.Int64 // the number of calls of Forget
}

type cached[T any] struct {
	value T
	at    time.Time
	took  time.Duration // the read
	era   int64         // of the cache when its read began
}

// Forget makes the next Get read again. A read under way may have missed the change, so its result is not kept.
func (c *Cache[T]) Forget() {
	c.era.Add(1)
	c.flight.Forget("")
}

// Get returns a result that was read at most age ago, or reads it.
func (c *Cache[T]) Get(
	ctx context.Context, age time.Duration, read func(context.Context) (T, error),
) (value T, err error) {
	return c.get(ctx, func(*cached[T]) time.Duration { return age }, read)
}

const (
	rareShare = 20                    // a costly result may be this many times as old as its read took
	costly    = 10 * time.Millisecond // a read that takes less is not costly
	fewJobs   = 10_000                // a read of fewer jobs is not costly: what it waited for is another one's load
)

// GetRarely returns a result that was read at most age ago, or reads it, as Get does. But if the read was costly, its
// result may be twenty times as old as the read took, so that at most a twentieth of the time is spent on reads. jobs
// returns how many jobs were counted for a result.
func (c *Cache[T]) GetRarely(
	ctx context.Context, age time.Duration, jobs func(T) int64, read func(context.Context) (T, error),
) (value T, err error) {
	return c.get(ctx, func(held *cached[T]) time.Duration {
		if held.took < costly || jobs(held.value) < fewJobs {
			return age
		}
		return max(age, rareShare*held.took)
	}, read)
}

// get returns a result that is younger than the age that it may have, or reads it.
func (c *Cache[T]) get(
	ctx context.Context, age func(*cached[T]) time.Duration, read func(context.Context) (T, error),
) (value T, err error) {
	if held := c.held.Load(); held != nil && held.era == c.era.Load() && time.Since(held.at) < age(held) {
		return held.value, nil
	}
	coming := c.flight.DoChan("", func() (any, error) {
		ctx, cancel := context.WithTimeout(callershare.Without(context.WithoutCancel(ctx)), cachePatience)
		defer cancel()
		era, began := c.era.Load(), time.Now()
		value, err := read(ctx)
		if err != nil {
			return nil, err
		}
		now := time.Now()
		fresh := &cached[T]{value: value, at: now, took: now.Sub(began), era: era}
		c.held.Store(fresh)
		return fresh, nil
	})
	select {
	case <-ctx.Done():
		return value, fmt.Errorf("wait for the database: %w", context.Cause(ctx))
	case result := <-coming:
		if result.Err != nil {
			return value, result.Err
		}
		return result.Val.(*cached[T]).value, nil
	}
}

// Caches holds one cache for each key.
type Caches[K comparable, T any] struct {
	mu   sync.Mutex
	held map[K]*Cache[T]
}

// mostCaches is the number of caches above which all of them are dropped.
const mostCaches = 1000

// Of returns the cache of a key.
func (c *Caches[K, T]) Of(key K) *Cache[T] {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held[key] == nil {
		if c.held == nil || len(c.held) >= mostCaches {
			c.held = map[K]*Cache[T]{}
		}
		c.held[key] = &Cache[T]{}
	}
	return c.held[key]
}
