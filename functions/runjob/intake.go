package runjob

import (
	"slices"
	"sync"
	"time"
)

// intake is an unbounded queue from one step to the next: put never waits, and take waits until there is an item. It
// stays small because the worker claims no attempts while it is long.
type intake[T any] struct {
	mu     sync.Mutex
	some   sync.Cond
	items  []T
	closed bool
	urgent func(T) bool // set while gather waits: an item that ends its wait
}

func newIntake[T any]() *intake[T] {
	in := &intake[T]{}
	in.some.L = &in.mu
	return in
}

func (in *intake[T]) put(items ...T) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.items = append(in.items, items...)
	if in.urgent == nil || slices.ContainsFunc(items, in.urgent) {
		in.some.Signal()
	}
}

// gather waits for an item, and then this long for others, unless one of them is urgent.
func (in *intake[T]) gather(within time.Duration, urgent func(T) bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for len(in.items) == 0 && !in.closed {
		in.some.Wait()
	}
	over := false
	timer := time.AfterFunc(within, func() {
		in.mu.Lock()
		defer in.mu.Unlock()
		over = true
		in.some.Signal()
	})
	defer timer.Stop()
	in.urgent = urgent
	for !over && !in.closed && !slices.ContainsFunc(in.items, urgent) {
		in.some.Wait()
	}
	in.urgent = nil
}

// take returns up to limit items; none once the intake is closed and empty.
func (in *intake[T]) take(limit int) []T {
	in.mu.Lock()
	defer in.mu.Unlock()
	for len(in.items) == 0 && !in.closed {
		in.some.Wait()
	}
	n := min(limit, len(in.items))
	taken := in.items[:n:n]
	in.items = in.items[n:]
	if len(in.items) == 0 {
		in.items = nil
	}
	return taken
}

// close lets take return without items once the intake is empty. Nothing may be put afterwards.
func (in *intake[T]) close() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.closed = true
	in.some.Broadcast()
}

func (in *intake[T]) len() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.items)
}
