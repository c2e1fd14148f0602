package dispatch

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// best shows the jobs that the store's statement KeysBest would return.
func (q queue) best(r *KeyReach, p *Picker) {
	for _, lane := range r.Lanes {
		best := map[string]Candidate{}
		for _, c := range q {
			if before, some := best[c.Key]; c.Lane == lane && (!some || byRank(*c, before) < 0) {
				best[c.Key] = *c
			}
		}
		names := slices.Sorted(maps.Keys(best))
		begin, isThere := slices.BinarySearch(names, r.From)
		if isThere {
			begin++
		}
		open := 0
		for _, name := range slices.Concat(names[begin:], names[:begin]) {
			if open == r.Keys {
				break
			}
			if !slices.Contains(r.Closed, name) {
				open++
			}
			p.ShowKey(best[name])
		}
	}
}

// byTurns is the model: it sees all jobs at once, and knows neither lanes nor floors.
func byTurns(
	l *Ledger, before *round, jobs queue, builds map[uuid.UUID]string, most int, live []*Worker, targets []Target,
) (chosen []uuid.UUID) {
	free := slices.Clone(l.sortTargets("default", targets))
	waiting := slices.Collect(maps.Values(jobs))
	slices.SortFunc(waiting, func(a, b *Candidate) int { return byRank(*a, *b) })
	running := maps.Clone(l.running)
	if running == nil {
		running = map[Subject]int{}
	}
	best := func(key string) int {
		return slices.IndexFunc(waiting, func(c *Candidate) bool {
			canRun := fits(free, live, c.JobType, c.OwnerID, builds[c.JobID]) >= 0
			return c.Key == key && canRun && !slices.ContainsFunc(l.controls.holding(c.class("default")), func(s Subject) bool {
				held, _ := l.controls.of(s)
				return running[s] >= held.maxRunning
			})
		})
	}
	keys := map[string]bool{}
	for _, c := range waiting {
		keys[c.Key] = true
	}
	names := slices.Sorted(maps.Keys(keys))
	at, isThere := slices.BinarySearch(names, before.Key)
	used := before.Used
	if !isThere || used == 0 || used >= l.controls.weightOf(before.Key) {
		used = 0
		if isThere {
			at++
		}
	}
	for missed := 0; len(chosen) < most && missed < len(names); {
		at %= len(names)
		i := best(names[at])
		if i < 0 {
			missed, at, used = missed+1, at+1, 0
			continue
		}
		for _, s := range l.controls.holding(waiting[i].class("default")) {
			running[s]++
		}
		goesTo(&free, live, waiting[i].JobType, waiting[i].OwnerID, builds[waiting[i].JobID])
		chosen = append(chosen, waiting[i].JobID)
		waiting = slices.Delete(waiting, i, i+1)
		missed, used = 0, used+1
		*before = round{names[at], used}
		if used >= l.controls.weightOf(names[at]) {
			at, used = at+1, 0
		}
	}
	return chosen
}

// For any keys, weights, ranks, lanes and later controls, a picker that sees only the best jobs of the next keys
// chooses the same jobs as a model that sees all jobs.
func TestAPickerGoesRoundTheKeys(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		keys := []string{"", "a", "b", "c", "d"}
		draw := func(label string) []jobevent.Control {
			controls := []jobevent.Control{
				{Kind: jobevent.ControlKey, Name: "b", Weight: rapid.IntRange(0, 4).Draw(rt, label+"weight")},
			}
			for _, s := range []Subject{
				{"type", "A"}, {"owner", "x"}, {"fairnessKey", "a"}, {"fairnessKey", "c"}, {"fairnessKey", "*"},
			} {
				if n := rapid.IntRange(-3, 3).Draw(rt, fmt.Sprint(label, s)); n >= 0 {
					controls = append(controls, atMost(s.Kind, s.Name, max(n, 1)))
				}
			}
			return append(controls, drawDrains(rt)...)
		}
		l := newLedger(t, draw("before ")...)
		jobs, builds, before := queue{}, map[uuid.UUID]string{}, round{}
		for step := range rapid.IntRange(1, 6).Draw(rt, "steps") {
			if step > 0 && rapid.Bool().Draw(rt, "change controls") {
				l.UseControls(l.ChangeControls(draw("later ")))
			}
			running := map[Subject]int{}
			l.controls.CountRunning(running, Class{"default", "A", "x", "a"}, rapid.IntRange(0, 2).Draw(rt, "running"))
			l.SetRunning(running)
			delta := NewDelta()
			for range rapid.IntRange(0, 12).Draw(rt, "jobs") {
				c := &Candidate{
					JobID: uuid.UUID{13: byte(step + 1), 15: byte(len(jobs))}, JobType: rapid.SampledFrom([]string{"A", "B"}).Draw(rt, "type"),
					OwnerID: rapid.SampledFrom([]string{"", "x"}).Draw(rt, "owner"), Key: rapid.SampledFrom(keys).Draw(rt, "key"),
					Rank: l.At.Add(time.Duration(rapid.IntRange(0, 50).Draw(rt, "rank")) * time.Millisecond),
				}
				builds[c.JobID] = rapid.SampledFrom(someBuilds).Draw(rt, "stays on")
				c.Lane = l.laneOf("default", c.JobType, c.OwnerID, builds[c.JobID])
				jobs[c.JobID] = c
				delta.NoteWaiting("default", c.Lane, c.Key, c.Rank)
			}
			l.Enter(delta)
			most := rapid.IntRange(1, 12).Draw(rt, "most")
			live, targets := drawTargets(rt, l, jobs, []string{"A", "B"})
			if _, some := l.rounds["default"]; !some {
				before = round{} // nothing waited
			}
			after := before
			want := byTurns(l, &after, jobs, builds, most, live, targets)
			if l.UsesShares("default") {
				before = after // a queue with one key keeps its place in the round
			}
			got := jobs.pick(l, most, targets)
			if !slices.Equal(got, want) {
				rt.Fatalf("step %d chose %v, want %v", step, got, want)
			}
			for _, id := range got {
				delete(jobs, id)
			}
			for _, c := range jobs { // none is hidden by a floor, and no key is forgotten
				floor, some := l.floors["default"]
				if c.Lane != "" {
					floor, some = l.lanes["default"][c.Lane]
				}
				if !l.IsServed("default", c.Lane) {
					continue // closeAndWake finds it when a worker runs its kind
				}
				if known := l.keys["default"]; !some || floor.After(c.Rank) || len(known) < 2 && !slices.Contains(known, c.Key) {
					rt.Fatalf("step %d hides %+v: floor %v, keys %v", step, c, floor, known)
				}
			}
		}
	})
}

// Over any hundred starts of a key, each other key has its weight's share of the starts, to within 5 %, however many
// jobs each step sends out.
func TestSharesFollowTheWeights(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		weights := map[string]int{"a": 1, "b": rapid.IntRange(1, 4).Draw(rt, "b"), "c": rapid.IntRange(1, 4).Draw(rt, "c")}
		l := newLedger(t)
		var controls []jobevent.Control
		for key, weight := range weights {
			controls = append(controls, jobevent.Control{Kind: jobevent.ControlKey, Name: key, Weight: weight})
		}
		l.UseControls(l.ChangeControls(controls))
		jobs, delta, n := queue{}, NewDelta(), 0
		for key, weight := range weights {
			for range 250 * weight {
				n++
				c := &Candidate{JobID: uuid.UUID{12: byte(n >> 8), 13: byte(n)}, JobType: "A", Key: key, Rank: l.At.Add(time.Duration(n))}
				jobs[c.JobID] = c
				delta.NoteWaiting("default", "", key, c.Rank)
			}
		}
		l.Enter(delta)
		if !l.UsesShares("default") {
			rt.Fatal("goes by rank alone")
		}
		var starts []string
		for len(starts) < n/2 {
			for _, id := range jobs.pick(l, MaxStep, anywhere(rapid.SampledFrom([]int{1, 1, 2, 3, 5, 20, 60}).Draw(rt, "room"))) {
				starts = append(starts, jobs[id].Key)
				delete(jobs, id)
			}
		}
		begin := rapid.IntRange(0, len(starts)/5).Draw(rt, "begin")
		counts := map[string]int{}
		for _, key := range starts[begin:] {
			if counts[key]++; counts["a"] == 100 {
				break
			}
		}
		for key, weight := range weights {
			if want := 100 * weight; counts["a"] == 100 && (counts[key] < want*95/100 || counts[key] > want*105/100) {
				rt.Fatalf("%d starts of %s in 100 of a, want %d", counts[key], key, want)
			}
		}
	})
}

// A job of a new key starts next, however many jobs of another key wait.
func TestAQuietKeyDoesNotWaitBehindABusyOne(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	jobs, delta := queue{}, NewDelta()
	add := func(i int, key string) *Candidate {
		c := &Candidate{JobID: uuid.UUID{14: byte(i >> 8), 15: byte(i)}, JobType: "A", Key: key, Rank: l.At.Add(time.Duration(i))}
		jobs[c.JobID] = c
		delta.NoteWaiting("default", "", key, c.Rank)
		return c
	}
	for i := range 400 {
		add(i, "busy")
	}
	quiet := add(400, "quiet")
	l.Enter(delta)
	first := jobs.pick(l, 1, anywhere(1))
	delete(jobs, first[0])
	second := jobs.pick(l, 1, anywhere(1))
	if !slices.Contains(slices.Concat(first, second), quiet.JobID) {
		t.Errorf("started %v and %v", first, second)
	}
	// Alone, the busy key goes by rank again, at the cost of a queue without keys.
	delete(jobs, quiet.JobID)
	jobs.pick(l, 1, anywhere(1))
	if l.UsesShares("default") {
		t.Errorf("several keys %v are remembered", l.keys["default"])
	}
}
