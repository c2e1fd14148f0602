package dispatch

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// The subjects of a lane for jobs that only some workers run: runs:"RESIZE" for:"acme". They are no controls.
const (
	runs    = "runs" // the job type
	runsFor = "for"  // the owner, in a queue whose pull workers work for owners
)

// sortedKept is how long a queue stays sorted by type after its workers last differed, or a job of it was last known to
// wait for a worker of its type.
const sortedKept = 15 * time.Minute

// sorting is the state of a queue whose jobs wait in lanes of their kinds: of those job types that not all live workers
// of the queue run or, if pull workers serve it, of each job type. Only lanes of kinds that a live worker runs are in
// the ledger. The others exist in the rows alone, however many they are: they are found again by KindRanges.
type sorting struct {
	Asked   bool      `json:"asked,omitempty"`   // pull workers serve the queue: only what they ask for goes out
	ByOwner bool      `json:"byOwner,omitempty"` // some of them work for one owner
	At      time.Time `json:"at,omitzero"`       // when its workers last differed, or a job waited for one of its type
}

// Kind has the fields by which pull workers distinguish jobs.
type Kind struct{ Queue, JobType, OwnerID string }

// Demand is what pull workers with the same rights ask for.
type Demand struct {
	Everyone bool     `json:"everyone,omitempty"` // they run the jobs of all owners
	OwnerID  string   `json:"ownerId,omitempty"`
	JobTypes []string `json:"jobTypes"`
	Queues   []string `json:"queues,omitempty"` // empty: all that the function pull serves

	Slots int     `json:"-"`
	Rate  float64 `json:"-"` // attempts that they finish in a second
}

// NoteSorted notes that a worker of a queue does not run a job of the queue.
func (c *counts) NoteSorted(queue string) {
	if c.typed == nil {
		c.typed = map[string]bool{}
	}
	c.typed[queue] = true
}

// noteTyped sorts a queue by type from now on.
func (l *Ledger) noteTyped(queue string) {
	s := l.sorted[queue]
	if l.At.Sub(s.At) < time.Minute { // so that a million jobs do not write it each time
		return
	}
	s.At = l.At
	l.sort(queue, s)
}

func (l *Ledger) sort(queue string, s sorting) {
	if l.sorted == nil {
		l.sorted = map[string]sorting{}
	}
	if before, some := l.sorted[queue]; !some || before != s {
		l.sorted[queue], l.changed = s, true
	}
}

// IsSorted reports whether it matters for some queue what the live workers run.
func (l *Ledger) IsSorted() bool { return len(l.sorted) > 0 }

// SortedQueues returns the queues with lanes of kinds, by name.
func (l *Ledger) SortedQueues() []string { return slices.Sorted(maps.Keys(l.sorted)) }

// IsAsked reports whether pull workers serve a queue.
func (l *Ledger) IsAsked(queue string) bool { return l.sorted[queue].Asked }

// AskedQueues returns the queues that pull workers serve, by name.
func (l *Ledger) AskedQueues() []string {
	var asked []string
	for queue, s := range l.sorted {
		if s.Asked {
			asked = append(asked, queue)
		}
	}
	slices.Sort(asked)
	return asked
}

// CompareTypes takes the live workers, and sorts the queues in which they differ. It returns the queues that pull
// workers serve from now on: their attempts that are out must be counted.
func (l *Ledger) CompareTypes(workers []*Worker) (newlyAsked []string) {
	l.live, l.runners = nil, map[string]*runners{}
	for _, w := range workers {
		w.drains = l.controls.Drains(w.ID)
		l.live = append(l.live, w.groups()...)
	}
	for _, w := range workers {
		for queue := range w.Partitions {
			s := l.sorted[queue]
			switch {
			case w.Demands != nil:
				if !s.Asked {
					newlyAsked = append(newlyAsked, queue)
				}
				s.Asked = true
				s.ByOwner = s.ByOwner || slices.ContainsFunc(w.Demands, func(d Demand) bool { return !d.Everyone })
				l.sort(queue, s)
			case !s.Asked && l.runnersOf(queue).differ():
				l.noteTyped(queue)
			}
		}
	}
	return newlyAsked
}

// tidyKinds forgets lanes of kinds that no live worker runs, and queues whose workers run the same types.
func (l *Ledger) tidyKinds() {
	if l.runners == nil {
		return
	}
	for queue, lanes := range l.lanes {
		maps.DeleteFunc(lanes, func(lane string, _ time.Time) bool {
			if !strings.HasPrefix(lane, runs+":") || l.isServed(queue, subjectsOf(lane)) {
				return false
			}
			if !l.IsAsked(queue) {
				l.noteTyped(queue)
			}
			return true
		})
	}
	maps.DeleteFunc(l.sorted, func(queue string, s sorting) bool {
		return !s.Asked && l.At.Sub(s.At) > sortedKept && !l.runnersOf(queue).differ()
	})
	maps.DeleteFunc(l.asked, func(k Kind, n int) bool { return n == 0 || !l.IsAsked(k.Queue) })
}

// runners are the live workers of a queue, other than draining ones, by what they run.
type runners struct {
	workers, any int
	byType       map[string]*typeRunners
}

type typeRunners struct {
	workers  int
	everyone bool // some of them run the jobs of all owners
	owners   map[string]bool
}

func (l *Ledger) runnersOf(queue string) *runners {
	r := l.runners[queue]
	if r != nil {
		return r
	}
	r = &runners{byType: map[string]*typeRunners{}}
	for _, w := range serving(l.live, queue) {
		r.workers++
		if w.types == nil {
			r.any++
		}
		for name := range w.types {
			t := r.byType[name]
			if t == nil {
				t = &typeRunners{owners: map[string]bool{}}
				r.byType[name] = t
			}
			t.workers++
			if w.owner == nil {
				t.everyone = true
			} else {
				t.owners[*w.owner] = true
			}
		}
	}
	if l.runners != nil {
		l.runners[queue] = r
	}
	return r
}

// differ reports whether some of the workers run a type that others do not run.
func (r *runners) differ() bool {
	for _, t := range r.byType {
		if r.any+t.workers < r.workers {
			return true
		}
	}
	return false
}

func (r *runners) allRun(jobType string) bool {
	t := r.byType[jobType]
	return r.any == r.workers || t != nil && r.any+t.workers == r.workers
}

// run reports whether a worker runs a type for an owner; nil: for any.
func (r *runners) run(jobType string, owner *string) bool {
	t := r.byType[jobType]
	return r.any > 0 || t != nil && (owner == nil || t.everyone || t.owners[*owner])
}

// kindOf returns the job type and the owner of a lane's kind; nil: its jobs may be of any.
func kindOf(subjects []Subject) (jobType, owner *string) {
	for i, s := range subjects {
		if s.Kind == runs {
			jobType = &subjects[i].Name
		}
		if s.Kind == runsFor {
			owner = &subjects[i].Name
		}
	}
	return jobType, owner
}

// isServed reports whether a live worker runs the jobs of a lane. In a queue that only workers of other processes can
// start, the lag of jobs without a worker has to wake one: they count as served while the queue has no worker at all.
func (l *Ledger) isServed(queue string, subjects []Subject) bool {
	jobType, owner := kindOf(subjects)
	if jobType == nil || l.runners == nil {
		return true
	}
	r := l.runnersOf(queue)
	return r.run(*jobType, owner) || r.workers == 0 && !l.IsAsked(queue)
}

// IsServed does the same for the lane's name.
func (l *Ledger) IsServed(queue, lane string) bool { return l.isServed(queue, subjectsOf(lane)) }

// TypeOf returns the job type of a lane's kind; empty: its jobs are of any type.
func TypeOf(lane string) string {
	if jobType, _ := kindOf(subjectsOf(lane)); jobType != nil {
		return *jobType
	}
	return ""
}

// laneOf names the lane of jobs of a queue: the one of their kind where not every worker runs it, of the build on which
// they stay, and of their controls; empty: any.
func (l *Ledger) laneOf(queue, jobType, owner, build string) string {
	s, isSorted := l.sorted[queue]
	lane := ""
	switch {
	case build != "":
		lane = laneAnd(laneAnd("", Subject{runs, jobType}), Subject{onBuild, build})
	case !isSorted:
	case s.Asked:
		lane = laneAnd("", Subject{runs, jobType})
		if s.ByOwner && owner != "" {
			lane = laneAnd(lane, Subject{runsFor, owner})
		}
	default:
		if r := l.runnersOf(queue); !r.allRun(jobType) {
			lane = laneAnd("", Subject{runs, jobType})
		}
	}
	for _, subject := range l.controls.touching(jobType, owner) {
		lane = laneAnd(lane, subject)
	}
	return lane
}

// Range is a part of the lanes of a queue, in the order of their bytes: From is in it, To is not.
type Range struct{ Queue, From, To string }

// Lanes of one kind begin with the same subjects. A space or the end follows, and ! is the next byte.
func laneRange(queue, prefix string) Range { return Range{queue, prefix, prefix + "!"} }

// AllKinds is the range of all lanes of kinds of a queue.
func AllKinds(queue string) Range { return Range{queue, runs + ":", runs + ";"} }

// KindRanges returns where jobs may wait that live workers run, by the queues of these workers. A worker that runs any
// type has all lanes of kinds. Jobs that came before the queue was sorted by owner are in lanes without an owner.
func KindRanges(workers []*Worker) map[Range]bool {
	ranges := map[Range]bool{}
	for _, w := range workers {
		for _, g := range w.groups() {
			for queue, partitions := range g.Partitions {
				switch {
				case len(partitions) == 0:
				case g.types == nil:
					ranges[AllKinds(queue)] = true
				default:
					for name := range g.types {
						g.rangesOf(queue, laneAnd("", Subject{runs, name}), ranges)
					}
				}
			}
		}
	}
	return ranges
}

func (w *Worker) rangesOf(queue, lane string, ranges map[Range]bool) {
	if w.owner == nil {
		ranges[laneRange(queue, lane)] = true
		return
	}
	ranges[laneRange(queue, laneAnd(lane, Subject{runsFor, *w.owner}))] = true
	ranges[Range{queue, lane, lane + " " + runsFor + ":"}] = true
	ranges[Range{queue, lane + " " + runsFor + ";", lane + "!"}] = true
}

// LiveRanges returns the ranges of the workers of the last CompareTypes that do not drain, and of the sorted queues
// without a worker whose lag has to wake one.
func (l *Ledger) LiveRanges() []Range {
	ranges := KindRanges(slices.DeleteFunc(slices.Clone(l.live), func(w *Worker) bool { return w.drains }))
	maps.DeleteFunc(ranges, func(r Range, _ bool) bool {
		_, isSorted := l.sorted[r.Queue]
		return !isSorted
	})
	for _, r := range l.IdleRanges() {
		ranges[r] = true
	}
	return slices.SortedFunc(maps.Keys(ranges), func(a, b Range) int {
		return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.From, b.From))
	})
}

// IdleRanges returns the ranges of the sorted queues without a worker whose lag has to wake one.
func (l *Ledger) IdleRanges() (ranges []Range) {
	for queue, s := range l.sorted {
		if !s.Asked && l.runnersOf(queue).workers == 0 {
			ranges = append(ranges, AllKinds(queue))
		}
	}
	return ranges
}

// SetAsked sets how many attempts of each kind are out in queues that pull workers serve from now on.
func (l *Ledger) SetAsked(out map[Kind]int) {
	for kind, n := range out {
		l.noteAsked(kind, n)
	}
	l.changed = l.changed || len(out) > 0
}

func (c *counts) noteAsked(kind Kind, n int) {
	if c.asked == nil {
		c.asked = map[Kind]int{}
	}
	c.asked[kind] += n
}

// kindCount is an entry of asked, as the ledger's row keeps it.
type kindCount struct {
	Kind
	Out int
}

func kindCounts(asked map[Kind]int) []kindCount {
	var list []kindCount
	for kind, n := range asked {
		list = append(list, kindCount{kind, n})
	}
	return list
}
