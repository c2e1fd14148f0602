package schedulerdb

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/internal/gen"
)

// controlSet is what the controls ask for, of which the ledger names the number.
type controlSet struct {
	n      int64
	rules  map[subject]rule // those that hold anything back
	byJob  bool             // some are about a job type or an owner
	byTime bool             // some limit starts a second
}

// rule is what one control asks for.
type rule struct {
	paused     bool
	maxRunning int     // unlimited: any number
	perSecond  float64 // zero: any number
}

const unlimited = math.MaxInt32

// noControls is the set of a house that never had one.
var noControls = &controlSet{}

// controlsOf reads the set of that number, once in a life. The ledger that names it is of this
// transaction's snapshot or locked by it, and is written whenever the set is.
func (s *Store) controlsOf(ctx context.Context, q *gen.Queries, n int64) (*controlSet, error) {
	if n == 0 {
		return noControls, nil
	}
	if known := s.controls.Load(); known != nil && known.n == n {
		return known, nil
	}
	rows, err := q.ControlsList(ctx)
	if err != nil {
		return nil, fmt.Errorf("read controls: %w", err)
	}
	set := newControlSet(n, rows)
	s.controls.Store(set)
	return set, nil
}

func newControlSet(n int64, rows []gen.Control) *controlSet {
	set := &controlSet{n: n, rules: map[subject]rule{}}
	for _, row := range rows {
		r := rule{paused: row.Paused, maxRunning: unlimited}
		if row.MaxRunning != nil {
			r.maxRunning = int(*row.MaxRunning)
		}
		if row.StartsPerSecond != nil {
			r.perSecond = *row.StartsPerSecond
		}
		if r == (rule{maxRunning: unlimited}) {
			continue
		}
		s := subject{jobevent.ControlKind(row.Kind), row.Name}
		set.rules[s] = r
		set.byJob = set.byJob || s.kind != jobevent.ControlQueue
		set.byTime = set.byTime || r.perSecond > 0
	}
	return set
}

// touching are the controls by job type and owner that a job stands under.
func (c *controlSet) touching(jobType, owner string) []subject {
	if !c.byJob {
		return nil
	}
	both := []subject{{jobevent.ControlType, jobType}, {jobevent.ControlOwner, owner}}
	return slices.DeleteFunc(both, func(s subject) bool {
		_, some := c.rules[s]
		return !some || s.name == ""
	})
}

// laneOf names the lane of jobs that stand under the same controls by job type and owner:
// type:"EMAIL" owner:"acme". Empty: under none.
func (c *controlSet) laneOf(jobType, owner string) string {
	var lane []byte
	for _, s := range c.touching(jobType, owner) {
		if len(lane) > 0 {
			lane = append(lane, ' ')
		}
		lane = append(append(lane, s.kind...), ':')
		lane = strconv.AppendQuote(lane, s.name)
	}
	return string(lane)
}

// subjectsOf reads what laneOf wrote, maybe under other controls than those of now.
func subjectsOf(lane string) []subject {
	var subjects []subject
	for lane != "" {
		kind, rest, _ := strings.Cut(lane, ":")
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return subjects
		}
		name, _ := strconv.Unquote(quoted) // a quoted prefix can be read
		subjects = append(subjects, subject{jobevent.ControlKind(kind), name})
		_, lane, _ = strings.Cut(rest[len(quoted):], " ")
	}
	return subjects
}
