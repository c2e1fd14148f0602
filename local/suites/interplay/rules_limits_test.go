package interplay

import (
	"fmt"
	"slices"
	"time"

	"github.com/jobweaver/jobweaver/shared/client"
)

var limitRules = []Rule{
	{
		"pause", "Pause a queue, a job type, an owner or a fairness key: No new attempts start.", "openapi.yaml, pauseControl",
		func(f *facts, found func(_, _, _ string)) {
			f.eachDispatch(func(w *Window, j *client.Job, m client.Move) {
				if w.Limit.Paused {
					found(f.name(j.JobID), fmt.Sprintf("nothing is sent from %s to %s: %s %s is paused", clock(w.From), clock(w.To), w.Kind, w.Name),
						fmt.Sprintf("attempt %d was sent at %s", m.Attempt, clock(m.At)))
				}
			})
		},
	},
	{
		"pause is named", "They name each limit that applies to the job, even if another limit blocks it at the moment.", "docs/scheduling.md",
		func(f *facts, found func(_, _, _ string)) {
			for _, b := range f.Blocked {
				w := f.Windows[b.Window]
				id := w.Kind + ":" + w.Name
				if b.Status == client.Pending && !slices.ContainsFunc(b.By, func(x client.Block) bool { return x.Kind == "pause" && (x.ID == id || w.Name == "*") }) {
					found(f.name(b.Job), "blockedBy has the pause "+id, fmt.Sprint(b.By))
				}
			}
		},
	},
	{
		"maxRunning", "`maxRunning` is exact: it counts attempts that are QUEUED or RUNNING.", "docs/scheduling.md",
		(*facts).checkMaxRunning,
	},
	{
		"startsPerSecond", "`startsPerSecond` limits how many attempts the scheduler dispatches in any second.", "docs/scheduling.md",
		func(f *facts, found func(_, _, _ string)) {
			for _, w := range f.Windows {
				if w.Limit.Rate == nil || !w.Applied {
					continue
				}
				n := 0
				var first *client.Job // of those that are counted together
				f.eachDispatch(func(of *Window, j *client.Job, _ client.Move) {
					if of == w && (first == nil || alike(w, first, j)) {
						first = j
						n++
					}
				})
				// The times of the history are those at which transactions began.
				span := w.To.Sub(w.From) + 1500*time.Millisecond
				if most := *w.Limit.Rate*span.Seconds() + 1; float64(n) > most {
					found(w.Kind+":"+w.Name, fmt.Sprintf("at most %.1f starts from %s to %s", most, clock(w.From), clock(w.To)), fmt.Sprint(n))
				}
			}
		},
	},
}

// eachDispatch calls do for each attempt that was sent while a control about its job was surely in force.
func (f *facts) eachDispatch(do func(*Window, *client.Job, client.Move)) {
	for _, w := range f.Windows {
		if !w.Applied {
			continue
		}
		f.each(func(j *client.Job) {
			if !concerns(w, j) || j.ForEach != nil {
				return
			}
			for _, m := range j.History {
				if sent(m) && m.At.After(w.From) && m.At.Before(w.To) {
					do(w, j, m)
				}
			}
		})
	}
}

// sent reports whether an entry of a history sends an attempt: one about a command that came too late does not.
func sent(m client.Move) bool { return m.To == client.Queued && m.From != client.Queued }

// checkMaxRunning: when an attempt that was sent under a limit starts, no more than the limit are at work.
func (f *facts) checkMaxRunning(found func(_, _, _ string)) {
	f.eachDispatch(func(w *Window, j *client.Job, m client.Move) {
		if w.Limit.MaxRunning == nil {
			return
		}
		i := slices.IndexFunc(f.runs[j.JobID], func(r *Run) bool { return r.Attempt == m.Attempt })
		if i < 0 {
			return
		}
		at := f.runs[j.JobID][i].Start
		if at.After(w.To) { // others may have been sent since
			return
		}
		var beside []string
		f.each(func(other *client.Job) {
			if !concerns(w, other) || !alike(w, j, other) {
				return
			}
			for _, r := range f.runs[other.JobID] {
				over := r.over()
				if r.How == actLater && f.stored(r) != nil { // a callback may end it before its handler returns
					over = minTime(over, f.stored(r).Sent)
				}
				if !r.Start.After(at) && over.After(at) {
					beside = append(beside, fmt.Sprintf("attempt %d of %s", r.Attempt, f.name(other.JobID)))
				}
			}
		})
		if len(beside) > *w.Limit.MaxRunning && !f.disturbed(w.From, at) {
			found(f.name(j.JobID), fmt.Sprintf("at most %d attempts of %s %s at work at %s", *w.Limit.MaxRunning, w.Kind, w.Name, clock(at)), fmt.Sprint(beside))
		}
	})
}

func minTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
