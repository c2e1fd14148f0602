package dispatch

import (
	"bytes"
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// queue has the database's rows of a queue: each waiting job with its lane.
type queue map[uuid.UUID]*Candidate

// after returns the jobs that the store's statement JobsAfter would return.
func (q queue) after(sources []*Source) (jobs []Candidate) {
	for _, s := range sources {
		var behind []Candidate
		for _, c := range q {
			after := cmp.Or(c.Rank.Compare(s.AfterRank), bytes.Compare(c.JobID[:], s.AfterID[:]))
			if c.Lane == s.Lane && c.Key == s.Key && after > 0 {
				behind = append(behind, *c)
			}
		}
		slices.SortFunc(behind, byRank)
		jobs = append(jobs, behind[:min(len(behind), s.Most)]...)
	}
	return jobs
}

// pick picks up to most jobs, and writes the lanes of those that are moved.
func (q queue) pick(l *Ledger, most int, targets []Target) []uuid.UUID {
	p := NewPicker(l, "default", most, targets)
	for keys, sources := p.Next(); keys != nil || len(sources) > 0; keys, sources = p.Next() {
		if keys != nil {
			q.best(keys, p)
		} else {
			p.Show(sources, q.after(sources))
		}
	}
	moved, chosen := p.Moved(), p.Chosen()
	for i, id := range moved.JobIDs {
		q[id].Lane = moved.Lanes[i]
	}
	p.Sent(chosen.JobIDs)
	p.Finish()
	return chosen.JobIDs
}

// closeAndWake ends a step as the store does, which forgets the lanes without a worker, and finds in the rows those that
// the workers of the next step run.
func (q queue) closeAndWake(l *Ledger) {
	l.Close()
	for _, r := range l.LiveRanges() {
		for _, c := range q {
			if c.Lane >= r.From && c.Lane < r.To {
				l.NoteWaiting(r.Queue, c.Lane, c.Key, c.Rank)
			}
		}
	}
}

// anywhere returns n targets whose workers run every job.
func anywhere(n int) []Target { return make([]Target, n) }

// someBuilds are the builds of workers and those on which jobs stay. For a job the empty build stands for any.
var someBuilds = []string{"", "v1", `v2 build:"x"`}

// drawDrains draws controls by which some workers drain.
func drawDrains(rt *rapid.T) (controls []jobevent.Control) {
	for _, id := range []string{"a", "b", "c"} {
		if rapid.IntRange(0, 4).Draw(rt, "drains "+id) == 0 {
			controls = append(controls, pause(jobevent.ControlWorker, id))
		}
	}
	return controls
}

// drawTargets draws up to three workers, each of which is of some build, runs some of the types or any, and may drain.
// It returns those that do not drain, and takes their targets.
func drawTargets(rt *rapid.T, l *Ledger, jobs queue, types []string) (live []*Worker, targets []Target) {
	var workers []*Worker
	for i := range rapid.IntRange(0, 3).Draw(rt, "workers") {
		w := &Worker{
			ID: string(rune('a' + i)), Partitions: map[string][]int32{"default": {int32(i)}},
			Slots: rapid.IntRange(1, 6).Draw(rt, "slots"), Build: rapid.SampledFrom(someBuilds).Draw(rt, "build"),
		}
		some := func() []string {
			return append([]string{}, rapid.SliceOfDistinct(rapid.SampledFrom(types), rapid.ID).Draw(rt, "runs")...)
		}
		switch rapid.IntRange(0, 2).Draw(rt, "runs only") {
		case 1:
			w.RunOnly(some())
		case 2:
			w.Build, w.Demands = "", []Demand{}
			for range rapid.IntRange(0, 3).Draw(rt, "demands") {
				owner := rapid.SampledFrom([]string{"", "x", "y"}).Draw(rt, "works for")
				w.Demands = append(w.Demands, Demand{
					Everyone: owner == "", OwnerID: owner, JobTypes: some(), Slots: rapid.IntRange(1, 4).Draw(rt, "asks for"),
				})
			}
		}
		workers = append(workers, w)
	}
	targets = NewRoom(workers, l).Take("default", MaxStep)
	jobs.closeAndWake(l)
	live = slices.DeleteFunc(slices.Clone(l.live), func(w *Worker) bool { return w.drains })
	for _, t := range targets {
		if len(live) > 0 && !slices.Contains(live, t.worker) {
			rt.Fatalf("a target is of %+v, which drains", t.worker)
		}
	}
	return live, targets
}

// fits returns the free target to which the rules send a job of a type that stays on a build; -1: there is none.
func fits(free []Target, live []*Worker, jobType, owner, build string) int {
	stays := build != "" && slices.ContainsFunc(live, func(w *Worker) bool { return w.runs(jobType, nil) && w.Build == build })
	return slices.IndexFunc(free, func(t Target) bool {
		return t.worker.runs(jobType, &owner) && (!stays || t.worker.Build == build)
	})
}

// goesTo removes the target for a job from free; false: there is none.
func goesTo(free *[]Target, live []*Worker, jobType, owner, build string) bool {
	i := fits(*free, live, jobType, owner, build)
	if i < 0 {
		return false
	}
	*free = slices.Delete(*free, i, i+1)
	return true
}

// For any lanes, later controls, and types and builds of workers, the picker chooses the same jobs as a model that
// takes the jobs one by one in the order of their ranks, and no floor hides a job.
func TestAPickerTakesTheBestThatControlsAllow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		types, owners := []string{"A", "B", "C"}, []string{"", "x", "y"}
		draw := func(label string) []jobevent.Control {
			var controls []jobevent.Control
			for _, name := range types[:2] {
				if n := rapid.IntRange(-1, 4).Draw(rt, label+name); n >= 0 {
					controls = append(controls, atMost("type", name, n))
				}
			}
			if n := rapid.IntRange(-1, 4).Draw(rt, label+"x"); n >= 0 {
				controls = append(controls, atMost("owner", "x", n))
			}
			return append(controls, drawDrains(rt)...)
		}
		l := newLedger(t, draw("before ")...)
		jobs, builds, delta := queue{}, map[uuid.UUID]string{}, NewDelta()
		for i := range rapid.IntRange(0, 40).Draw(rt, "jobs") {
			c := &Candidate{
				JobID: uuid.UUID{15: byte(i + 1)}, JobType: rapid.SampledFrom(types).Draw(rt, "type"),
				OwnerID: rapid.SampledFrom(owners).Draw(rt, "owner"),
				Rank:    l.At.Add(time.Duration(100*rapid.IntRange(0, 20).Draw(rt, "rank")+i) * time.Millisecond), // no two alike
			}
			builds[c.JobID] = rapid.SampledFrom(someBuilds).Draw(rt, "stays on")
			c.Lane = l.laneOf("default", c.JobType, c.OwnerID, builds[c.JobID])
			jobs[c.JobID] = c
			delta.NoteWaiting("default", c.Lane, "", c.Rank)
		}
		l.Enter(delta)
		for step := range 3 {
			if step > 0 {
				l.UseControls(l.ChangeControls(draw("later ")))
			}
			l.SetRunning(nil)
			live, targets := drawTargets(rt, l, jobs, types)
			want := byTheRules(l, jobs, builds, 10, live, targets)
			got := jobs.pick(l, 10, targets)
			for _, id := range got {
				delete(jobs, id)
			}
			if !slices.Equal(got, want) {
				rt.Fatalf("step %d picked %v, want %v", step, got, want)
			}
			if l.cutShort {
				rt.Fatal("cut short")
			}
		}
	})
}

// byTheRules is the picker's model: one job after the other, the best rank first.
func byTheRules(
	l *Ledger, jobs queue, builds map[uuid.UUID]string, most int, live []*Worker, targets []Target,
) (chosen []uuid.UUID) {
	free := slices.Clone(l.sortTargets("default", targets))
	var waiting []Candidate
	for _, c := range jobs {
		waiting = append(waiting, *c)
	}
	slices.SortFunc(waiting, byRank)
	running := map[Subject]int{}
	for _, c := range waiting {
		subjects := l.controls.touching(c.JobType, c.OwnerID)
		isFull := slices.ContainsFunc(subjects, func(s Subject) bool { return running[s] >= l.controls.bySubject[s].maxRunning })
		if isFull || len(chosen) == most || !goesTo(&free, live, c.JobType, c.OwnerID, builds[c.JobID]) {
			continue
		}
		for _, s := range subjects {
			running[s]++
		}
		chosen = append(chosen, c.JobID)
	}
	return chosen
}

func TestAPickerThatLooksAtTooMuchIsCutShort(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	jobs, delta := queue{}, NewDelta()
	for i := range MaxLooks + 10 {
		c := &Candidate{JobID: uuid.UUID{13: 1, 14: byte(i / 256), 15: byte(i)}, JobType: "A", Rank: l.At.Add(time.Duration(i) * time.Second)}
		jobs[c.JobID] = c
		delta.NoteWaiting("default", "", "", c.Rank)
	}
	l.Enter(delta)
	l.UseControls(l.ChangeControls([]jobevent.Control{pause("type", "A")}))
	if got := jobs.pick(l, 10, anywhere(10)); len(got) > 0 || !l.cutShort {
		t.Fatalf("picked %d, cut short %t", len(got), l.cutShort)
	}
	moved := 0
	for _, c := range jobs {
		if c.Lane != "" {
			moved++
		}
	}
	if moved != MaxLooks {
		t.Errorf("%d moved", moved)
	}
	l.cutShort = false
	if got := jobs.pick(l, 10, anywhere(10)); len(got) > 0 || l.cutShort || l.HasReady("default") {
		t.Errorf("in the next step %d, cut short %t", len(got), l.cutShort)
	}
}
