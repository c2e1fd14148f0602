package telemetry

import (
	"maps"
	"sync"
	"sync/atomic"
)

// maxJobTypes is how many job types have series of their own in a process; further ones are "other". With JOB_TYPES=*
// a client can send any text as a job type.
const maxJobTypes = 100

const otherJobTypes = "other"

// children are the series of a metric that exist so far, by the values of their labels. To find one costs a read of a
// map that is never written to, and no allocation. The caller bounds the number of keys.
type children[K comparable, V any] struct {
	mu  sync.Mutex
	all atomic.Pointer[map[K]V]
}

func (c *children[K, V]) find(key K) (V, bool) {
	if all := c.all.Load(); all != nil {
		one, ok := (*all)[key]
		return one, ok
	}
	var none V
	return none, false
}

func (c *children[K, V]) of(key K, build func() V) V {
	if one, ok := c.find(key); ok {
		return one
	}
	return c.add(key, build)
}

func (c *children[K, V]) add(key K, build func() V) V {
	c.mu.Lock()
	defer c.mu.Unlock()
	if one, ok := c.find(key); ok {
		return one
	}
	all := map[K]V{}
	if before := c.all.Load(); before != nil {
		all = maps.Clone(*before)
	}
	one := build()
	all[key] = one
	c.all.Store(&all)
	return one
}

// names gives the first names labels of their own.
type names struct {
	most int

	mu   sync.Mutex
	seen children[string, string]
	n    int
}

// label returns the name itself, or the common label of all further names.
func (n *names) label(name string) string {
	if known, ok := n.seen.find(name); ok {
		return known
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, ok := n.seen.find(name); !ok && n.n >= n.most {
		return otherJobTypes
	}
	return n.seen.of(name, func() string { n.n++; return name })
}

var jobTypes = names{most: maxJobTypes}

// JobType is a job type as a label: itself, or "other" when the process has met a hundred others before.
func JobType(name string) string {
	if name == "" {
		return otherJobTypes // of a job that could not be read
	}
	return jobTypes.label(name)
}
