package notify

import (
	"time"

	"github.com/jobweaver/jobweaver/shared/apidb/deliverystore"
)

const (
	// atOnce is the most tries under way at once.
	atOnce = 256
	// atSlow is the most tries to slow hosts, and atNotGood the most to slow and new hosts together, so that tries to
	// other hosts always find room.
	atSlow, atNotGood = atOnce / 2, atOnce * 3 / 4
	// atHost is the most tries to one host, and atNewHost the most to one new host.
	atHost, atNewHost = 8, 2
	// ofRest is the part that one owner may use of the room in atSlow and atNotGood that other owners leave. So new
	// hosts of other owners find room at once, whatever its hosts do.
	ofRest = 0.75
	// inTime is the time within which a host must answer, or it counts as slow.
	inTime = 5 * time.Second
	// slowRest is the time between two looks for deliveries to a slow host.
	slowRest = time.Second
	// remembered is how many hosts this process remembers.
	remembered = 10_000
)

// kind is how a host has answered so far.
type kind int

const (
	fresh kind = iota // it is not known whether the host answers
	good              // the host's last answer came in time
	slow              // it did not
	kinds
)

// hosts has what this process knows about the hosts to which it delivers.
type hosts struct {
	of     map[string]*host
	busy   map[deliverystore.Place]int // the number of tries under way; a place without tries has no entry
	trying counts
}

// counts has the numbers of tries under way, by the kind of host.
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

// ofOwner returns how many more tries an owner may have under a limit of most, if all owners together have all tries
// and this owner has own of them.
func ofOwner(most, all, own int) int { return int(ofRest*float64(most-(all-own))) - own }

type host struct {
	trying int
	kind   kind
	rest   time.Time // for a slow host: no try begins before this instant
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

// rooms shares out the free tries in the order of the turns. seen is the number of places that have had their turn.
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

// byOwner counts the tries under way by owner and kind of host.
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

// end removes a try from the counts, and records what it has shown about its host.
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
