package main

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/jobweaver/jobweaver/local/suites/chaos/installation"
	"github.com/jobweaver/jobweaver/local/suites/chaos/pulled"
)

// checkPulled checks what only jobs of pull workers have.
func (h *history) checkPulled(v *verdict) {
	kept := h.checkSteps(v)
	called := map[string][]*job{} // by caller
	for _, j := range h.jobs {
		if j.ParentID != "" {
			called[j.ParentID] = append(called[j.ParentID], j)
		}
	}
	for id, j := range h.jobs {
		o := h.orders[j.key()]
		if o == nil || !o.shape.pulled {
			continue
		}
		h.checkSettled(v, j)
		if o.shape != waitingShape && o.shape != forsakenShape {
			continue
		}
		h.checkWakes(v, j)
		var out pulled.Waited
		if j.Status == completed && json.Unmarshal(j.Output, &out) != nil {
			v.find("events", id, "it has the output %s", j.Output)
			continue
		}
		h.checkCalls(v, j, called[id], out.Parts)
		if j.Status != completed {
			continue
		}
		if want := (pulled.Paid{Key: o.key, Cents: o.cents}); out.Paid != want || out.Twice {
			v.find("events", id, "the event %+v came twice with one source and id, and woke it with %+v, twice: %v",
				want, out.Paid, out.Twice)
		}
		if want := []string{kept[id+pulled.StepBefore].ID, kept[id+pulled.StepAfter].ID}; !slices.Equal(out.Receipts, want) {
			v.find("steps", id, "its output has the results %v, its steps had %v", out.Receipts, want)
		}
	}
}

// checkSteps: a step whose result is stored never runs again, and all attempts have that result. It returns the results
// by job and step.
func (h *history) checkSteps(v *verdict) map[string]installation.Line {
	kept, ran := map[string]installation.Line{}, map[string]bool{}
	for _, l := range h.steps {
		first, is := kept[l.Job+l.Name]
		switch {
		case l.What == installation.LineStep:
			ran[l.Job+l.Name+l.ID] = true
			if !is {
				continue
			}
			if l.Attempt < first.Attempt && h.silenced(l.Job, l.Attempt, first.At.Add(-2*lease), l.At) {
				v.excused++
				continue
			}
			v.find("steps", l.Job, "%q ran in attempt %d at %s, attempt %d had its stored result at %s",
				l.Name, l.Attempt, clockTime(l.At), first.Attempt, clockTime(first.At))
		case !ran[l.Job+l.Name+l.ID]:
			v.find("steps", l.Job, "attempt %d has the result %s of %q, which no run of it returned", l.Attempt, l.ID, l.Name)
		case !is:
			kept[l.Job+l.Name] = l
		case l.ID != first.ID:
			v.find("steps", l.Job, "attempt %d has the result %s of %q, attempt %d had %s",
				l.Attempt, l.ID, l.Name, first.Attempt, first.ID)
		}
	}
	return kept
}

// checkCalls: each call made one job, which completed, and the handler got its output.
func (h *history) checkCalls(v *verdict, caller *job, called []*job, outputs []pulled.Done) {
	byKey := map[string][]*job{}
	for _, j := range called {
		byKey[j.key()] = append(byKey[j.key()], j)
		if !strings.HasPrefix(j.key(), caller.key()+".") {
			v.find("calls", j.JobID, "%v is called by %s, which has the key %s", j.Tags, caller.JobID, caller.key())
		}
	}
	for i := range pulled.Calls {
		list := byKey[pulled.CalledKey(caller.key(), i)]
		if len(list) > 1 || len(list) == 0 && caller.Status == completed {
			v.find("calls", caller.JobID, "its call %d made %d jobs", i, len(list))
		}
		if len(list) != 1 || caller.Status != completed {
			continue
		}
		var out pulled.Done
		err := json.Unmarshal(list[0].Output, &out)
		if err != nil || list[0].Status != completed || len(outputs) != pulled.Calls || outputs[i] != out {
			v.find("calls", caller.JobID, "it got %+v, and job %s that it called is %s with %s",
				outputs, list[0].JobID, list[0].Status, list[0].Output)
		}
	}
}

// checkWakes: a job that waits for its event is woken once, when it is there.
func (h *history) checkWakes(v *verdict, j *job) {
	waited := 0 // attempts
	for _, r := range h.runs[j.JobID] {
		if r.in != pulled.EventStep || r.how != installation.HowSnoozed || j.outcomeOf(r.attempt) != installation.HowSnoozed {
			continue
		}
		if waited++; waited > 1 {
			v.find("wakes", j.JobID, "attempt %d waited for its event again: it was woken before", r.attempt)
		}
	}
}

// checkSettled: each attempt is settled as its handler ended, unless it was lost, and one attempt completes the job,
// also if one handler ran it beside others.
func (h *history) checkSettled(v *verdict, j *job) {
	completes := 0
	for _, a := range j.Attempts {
		i := slices.IndexFunc(h.runs[j.JobID], func(r run) bool { return r.attempt == a.Attempt })
		how := "" // never begun
		if i >= 0 {
			how = h.runs[j.JobID][i].how
		}
		wrong := false
		switch a.Outcome {
		case "completed":
			completes++
			wrong = how != installation.HowOK
		case "failed":
			wrong = how != installation.HowFailed
		case installation.HowSnoozed: // also when its worker stops, and gives it back
			wrong = how == installation.HowOK || how == installation.HowFailed
		}
		if wrong {
			v.find("settled", j.JobID, "attempt %d is %s (%s), and its handler ended with %q",
				a.Attempt, a.Outcome, a.ErrorCode, how)
		}
	}
	if j.Status == completed && completes != 1 {
		v.find("settled", j.JobID, "it is COMPLETED, and %d attempts have completed it", completes)
	}
}
