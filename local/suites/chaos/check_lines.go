package main

import (
	"slices"
	"time"

	"github.com/jobweaver/jobweaver/local/suites/chaos/installation"
)

// checkOrder: no job of a key begins before all that were accepted before it had ended.
func (h *history) checkOrder(v *verdict) {
	lines := map[string][]*order{}
	for _, o := range h.orders {
		if o.line != "" && o.id != "" {
			lines[o.line] = append(lines[o.line], o)
		}
	}
	for line, list := range lines {
		slices.SortFunc(list, func(a, b *order) int { return a.accepted.Compare(b.accepted) })
		var before *order
		var over time.Time
		for _, o := range list {
			runs := h.runs[o.id]
			if len(runs) == 0 {
				continue
			}
			if runs[0].start.Before(over) {
				h.excuse(v, before.id, runs[0].start, violation{"order", o.id, o.key + " of " + line + " began at " +
					clockTime(runs[0].start) + ", " + before.key + " before it ended at " + clockTime(over)})
			}
			for _, r := range runs {
				if r.end.After(over) {
					before, over = o, r.end
				}
			}
		}
	}
}

// excuse drops a violation caused by a worker that was frozen or cut off with an attempt of the job before.
func (h *history) excuse(v *verdict, before string, at time.Time, found violation) {
	for _, r := range h.runs[before] {
		if (r.end.IsZero() || r.end.After(at)) && h.silenced(before, r.attempt, r.start.Add(-lease), at) {
			v.excused++
			return
		}
	}
	v.violations = append(v.violations, found)
}

// working is a run of a limited job.
type working struct {
	job string
	run
}

// checkLimit: never do more limited jobs run at once than the limit. Those of frozen or cut-off workers do not count:
// the scheduler had given them up.
func (h *history) checkLimit(v *verdict) {
	var all, now []working
	for _, o := range h.orders {
		if o.shape.name == "limited" {
			for _, r := range h.runs[o.id] {
				all = append(all, working{o.id, r})
			}
		}
	}
	slices.SortFunc(all, func(a, b working) int { return a.start.Compare(b.start) })
	for _, w := range all {
		now = slices.DeleteFunc(now, func(other working) bool {
			return !other.end.IsZero() && !other.end.After(w.start) ||
				h.silenced(other.job, other.attempt, other.start.Add(-lease), w.start)
		})
		if now = append(now, w); len(now) > limit {
			v.find("limit", w.job, "it began at %s as number %d at work, %d may", clockTime(w.start), len(now), limit)
		}
	}
}

// checkDependencies: a job begins after its dependencies have ended, and never if one has ended in another way than it
// waits for. It gets the output of the attempt with which the other job completed.
func (h *history) checkDependencies(v *verdict) {
	for _, o := range h.orders {
		runs := h.runs[o.id]
		if o.shape == skippedShape && len(runs) > 0 {
			v.find("dependencies", o.id, "%s began at %s, and nothing had failed", o.key, clockTime(runs[0].start))
		}
		if first := h.orders[o.outputOf]; first != nil && h.jobs[first.id] != nil {
			output := h.jobs[first.id].Attempt
			for _, r := range runs {
				if r.how == installation.HowOK && r.attempt <= output || r.how == installation.HowFailed && r.attempt > output {
					v.find("dependencies", o.id, "attempt %d of %s was to fail up to attempt %d: %s", r.attempt, o.key, output, r.how)
				}
			}
		}
		if o.after == "" || o.id == "" || len(runs) == 0 {
			continue
		}
		first := h.orders[o.after]
		done := slices.ContainsFunc(h.runs[first.id], func(r run) bool {
			return r.how == installation.HowOK && !r.end.After(runs[0].start)
		})
		if !done {
			v.find("dependencies", o.id, "%s began at %s, and %s was not done", o.key, clockTime(runs[0].start), o.after)
		}
	}
}

// checkCheckpoints: an attempt gets a checkpoint that an earlier one gave, and none from before the last snooze.
func (h *history) checkCheckpoints(v *verdict) {
	for id, runs := range h.runs {
		runs = slices.SortedFunc(slices.Values(runs), func(a, b run) int { return a.attempt - b.attempt })
		least, most := 0, 0
		for _, r := range runs {
			if r.loaded < least || r.loaded > most {
				v.find("checkpoints", id, "attempt %d got %d, and is to get %d to %d", r.attempt, r.loaded, least, most)
			}
			most = max(most, r.saved)
			if h.jobs[id] != nil && h.jobs[id].outcomeOf(r.attempt) == installation.HowSnoozed {
				least = r.saved
			}
		}
		if o := h.orders[runs[0].key]; o != nil && o.shape.name == "counting" && h.jobs[id] != nil &&
			h.jobs[id].Status == completed && most < countsTo {
			v.find("checkpoints", id, "it completed and counted to %d", most)
		}
	}
}
