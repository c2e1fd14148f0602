package dispatch

import (
	"cmp"
	"slices"
)

// places are the targets that one step has for jobs of a queue.
type places struct {
	l     *Ledger
	queue string
	free  []Target
	room  map[laneKind]int // free targets whose workers run a kind, for each kind that was asked about
}

// laneKind is the kind of a lane: its job type and, if anyOwner is false, its owner.
type laneKind struct {
	jobType, owner string
	anyOwner       bool
}

// newPlaces returns the places of sorted targets.
func newPlaces(l *Ledger, queue string, sorted []Target) *places {
	return &places{l: l, queue: queue, free: slices.Clone(sorted)}
}

// sortTargets puts those first whose workers run few kinds: jobs that any worker runs use these first.
func (l *Ledger) sortTargets(queue string, targets []Target) []Target {
	if _, isSorted := l.sorted[queue]; !isSorted {
		return targets
	}
	return slices.SortedStableFunc(slices.Values(targets), func(a, b Target) int {
		return a.worker.compareBreadth(b.worker)
	})
}

// compareBreadth orders workers by how many kinds they run, the fewest first.
func (w *Worker) compareBreadth(other *Worker) int {
	breadth := func(w *Worker) (everyone bool, types int) {
		if w == nil || w.types == nil {
			return true, unlimited
		}
		return w.owner == nil, len(w.types)
	}
	aEveryone, a := breadth(w)
	bEveryone, b := breadth(other)
	if aEveryone != bEveryone {
		if bEveryone {
			return -1
		}
		return 1
	}
	return cmp.Compare(a, b)
}

// take uses up the first target whose worker runs a job and is of the build on which the job stays. If none runs the
// type, the queue is sorted by type from now on.
func (p *places) take(jobType, owner, build string) (Target, bool) {
	at := slices.IndexFunc(p.free, p.takes(jobType, &owner, build))
	if at < 0 {
		if len(p.free) > 0 && !p.l.IsAsked(p.queue) && !p.l.staysOn(p.queue, build, jobType) {
			p.l.noteTyped(p.queue)
		}
		return Target{}, false
	}
	t := p.free[at]
	if at == 0 {
		p.free = p.free[1:]
	} else {
		p.free = slices.Delete(p.free, at, at+1)
	}
	for kind := range p.room {
		if t.worker.runs(kind.jobType, kind.ownerOf()) {
			p.room[kind]--
		}
	}
	return t, true
}

// giveBack lets other jobs have a target.
func (p *places) giveBack(t Target) {
	p.free = p.l.sortTargets(p.queue, append(p.free, t))
	p.room = nil
}

func (k *laneKind) ownerOf() *string {
	if k.anyOwner {
		return nil
	}
	return &k.owner
}

// roomUnder returns how many jobs of a lane under those subjects could go to a free target.
func (p *places) roomUnder(subjects []Subject) int {
	room := p.l.roomUnder(p.queue, subjects)
	if room == 0 || len(subjects) == 0 {
		return room
	}
	jobType, owner := kindOf(subjects)
	if jobType == nil {
		return room
	}
	for _, s := range subjects {
		if s.Kind == onBuild {
			return min(room, p.roomOnBuild(s.Name, *jobType))
		}
	}
	return min(room, p.roomOf(*jobType, owner))
}

func (p *places) roomOf(jobType string, owner *string) int {
	kind := laneKind{jobType: jobType, anyOwner: owner == nil}
	if owner != nil {
		kind.owner = *owner
	}
	room, known := p.room[kind]
	if !known {
		if p.room == nil {
			p.room = map[laneKind]int{}
		}
		for _, t := range p.free {
			if t.worker.runs(jobType, owner) {
				room++
			}
		}
		p.room[kind] = room
	}
	return room
}
