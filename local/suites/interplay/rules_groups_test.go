package interplay

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/jobweaver/jobweaver/shared/client"
)

var groupRules = []Rule{
	{
		"batch", "All have ended, and at least one is FAILED.", "docs/batches.md, the table of states",
		(*facts).checkGroups,
	},
	{
		"follow-up", "Each end submits one job, exactly once", "docs/batches.md",
		(*facts).checkFollowUps,
	},
	{
		"summary", "An object `{\"$batch\": \"summary\"}` anywhere in the payload is replaced by the summary of the batch", "docs/batches.md",
		(*facts).checkSummaries,
	},
	{
		"operation", "An operation counts the jobs that matched, the commands that it sent, those that were applied and those that were refused, and the jobs that it skipped", "docs/scheduling.md",
		func(f *facts, found func(_, _, _ string)) {
			for name, o := range f.Operations {
				p := o.Progress
				whole := o.Status == "COMPLETED"
				if p.Matched != p.Asked+p.Skipped || p.Asked != p.Applied+p.Refused || whole && !p.Walked || o.FinishedAt == nil {
					found(name, "an ended operation whose counts add up", fmt.Sprintf("%s %+v", o.Status, p))
				}
				for _, a := range f.Asked {
					if a.Path == "/api/operations" && strings.Contains(string(a.Answer), o.OperationID) && a.Jobs != nil && whole && p.Matched > len(a.Jobs) {
						found(name, fmt.Sprintf("at most the %d jobs of its list", len(a.Jobs)), fmt.Sprint(p.Matched))
					}
				}
			}
		},
	},
	{
		"ticks", "Each tick makes one job or is recorded as skipped.", "docs/scheduling.md",
		(*facts).checkTicks,
	},
	{
		"overlap", "`allow` a second job, `skip` the tick, or `cancel` the previous job", "docs/scheduling.md",
		(*facts).checkOverlap,
	},
	{
		"deliveries", "It does so each time the job ends", "docs/callbacks.md",
		(*facts).checkDeliveries,
	},
	{
		"signature", "signed as in Standard Webhooks", "openapi.yaml, callbackUrl",
		func(f *facts, found func(_, _, _ string)) {
			for _, a := range f.Arrivals {
				if a.Wrong != "" {
					found(a.ID, "a good signature", a.Wrong)
				}
			}
		},
	},
}

// group is what a batch and a flow have in common.
type group struct {
	*client.Batch

	name, id string
	flow     *client.Flow
}

func (f *facts) groups() (list []group) {
	for name, b := range f.Batches {
		list = append(list, group{b, name, b.BatchID, nil})
	}
	for name, fl := range f.Flows {
		list = append(list, group{&fl.Batch, name, fl.FlowID, fl})
	}
	slices.SortFunc(list, func(a, b group) int { return strings.Compare(a.name, b.name) })
	return list
}

func (f *facts) members(g group) (list []*client.Job) {
	f.each(func(j *client.Job) {
		if j.BatchID == g.id {
			list = append(list, j)
		}
	})
	return list
}

// again returns how often a group was retried.
func (f *facts) again(g group) (n int) {
	for _, a := range f.asks["retry"] {
		if strings.Contains(a.Path, g.id) {
			n++
		}
	}
	return n
}

func (f *facts) checkGroups(found func(_, _, _ string)) {
	for _, g := range f.groups() {
		sum := int64(0)
		for _, n := range g.Counts {
			sum += n
		}
		if sum != g.Total {
			found(g.name, fmt.Sprintf("counts that are %d together", g.Total), fmt.Sprint(g.Counts))
		}
		list := f.members(g)
		calm := !slices.ContainsFunc(list, func(j *client.Job) bool { return len(f.lives(j)) > 1 }) && f.again(g) == 0 && !f.deletes()
		if !calm || len(f.Open) > 0 {
			continue
		}
		counts := map[string]int64{}
		for _, j := range list {
			counts[j.Status]++
		}
		for status, n := range g.Counts {
			if n != counts[status] {
				found(g.name, fmt.Sprintf("%d %s, as its jobs are", counts[status], status), fmt.Sprint(n))
			}
		}
		expected := client.Completed
		skipped := int64(0)
		for _, j := range list {
			if g.flow != nil && j.Status == client.Cancelled && f.merelySkipped(j) {
				skipped++
			}
		}
		switch {
		case g.ExpiredAt != nil:
			expected = client.BatchExpired
		case counts[client.Failed] > 0:
			expected = client.Failed
		case counts[client.Cancelled] > skipped:
			expected = client.Cancelled
		}
		if g.Status != expected {
			found(g.name, expected+", as its jobs ended", fmt.Sprintf("%s, %v", g.Status, g.Counts))
		}
	}
}

// merelySkipped reports whether a cancelled job waited for the failure of a job that completed, or came after a job that
// was skipped.
func (f *facts) merelySkipped(j *client.Job) bool {
	return slices.ContainsFunc(j.After, func(id string) bool {
		d := f.Jobs[id]
		switch {
		case d == nil:
			return false
		case conditionOf(j, id) == "failed":
			return d.Status == client.Completed
		}
		return conditionOf(j, id) == "completed" && d.Status == client.Cancelled && d.BatchID == j.BatchID && f.merelySkipped(d)
	})
}

func (f *facts) checkFollowUps(found func(_, _, _ string)) {
	for _, g := range f.groups() {
		made := map[string]int{}
		f.each(func(j *client.Job) {
			if slices.Contains(j.Tags, "follows-"+g.name) && j.RunAgainOf == "" {
				made[j.Tags[2]]++
			}
		})
		wanted := map[string]bool{"complete": len(g.OnComplete) > 4, "failure": len(g.OnFailure) > 4} // not null
		last := "failure"
		if g.Status == client.Completed {
			last = "complete"
		}
		ends := 1 + f.again(g)
		if n := made["complete"] + made["failure"]; n > ends {
			found(g.name, fmt.Sprintf("at most %d follow-ups, one for each end", ends), fmt.Sprint(made))
		}
		for kind, n := range made {
			if n > 0 && !wanted[kind] {
				found(g.name, "no follow-up that it does not have", fmt.Sprint(made))
			}
		}
		if !ended(g.Status) || g.FollowUpError != "" || f.deletes() {
			continue
		}
		if wanted[last] && (made[last] == 0 || g.FollowUpJobID == "") {
			found(g.name, "a follow-up after its end as "+g.Status, fmt.Sprintf("%v, followUpJobId %q", made, g.FollowUpJobID))
		}
		other := map[string]string{"complete": "failure", "failure": "complete"}[last]
		if f.again(g) == 0 && made[other] > 0 {
			found(g.name, "no follow-up of another end than "+g.Status, fmt.Sprint(made))
		}
	}
}

func (f *facts) checkSummaries(found func(_, _, _ string)) {
	for _, g := range f.groups() {
		for _, r := range f.runs[g.FollowUpJobID] {
			var t struct{ In *client.Batch }
			_ = json.Unmarshal(r.Data, &t)
			if t.In == nil || t.In.Status != g.Status || t.In.Total != g.Total || t.In.Name != g.Batch.Name {
				found(g.name, fmt.Sprintf("a summary of %s with %d jobs", g.Status, g.Total), string(r.Data))
			}
		}
	}
}

func (f *facts) checkTicks(found func(_, _, _ string)) {
	for name, list := range f.Ticks {
		fired := map[string]bool{}
		at := map[string]bool{}
		for _, t := range list {
			if t.Reason != "manual" {
				if at[clock(t.At)] {
					found(name, "a tick once", clock(t.At)+" twice")
				}
				at[clock(t.At)] = true
			}
			if (t.Outcome == "fired") != (t.JobID != "") && t.Reason == "" {
				found(name, "a job, or a reason why it was skipped", fmt.Sprintf("%+v", t))
			}
			if t.Outcome != "fired" || t.JobID == "" {
				continue
			}
			if fired[t.JobID] {
				found(name, "a job for each tick", t.JobID+" for two")
			}
			fired[t.JobID] = true
			if j := f.Jobs[t.JobID]; j == nil && !f.deleted(t.JobID) {
				found(name, "the job of the tick at "+clock(t.At), "there is no "+t.JobID)
			} else if j != nil && t.Reason != "manual" && (j.Schedule == nil || !j.Schedule.At.Equal(t.At)) {
				found(name, "a job that shows its tick, "+clock(t.At), fmt.Sprintf("%+v", j.Schedule))
			}
		}
	}
	ticks := map[string]string{}
	f.each(func(j *client.Job) {
		if j.Schedule == nil || f.RunByHand(j) {
			return
		}
		key := j.Schedule.Name + " at " + clock(j.Schedule.At)
		if other := ticks[key]; other != "" && j.RunAgainOf == "" {
			found(key, "one job", other+" and "+j.JobID)
		}
		ticks[key] = j.JobID
	})
}

// RunByHand reports whether a request, and no tick, made a job of a schedule.
func (f *facts) RunByHand(j *client.Job) bool {
	return slices.ContainsFunc(f.Asked, func(a *Asked) bool {
		return strings.Contains(a.Path, "/api/schedules/") && strings.Contains(string(a.Answer), j.JobID)
	})
}

// checkOverlap: a schedule that skips ticks makes no job while its last one has not ended.
func (f *facts) checkOverlap(found func(_, _, _ string)) {
	skips := map[string]bool{}
	for _, s := range f.Program.Steps {
		name := f.Base + "-" + s.Name
		switch s.Do {
		case "schedule-put":
			before, known := skips[name]
			skips[name] = s.Overlap == "skip" && (before || !known)
		case "schedule-run":
			skips[name] = false
		}
	}
	lines := map[string][]*client.Job{}
	f.each(func(j *client.Job) {
		if j.Schedule != nil && skips[j.Schedule.Name] && j.RunAgainOf == "" {
			lines[j.Schedule.Name] = append(lines[j.Schedule.Name], j)
		}
	})
	for name, jobs := range lines {
		slices.SortFunc(jobs, func(a, b *client.Job) int { return a.Schedule.At.Compare(b.Schedule.At) })
		for i := 1; i < len(jobs); i++ {
			before, next := f.lives(jobs[i-1]), f.runs[jobs[i].JobID]
			if len(before) > 0 && len(next) > 0 && before[0].end.At.After(next[0].Start) {
				found(name, "no job for the tick at "+clock(jobs[i].Schedule.At)+" before that of the last tick ended, at "+clock(before[0].end.At),
					"it started at "+clock(next[0].Start))
			}
		}
	}
}

func (f *facts) checkDeliveries(found func(_, _, _ string)) {
	arrived := map[string]map[string]bool{} // ids by job
	for _, a := range f.Arrivals {
		if arrived[a.Job] == nil {
			arrived[a.Job] = map[string]bool{}
		}
		arrived[a.Job][a.ID] = arrived[a.Job][a.ID] || a.Answer == 204
		if !terminal(a.Status) {
			found(f.name(a.Job), "an end", a.Status)
		}
	}
	f.each(func(j *client.Job) {
		if j.CallbackURL == "" || len(j.History) == 100 || j.ForEach != nil { // that of a fan-out is for its elements
			return
		}
		ends := 0
		for _, l := range f.lives(j) {
			if l.end.To != "" {
				ends++
			}
		}
		list := f.Deliveries[j.JobID]
		if len(list) != ends || len(arrived[j.JobID]) != ends {
			found(f.name(j.JobID), fmt.Sprintf("%d deliveries, as it ended so often", ends), fmt.Sprintf("%d, of which %d arrived", len(list), len(arrived[j.JobID])))
		}
		last := int64(0)
		for _, d := range list {
			if d.Status != "DELIVERED" || !arrived[j.JobID][d.ID] {
				found(f.name(j.JobID), "the delivery "+d.ID+" has arrived and was answered with 204", fmt.Sprintf("%s after %d tries", d.Status, d.Tries))
			}
			if d.Version > last {
				last = d.Version
			}
		}
		for _, d := range list {
			if d.Version == last && d.JobStatus != j.Status {
				found(f.name(j.JobID), "the last delivery is about its end, "+j.Status, d.JobStatus)
			}
		}
	})
}
