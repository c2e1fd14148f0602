package statstore

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
)

// mostCodes is how many error codes one tally distinguishes: handlers choose codes, and could choose a new one each
// time.
const mostCodes = 20

// codes counts failed jobs by error code. "" counts jobs without a code, and those with codes beyond mostCodes.
type codes map[string]int64

func (c *codes) add(code string, n int64) {
	if *c == nil {
		*c = codes{}
	}
	(*c)[code] += n
}

func (c *codes) addAll(other codes) {
	for code, n := range other {
		c.add(code, n)
	}
}

// addEncoded adds what encode has written. It ignores anything else: statistics are not worth an error.
func (c *codes) addEncoded(stored []byte) {
	var other codes
	if len(stored) > len("{}") && json.Unmarshal(stored, &other) == nil {
		c.addAll(other)
	}
}

// encode returns the stored form: the most frequent codes.
func (c codes) encode() json.RawMessage {
	kept := codes{}
	for i, code := range c.ranked() {
		if code == "" || i >= mostCodes {
			kept[""] += c[code]
		} else {
			kept[code] = c[code]
		}
	}
	stored, err := json.Marshal(kept)
	if err != nil {
		panic(err) // a map of numbers is JSON
	}
	return stored
}

// ranked returns the codes by count, the most frequent first, and no code last.
func (c codes) ranked() []string {
	return slices.SortedFunc(maps.Keys(c), func(a, b string) int {
		if a == "" || b == "" {
			return cmp.Compare(b, a)
		}
		return cmp.Or(cmp.Compare(c[b], c[a]), cmp.Compare(a, b))
	})
}
