package dispatch

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// runs is the kind of the subject of a lane for the jobs of a scarce type: runs:"RESIZE". It is not a control.
const runs jobevent.ControlKind = "runs"

const (
	// maxScarce bounds the scarce types of a queue: each has lanes in the ledger. Jobs of further types go to any worker,
	// which postpones them.
	maxScarce = 100
	// scarceKept is how long a type stays scarce that no worker runs and of which no job waits: a job that was put off
	// comes back within this time.
	scarceKept = 15 * time.Minute
)

// scarce is a job type that some live worker of its queue does not run. Jobs of such a type wait in lanes of their own,
// and only go to workers that run it.
type scarce struct {
	Since time.Time `json:"since,omitzero"` // since when no live worker runs it; zero: one does, or the queue has none
}

// ScarceType is a job type that no live worker of a queue runs.
type ScarceType struct {
	Queue, JobType string
	Since          time.Time
	Lanes          []string // in which its jobs wait
}

// NoteScarce notes that a worker of a queue does not run a job type.
func (c *counts) NoteScarce(queue, jobType string) {
	types := c.scarce[queue]
	if _, some := types[jobType]; some || len(types) >= maxScarce {
		return
	}
	if c.scarce == nil {
		c.scarce = map[string]map[string]scarce{}
	}
	if types == nil {
		types = map[string]scarce{}
		c.scarce[queue] = types
	}
	types[jobType] = scarce{}
}

// CompareTypes finds the scarce types: those that some live workers of a queue run and others do not, and of those that
// were scarce before the ones that no worker runs. In a queue without a live worker no type is known to lack a worker:
// attempts go out, to wake one. A draining worker does not count.
func (l *Ledger) CompareTypes(workers []*Worker) {
	l.live = workers
	for _, w := range workers {
		w.drains = l.controls.Drains(w.ID)
	}
	for _, w := range workers {
		for queue := range w.Partitions {
			for name := range w.types {
				if !runAll(serving(workers, queue), name) && !l.IsScarce(queue, name) {
					l.NoteScarce(queue, name)
					l.changed = true
				}
			}
		}
	}
	l.reviseScarce(workers)
}

func runAll(workers []*Worker, jobType string) bool {
	return !slices.ContainsFunc(workers, func(w *Worker) bool { return !w.runs(jobType) })
}

// HasScarce reports whether it matters which job types the live workers run.
func (l *Ledger) HasScarce() bool { return len(l.scarce) > 0 }

// IsScarce reports whether some live worker of a queue does not run a job type.
func (l *Ledger) IsScarce(queue, jobType string) bool {
	_, some := l.scarce[queue][jobType]
	return some
}

// WithoutWorker returns the job types that no live worker runs and of which jobs wait.
func (l *Ledger) WithoutWorker() []ScarceType {
	var without []ScarceType
	for queue, types := range l.scarce {
		for name, s := range types {
			if lanes := l.lanesOfType(queue, name); !s.Since.IsZero() && len(lanes) > 0 {
				without = append(without, ScarceType{queue, name, s.Since, lanes})
			}
		}
	}
	slices.SortFunc(without, func(a, b ScarceType) int {
		return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.JobType, b.JobType))
	})
	return without
}

func (l *Ledger) lanesOfType(queue, jobType string) []string {
	var lanes []string
	for lane := range l.lanes[queue] {
		if slices.Contains(subjectsOf(lane), Subject{runs, jobType}) {
			lanes = append(lanes, lane)
		}
	}
	slices.Sort(lanes)
	return lanes
}

func (l *Ledger) reviseScarce(workers []*Worker) {
	for queue, types := range l.scarce {
		serving := serving(workers, queue)
		for name, s := range types {
			isRun := slices.ContainsFunc(serving, func(w *Worker) bool { return w.runs(name) })
			switch {
			case len(serving) > 0 && runAll(serving, name):
				delete(types, name)
			case len(serving) > 0 && !isRun && s.Since.IsZero():
				types[name] = scarce{l.At}
			case (len(serving) == 0 || isRun) && !s.Since.IsZero():
				types[name] = scarce{}
			default:
				continue
			}
			l.changed = true
		}
	}
}

// tidyScarce forgets types that no worker runs and of which no job waits any more.
func (l *Ledger) tidyScarce() {
	for queue, types := range l.scarce {
		maps.DeleteFunc(types, func(name string, s scarce) bool {
			return !s.Since.IsZero() && l.At.Sub(s.Since) > scarceKept && len(l.lanesOfType(queue, name)) == 0
		})
		if len(types) == 0 {
			delete(l.scarce, queue)
		}
	}
}

// laneOf names the lane of jobs of a queue: the one of their controls, of their type where that is scarce, and of the
// build on which they stay; empty: any.
func (l *Ledger) laneOf(queue, jobType, owner, build string) string {
	lane := l.controls.laneOf(jobType, owner)
	switch {
	case build != "":
		return LaneOnBuild(lane, jobType, build)
	case l.IsScarce(queue, jobType):
		return laneAnd(lane, Subject{runs, jobType})
	}
	return lane
}

// places are the targets that one step has for jobs of a queue.
type places struct {
	l     *Ledger
	queue string
	free  []Target
	room  map[string]int // by scarce type: the free targets whose workers run it
}

// newPlaces returns the places of sorted targets.
func newPlaces(l *Ledger, queue string, sorted []Target) *places {
	p := &places{l: l, queue: queue, free: slices.Clone(sorted)}
	if len(l.scarce[queue]) > 0 {
		p.room = map[string]int{}
		for _, t := range sorted {
			p.addRoom(t, 1)
		}
	}
	return p
}

// sortTargets puts those first whose workers run few scarce types: jobs that any worker runs use these first.
func (l *Ledger) sortTargets(queue string, targets []Target) []Target {
	types := l.scarce[queue]
	if len(types) == 0 {
		return targets
	}
	runsOf := map[*Worker]int{}
	for _, t := range targets {
		if _, counted := runsOf[t.worker]; counted {
			continue
		}
		runsOf[t.worker] = 0
		for name := range types {
			if t.worker.runs(name) {
				runsOf[t.worker]++
			}
		}
	}
	return slices.SortedStableFunc(slices.Values(targets), func(a, b Target) int {
		return cmp.Compare(runsOf[a.worker], runsOf[b.worker])
	})
}

func (p *places) addRoom(t Target, n int) {
	for name := range p.l.scarce[p.queue] {
		if t.worker.runs(name) {
			p.room[name] += n
		}
	}
}

// take uses up the first target whose worker runs a job type and is of the build on which the job stays. If none runs
// the type, the type is scarce from now on; if too many are scarce already, any target will do.
func (p *places) take(jobType, build string) (Target, bool) {
	at := slices.IndexFunc(p.free, p.takes(jobType, build))
	if at < 0 && !p.l.staysOn(p.queue, build, jobType) && len(p.free) > 0 && !p.l.IsScarce(p.queue, jobType) {
		p.l.NoteScarce(p.queue, jobType)
		p.l.changed = true
		if !p.l.IsScarce(p.queue, jobType) {
			at = 0
		}
	}
	if at < 0 {
		return Target{}, false
	}
	t := p.free[at]
	if at == 0 {
		p.free = p.free[1:]
	} else {
		p.free = slices.Delete(p.free, at, at+1)
	}
	if p.room != nil {
		p.addRoom(t, -1)
	}
	return t, true
}

// roomUnder returns how many jobs of a lane under those subjects could go to a free target.
func (p *places) roomUnder(subjects []Subject) int {
	room := p.l.roomUnder(p.queue, subjects)
	for _, s := range subjects {
		if s.Kind == onBuild && room > 0 {
			room = min(room, p.roomOnBuild(s.Name, subjects))
		}
		if s.Kind == runs && p.l.IsScarce(p.queue, s.Name) {
			room = min(room, p.room[s.Name])
		}
	}
	return room
}
