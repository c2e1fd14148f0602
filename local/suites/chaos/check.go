package main

import (
	"slices"
	"time"

	"github.com/jobweaver/jobweaver/local/suites/chaos/installation"
)

// check checks the history against every promise.
func (h *history) check() *verdict {
	v := &verdict{}
	h.checkAccepted(v)
	h.checkEnds(v)
	h.checkStarts(v)
	h.checkOrder(v)
	h.checkLimit(v)
	h.checkDependencies(v)
	h.checkBatches(v)
	h.checkCheckpoints(v)
	h.checkPulled(v)
	h.checkDeliveries(v)
	h.checkTicks(v)
	h.checkFlood(v)
	h.checkStats(v)
	h.checkProcesses(v)
	for _, text := range h.late {
		v.find("recovery and answers", "", "%s", text)
	}
	return v
}

// checkAccepted: each accepted job exists once, and no other job exists or ran.
func (h *history) checkAccepted(v *verdict) {
	byKey := map[string][]string{}
	for id, j := range h.jobs {
		byKey[j.key()] = append(byKey[j.key()], id)
		if h.orders[j.key()] == nil && j.Schedule == nil {
			v.find("nothing unaccepted", id, "it exists, but was not submitted: tags %v", j.Tags)
		}
	}
	for key, o := range h.orders {
		if o.id != "" && h.jobs[o.id] == nil {
			v.lost++
			v.find("nothing lost", o.id, "%s (%s) was accepted at %s and is not there", key, o.shape.name, clockTime(o.accepted))
		}
		if ids := byKey[key]; len(ids) > 1 && o.caller == "" {
			v.find("one job a key", ids[0], "%s is there as %v", key, ids)
		}
	}
	for id, runs := range h.runs {
		if j := h.jobs[id]; j == nil || runs[0].key != j.key() {
			v.find("nothing unaccepted", id, "it ran with key %s, and there is no such job", runs[0].key)
		}
	}
}

// checkEnds: each job has ended in one of its allowed statuses.
func (h *history) checkEnds(v *verdict) {
	for id, j := range h.jobs {
		ends, code := one(completed), ""
		if o := h.orders[j.key()]; o != nil {
			ends, code = o.shape.ends, o.shape.code
		}
		failedWith := ""
		if j.LastError != nil {
			failedWith = j.LastError.ErrorCode
		}
		switch {
		case !j.terminal():
			v.lost++
			v.find("nothing lost", id, "%v has not ended: %s", j.Tags, j.Status)
		case !slices.Contains(ends, j.Status):
			v.find("ends", id, "%v is %s (%s), it may be %v", j.Tags, j.Status, failedWith, ends)
		case j.Status == failed && failedWith != code:
			v.find("ends", id, "%v failed with %s, not with %s", j.Tags, failedWith, code)
		}
	}
}

// checkStarts: no attempt starts twice, beside another one, before its time or after a confirmed cancel.
func (h *history) checkStarts(v *verdict) {
	for id, runs := range h.runs {
		seen := map[int]bool{}
		for i, r := range runs {
			if seen[r.attempt] {
				v.doubled++
				v.find("no attempt twice", id, "attempt %d started again at %s", r.attempt, clockTime(r.start))
			}
			seen[r.attempt] = true
			for _, before := range runs[:i] {
				h.checkApart(v, id, before, r)
			}
			h.checkTime(v, id, r)
		}
	}
	h.checkWorked(v)
}

// checkApart: an attempt was over before the next began, unless its worker was frozen or cut off.
func (h *history) checkApart(v *verdict, id string, before, r run) {
	if !before.end.IsZero() && !before.end.After(r.start) {
		return
	}
	if h.external(id) && before.how != installation.HowOK { // the outside system may go on after a timeout
		return
	}
	if h.silenced(id, before.attempt, before.start.Add(-lease), r.start) ||
		h.silenced(id, r.attempt, before.start, r.start) {
		v.excused++
		return
	}
	v.find("no two attempts at once", id, "attempt %d began at %s, attempt %d of %s had not ended",
		r.attempt, clockTime(r.start), before.attempt, clockTime(before.start))
}

const lease = 15 * time.Second

func (h *history) external(id string) bool {
	return h.jobs[id] != nil && h.jobs[id].JobType == "EXTERNAL"
}

// checkTime: no start too early, by a correct clock, or after the API had shown CANCELLED.
func (h *history) checkTime(v *verdict, id string, r run) {
	o := h.orders[r.key]
	if o == nil || o.id != id {
		return
	}
	const room = 50 * time.Millisecond // for rounding, and for reading the answer
	if due := o.asked.Add(o.shape.delay - room); r.start.Before(due) && !h.clockWasOff(o.asked, r.start) {
		v.find("not before its time", id, "%s was asked for at %s, for %s later, and began at %s",
			r.key, clockTime(o.asked), o.shape.delay, clockTime(r.start))
	}
	if o.cancelled.IsZero() || !r.start.After(o.cancelled) {
		return
	}
	if h.silenced(id, r.attempt, o.cancelled.Add(-2*lease), r.start) {
		v.excused++
		return
	}
	v.find("no start after a cancel", id, "attempt %d began at %s, the API had shown CANCELLED at %s",
		r.attempt, clockTime(r.start), clockTime(o.cancelled))
}

func (h *history) clockWasOff(from, to time.Time) bool {
	return slices.ContainsFunc(h.clocks, func(s installation.Interval) bool {
		return s.From.Before(to) && s.To.After(from)
	})
}

// checkWorked: each COMPLETED job was done, as recorded by the witness.
func (h *history) checkWorked(v *verdict) {
	for id, j := range h.jobs {
		o := h.orders[j.key()]
		if j.Status != completed {
			continue
		}
		done := slices.ContainsFunc(h.runs[id], func(r run) bool { return r.how == installation.HowOK })
		if o != nil && o.shape.unseen {
			done = h.calls[j.key()] > 0
		}
		if !done {
			v.find("completed means done", id, "%v is COMPLETED, and the witness never did its work", j.Tags)
		}
	}
}

func clockTime(at time.Time) string { return at.Local().Format("15:04:05.000") }
