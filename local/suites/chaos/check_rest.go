package main

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// checkDeliveries: each end of a job with a callbackUrl is delivered as it was, and no other end.
func (h *history) checkDeliveries(v *verdict) {
	delivered := map[string]map[string]string{}
	for _, l := range h.delivered {
		if delivered[l.Job] == nil {
			delivered[l.Job] = map[string]string{}
		}
		delivered[l.Job][l.ID] = l.How
	}
	for id, ends := range delivered {
		j := h.jobs[id]
		if j == nil || h.orders[j.key()] == nil || !h.orders[j.key()].delivered {
			v.find("deliveries", id, "its end was delivered, but it has no callbackUrl: %v", ends)
		} else if len(ends) != 1 || slices.Collect(maps.Values(ends))[0] != j.Status {
			v.find("deliveries", id, "it is %s, and these ends were delivered: %v", j.Status, ends)
		}
	}
	for _, o := range h.orders {
		if o.delivered && o.id != "" && delivered[o.id] == nil {
			v.find("deliveries", o.id, "the end of %s was never delivered", o.key)
		}
	}
}

// checkTicks: each tick of a schedule fired once, or was skipped with a reason.
func (h *history) checkTicks(v *verdict) {
	made := map[string]map[time.Time]string{}
	for id, j := range h.jobs {
		if j.Schedule == nil {
			continue
		}
		if made[j.Schedule.Name] == nil {
			made[j.Schedule.Name] = map[time.Time]string{}
		}
		if twin := made[j.Schedule.Name][j.Schedule.At.UTC()]; twin != "" {
			v.find("ticks", id, "tick %s of %s has two jobs, the other is %s", clockTime(j.Schedule.At), j.Schedule.Name, twin)
		}
		made[j.Schedule.Name][j.Schedule.At.UTC()] = id
	}
	for name, ticks := range h.ticks {
		known := map[time.Time]tick{}
		for _, t := range ticks {
			if _, twice := known[t.At.UTC()]; twice {
				v.find("ticks", "", "tick %s of %s is recorded twice", clockTime(t.At), name)
			}
			known[t.At.UTC()] = t
			if id := made[name][t.At.UTC()]; t.Outcome == "fired" && (t.JobID == nil || id != *t.JobID) {
				v.find("ticks", id, "tick %s of %s fired, and its job is not there", clockTime(t.At), name)
			}
		}
		// The last tick may have come together with the end of the schedules.
		for at := h.from.Truncate(tickEvery).Add(tickEvery); at.Before(h.until.Add(-tickEvery)); at = at.Add(tickEvery) {
			if _, there := known[at.UTC()]; !there {
				v.find("ticks", "", "tick %s of %s neither fired nor was skipped", clockTime(at), name)
			}
		}
	}
}

const (
	floodFactor = 3  // records for each attempt, on average
	floodRoom   = 50 // so that a few records make no flood
	floodOfOne  = 40 // records of any single attempt
)

// checkFlood: the run-job topics hold only a few records for each attempt.
func (h *history) checkFlood(v *verdict) {
	attempts, records := 0, 0
	for _, j := range h.jobs {
		attempts += j.Attempt
	}
	for id, n := range h.records {
		if records += n; n > floodOfOne {
			job, _, _ := strings.Cut(id, ".")
			v.find("no floods", job, "event %s is %d times on the run-job topics", id, n)
		}
	}
	if records > floodFactor*attempts+floodRoom {
		v.find("no floods", "", "the run-job topics hold %d records of %d attempts", records, attempts)
	}
}

// checkStats: the statistics count the jobs that the list shows.
func (h *history) checkStats(v *verdict) {
	listed := map[string]int{}
	for _, j := range h.jobs {
		listed[j.Status]++
	}
	for _, status := range []string{completed, failed, cancelled} {
		if listed[status] != h.stats[status] {
			v.find("statistics", "", "%d jobs are %s, the statistics have %d", listed[status], status, h.stats[status])
		}
	}
}

// checkProcesses: no process panics, and none ends by itself without a fault.
func (h *history) checkProcesses(v *verdict) {
	for _, text := range h.logs {
		v.find("no panics", "", "%s", text)
	}
	for _, e := range h.exits {
		if !h.during(e.At.Add(-time.Minute), e.At) {
			v.find("processes live", "", "%s ended by itself at %s: %s", e.Process, clockTime(e.At), e.State)
		}
	}
}
