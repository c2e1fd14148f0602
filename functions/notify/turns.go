package notify

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/jobweaver/jobweaver/shared/apidb/deliverystore"
)

const (
	// pageOwners is how many owners one pass visits, and page about how many of their hosts.
	pageOwners, page = 100, 1_000
	// leastHosts is the least number of hosts that a pass visits of each owner, however many owners there are.
	leastHosts = page / pageOwners
)

// lap is a walk over the hosts of all owners, a page of owners at a time. For each owner it continues after the last
// host that had its turn, so that all hosts of an owner have theirs.
type lap struct {
	from  string            // the owner with whom the next page begins
	after map[string]string // by owner: the last host that had its turn, if there are more
	met   map[string]bool   // the owners of this lap
	each  int               // hosts of each owner in the next page
	whole bool              // the lap has left out no host so far
}

func newLap() lap { return lap{after: map[string]string{}, met: map[string]bool{}, each: leastHosts} }

// begin returns the next page.
func (l *lap) begin() deliverystore.Page {
	l.whole = l.whole || l.from == "" && len(l.after) == 0
	return deliverystore.Page{FromOwner: l.from, After: l.after, MaxOwners: pageOwners, MaxHosts: l.each}
}

// end records the turns of a page, and for how many of them there was room. It reports whether the lap has ended
// without leaving out a host.
func (l *lap) end(found, turns []deliverystore.DuePlace, seen int, next string) (whole bool) {
	hosts, last, unseen := map[string]int{}, map[string]string{}, map[string]bool{}
	for _, f := range found {
		hosts[f.Owner]++
		l.met[f.Owner] = true
	}
	for i, turn := range turns {
		if i >= seen {
			unseen[turn.Owner] = true
		} else {
			last[turn.Owner] = turn.Host
		}
	}
	for owner, n := range hosts {
		if n < l.each && !unseen[owner] { // the owner has no more hosts
			delete(l.after, owner)
		} else if host, had := last[owner]; had {
			l.after[owner] = host
		}
	}
	l.whole = l.whole && len(unseen) == 0
	l.each = max(leastHosts, page/max(1, len(hosts)))
	if l.from = next; next != "" {
		return false
	}
	maps.DeleteFunc(l.after, func(owner, _ string) bool { return !l.met[owner] }) // they have no deliveries any more
	clear(l.met)
	whole = l.whole && len(l.after) == 0
	l.whole = l.whole && !whole
	return whole
}

// inTurn sorts the first host of each owner before the second ones. The order of the owners is random, so that owners
// that share a host with little room all get some of it in the end.
func inTurn(found []deliverystore.DuePlace) (turns []deliverystore.DuePlace) {
	of := map[string][]deliverystore.DuePlace{}
	for _, f := range found {
		if f.Host != "" {
			of[f.Owner] = append(of[f.Owner], f)
		}
	}
	owners := slices.Collect(maps.Keys(of))
	rand.Shuffle(len(owners), func(i, j int) { owners[i], owners[j] = owners[j], owners[i] })
	for _, places := range of {
		slices.SortFunc(places, func(a, b deliverystore.DuePlace) int { return cmp.Compare(a.Host, b.Host) })
	}
	for n := 0; len(owners) > 0; n++ {
		owners = slices.DeleteFunc(owners, func(owner string) bool { return n == len(of[owner]) })
		for _, owner := range owners {
			turns = append(turns, of[owner][n])
		}
	}
	return turns
}
