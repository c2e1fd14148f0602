package telemetry

import (
	"maps"
	"sync"
	"sync/atomic"
)

// maxJobTypes is how many job types a process tells apart; further ones are "other". With JOB_TYPES=* a job type is
// anybody's text.
const maxJobTypes = 100

const otherJobTypes = "other"

// children are the series of a metric that were met, by what their labels are made of. To find one again costs a look
// into a map that nobody writes to, and no allocation. They are few: whoever fills it bounds its keys.
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

// names tells the first of them apart.
type names struct {
	most int

	mu   sync.Mutex
	seen children[string, string]
	n    int
}

// label is the name itself, or what all further ones are called.
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
