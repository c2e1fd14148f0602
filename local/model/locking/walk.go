package locking

import (
	"fmt"
	"slices"
)

// Result is the result of a walk.
type Result struct {
	States  int
	Slowest int      // the most seconds after a freeze until all jobs were published
	Late    []string // a shortest path to a broken promise; nil: it is kept in every state
}

type way struct {
	from int
	who  int
	what string
}

// Walk visits every state, the nearest first, until the promise is broken.
func Walk(limits Limits) (r Result) {
	m := &model{limits: limits}
	states, ways := []state{{}}, []way{{}}
	seen := map[state]bool{states[0]: true}
	at := 0
	m.out = func(who int, what string, to state) {
		if !seen[to] {
			seen[to] = true
			states, ways = append(states, to), append(ways, way{at, who, what})
		}
	}
	for ; at < len(states); at++ {
		s := states[at]
		if m.late(&s) {
			r.Late = describe(ways, at)
			break
		}
		if !m.allPublished(&s) {
			r.Slowest = max(r.Slowest, int(s.age))
		}
		m.steps(s)
	}
	r.States = len(states)
	return r
}

func (m *model) allPublished(s *state) bool {
	for i := range m.limits.Processes {
		if m.alive(s, i) && !s.published[jobOf(i)] {
			return false
		}
	}
	return true
}

func describe(ways []way, i int) (lines []string) {
	for ; i > 0; i = ways[i].from {
		line := ways[i].what
		if ways[i].who >= 0 {
			line = fmt.Sprintf("process %d %s", ways[i].who+1, line)
		}
		lines = append(lines, line)
	}
	slices.Reverse(lines)
	return lines
}
