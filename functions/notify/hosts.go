package notify

import (
	"time"

	"github.com/jobweaver/jobweaver/shared/apidb/deliverystore"
)

const (
	// atOnce is how many tries are under way at once.
	atOnce = 256
	// atSlow is how many of them are to slow hosts, and atNotGood how many to slow and new ones together: tries to other
	// hosts always find room.
	atSlow, atNotGood = atOnce / 2, atOnce * 3 / 4
	// atHost is how many of them are to one host, and atNewHost to a new one.
	atHost, atNewHost = 8, 2
	// ofRest is the part of the room that other owners leave of atSlow and atNotGood which one owner may use: whatever its
	// hosts do, new hosts of other owners find room at once.
	ofRest = 0.75
	// inTime is how soon a host has to answer not to be a slow one.
	inTime = 5 * time.Second
	// slowRest is the time between two looks for deliveries to a slow host.
	slowRest = time.Second
	// remembered is how many hosts this process remembers.
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

// hosts has what this process knows about the hosts to which it delivers.
type hosts struct {
	of     map[string]*host
	busy   map[deliverystore.Place]int // tries under way, where there are any
	trying counts
}

// counts has the numbers of tries under way, by the kinds of their hosts.
type counts [kinds]int

func (c *counts) all() int { return c[fresh] + c[good] + c[slow] }

// room reports whether there is room for another try of an owner to a host of this kind.
func (c *counts) room(k kind, own counts) int {
	room := atOnce - c.all()
	if k != good {
		room = min(room, ofOwner(atNotGood, c[fresh]+c[slow], own[fresh]+own[slow]))
	}
	if k == slow {
		room = min(room, ofOwner(atSlow, c[slow], own[slow]))
	}
	return max(room, 0)
}

// ofOwner returns how many more of most an owner may have, if all owners together have all and it has own of them.
func ofOwner(most, all, own int) int { return int(ofRest*float64(most-(all-own))) - own }

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

// rooms shares out what is free in the order of the turns. seen: so many have had theirs.
func (h *hosts) rooms(turns []deliverystore.DuePlace, now time.Time) (rooms map[deliverystore.Place]int, seen int) {
	rooms = map[deliverystore.Place]int{}
	taken, owners, given := h.trying, h.byOwner(), map[string]int{}
	for _, next := range turns {
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
		own := owners[next.Owner]
		room := min(known.room(now)-given[next.Host], taken.room(known.kind, own))
		if room > 0 {
			rooms[next.Place] = room
			given[next.Host] += room
			taken[known.kind] += room
			own[known.kind] += room
			owners[next.Owner] = own
		}
	}
	return rooms, seen
}

// byOwner counts the tries under way.
func (h *hosts) byOwner() map[string]counts {
	owners := map[string]counts{}
	for place, n := range h.busy {
		own := owners[place.Owner]
		own[h.of[place.Host].kind] += n
		owners[place.Owner] = own
	}
	return owners
}

// begin counts a try.
func (h *hosts) begin(place deliverystore.Place, now time.Time) {
	known := h.of[place.Host]
	if known == nil {
		known = h.add(place.Host)
	}
	if h.busy == nil {
		h.busy = map[deliverystore.Place]int{}
	}
	h.busy[place]++
	known.trying++
	h.trying[known.kind]++
	if known.kind == slow {
		known.rest = now.Add(slowRest)
	}
}

// end uncounts a try, and records what it has shown about its host.
func (h *hosts) end(place deliverystore.Place, shown kind) {
	if h.busy[place]--; h.busy[place] == 0 {
		delete(h.busy, place)
	}
	known := h.of[place.Host]
	h.trying[known.kind] -= known.trying
	known.trying--
	known.kind = shown
	h.trying[known.kind] += known.trying
}

// add adds a host. If there are too many, it forgets all others, which are new hosts again.
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
