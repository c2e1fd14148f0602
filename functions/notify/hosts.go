package notify

import (
	"time"

	"github.com/jobweaver/jobweaver/shared/apidb"
)

const (
	// atOnce is how many tries are under way at once.
	atOnce = 256
	// atSlow is how many of them are to slow hosts, and atNotGood how many to slow and new ones together: what is to
	// others always finds room.
	atSlow, atNotGood = atOnce / 2, atOnce * 3 / 4
	// atHost is how many of them are to one host, and atNewHost to a new one.
	atHost, atNewHost = 8, 2
	// inTime is how soon a host has to answer not to be a slow one.
	inTime = 5 * time.Second
	// slowRest is the time between two looks at what is due to a slow host: one that refuses at once costs little.
	slowRest = time.Second
	// remembered is how many hosts are.
	remembered = 10_000
)

// kind is what is known of a host.
type kind int

const (
	fresh kind = iota // whether it answers is not known
	good              // its last answer came in time
	slow              // it did not
	kinds
)

// hosts is what this process knows of the hosts that it delivers to.
type hosts struct {
	of     map[string]*host
	trying counts
}

// counts are of tries under way, by what is known of their hosts.
type counts [kinds]int

func (c *counts) all() int { return c[fresh] + c[good] + c[slow] }

// room is for another try to a host of that kind.
func (c *counts) room(k kind) int {
	room := atOnce - c.all()
	if k != good {
		room = min(room, atNotGood-c[fresh]-c[slow])
	}
	if k == slow {
		room = min(room, atSlow-c[slow])
	}
	return max(room, 0)
}

type host struct {
	trying int
	kind   kind
	rest   time.Time // of a slow one: nothing begins before
}

func (h *host) room(now time.Time) int {
	switch h.kind {
	case good:
		return atHost - h.trying
	case slow:
		if now.Before(h.rest) {
			return 0
		}
		return atHost - h.trying
	case fresh, kinds:
	}
	return atNewHost - h.trying
}

// rooms shares out what is free in the order of the hosts. seen: so many hosts have had their turn.
func (h *hosts) rooms(found []apidb.DueHost, now time.Time) (rooms map[string]int, seen int) {
	rooms = map[string]int{}
	taken := h.trying
	for _, next := range found {
		if taken.all() >= atOnce {
			break
		}
		seen++
		if !next.Due {
			continue
		}
		known := h.of[next.Host]
		if known == nil {
			known = &host{}
		}
		if room := min(known.room(now), taken.room(known.kind)); room > 0 {
			rooms[next.Host] = room
			taken[known.kind] += room
		}
	}
	return rooms, seen
}

// begin counts a try.
func (h *hosts) begin(name string, now time.Time) {
	known := h.of[name]
	if known == nil {
		known = h.add(name)
	}
	known.trying++
	h.trying[known.kind]++
	if known.kind == slow {
		known.rest = now.Add(slowRest)
	}
}

// end takes what a try has shown of its host.
func (h *hosts) end(name string, shown kind) {
	known := h.of[name]
	h.trying[known.kind] -= known.trying
	known.trying--
	known.kind = shown
	h.trying[known.kind] += known.trying
}

// add forgets the others when they are too many: they are new again.
func (h *hosts) add(name string) *host {
	if h.of == nil {
		h.of = map[string]*host{}
	}
	if len(h.of) >= remembered {
		for other, known := range h.of {
			if known.trying == 0 {
				delete(h.of, other)
			}
		}
	}
	known := &host{}
	h.of[name] = known
	return known
}
