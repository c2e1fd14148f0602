package interplay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/jobweaver/jobweaver/shared/client"
)

var graphRules = []Rule{
	{
		"after", "A job runs when all of its conditions are met.", "docs/flows.md",
		(*facts).checkAfter,
	},
	{
		"skipped", "When the first of them can no longer be met, the job is CANCELLED with `SCHEDULER.DEPENDENCY_FAILED`", "docs/flows.md",
		func(f *facts, found func(_, _, _ string)) {
			f.each(func(j *client.Job) {
				if code(j) != "SCHEDULER.DEPENDENCY_FAILED" || len(f.lives(j)) > 1 {
					return
				}
				for _, id := range j.After {
					d := f.Jobs[id]
					if d == nil {
						return
					}
					for _, l := range f.lives(d) {
						if l.end.To != "" && !meets(l.end.To, conditionOf(j, id)) {
							return
						}
					}
				}
				found(f.name(j.JobID), "one of the jobs that it waits for ended otherwise than it has to", "all of them ended as they have to")
			})
		},
	},
	{
		"outputs", "is replaced by the output of that job when the attempt starts", "docs/flows.md",
		(*facts).checkOutputs,
	},
	{
		"fan-out", "A job with `forEach` becomes one job for each element of an array", "docs/flows.md",
		(*facts).checkFanOuts,
	},
}

// meets reports whether an end is one of a condition.
func meets(status, on string) bool {
	switch on {
	case "ended":
		return true
	case "failed":
		return status != client.Completed
	}
	return status == client.Completed
}

func conditionOf(j *client.Job, id string) string {
	if on := j.Conditions[id]; on != "" {
		return on
	}
	if j.OnDependencyFailure == "run" {
		return "ended"
	}
	return "completed"
}

func (f *facts) checkAfter(found func(_, _, _ string)) {
	f.each(func(j *client.Job) {
		lives := f.lives(j)
		if len(lives) == 0 || len(lives[0].runs) == 0 || j.Element != nil {
			return
		}
		start := lives[0].runs[0].Start
		for _, id := range j.After {
			d, on := f.Jobs[id], conditionOf(j, id)
			if d == nil || len(d.History) == 100 {
				continue
			}
			met := slices.ContainsFunc(f.lives(d), func(l life) bool {
				return meets(l.end.To, on) && !l.end.At.IsZero() && !l.end.At.After(start)
			})
			if !met {
				found(f.name(j.JobID), fmt.Sprintf("no start before %s has ended: %s", f.name(id), on),
					fmt.Sprintf("it started at %s; the other: %s", clock(start), endsOf(f.lives(d))))
			}
		}
	})
}

func endsOf(lives []life) (text string) {
	for _, l := range lives {
		text += fmt.Sprintf(" %s at %s", l.end.To, clock(l.end.At))
	}
	return text
}

// same compares JSON values.
func same(a, b json.RawMessage) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return len(a) == 0 && len(b) == 0
	}
	one, err := json.Marshal(x)
	if err != nil {
		return false
	}
	other, err := json.Marshal(y)
	return err == nil && bytes.Equal(one, other)
}

// source returns the job with a name among those that a job comes after; nil: it is not known, or has run again.
func (f *facts) source(j *client.Job, name string) *client.Job {
	for _, id := range j.After {
		if d := f.Jobs[id]; d != nil && nameIn(d.Payload) == name && len(f.lives(d)) == 1 {
			return d
		}
	}
	return nil
}

// none is the default of each reference to an output.
var none = json.RawMessage(`"none"`)

// ahead reports whether an attempt may have been sent before a job had ended to whose output it refers: a job that is
// retried does not wait. The end has the instant at which its transaction began.
func (f *facts) ahead(j *client.Job, r *Run, d *client.Job) bool {
	retried := slices.ContainsFunc(f.lives(j), func(l life) bool { return l.revived && slices.Contains(l.runs, r) })
	end := f.lives(d)[0].end.At.Add(lateness)
	return (retried || len(j.History) == 100) && !slices.ContainsFunc(j.History, func(m client.Move) bool {
		return m.To == client.Queued && m.Attempt == r.Attempt && m.At.After(end)
	})
}

func (f *facts) checkOutputs(found func(_, _, _ string)) {
	f.each(func(j *client.Job) {
		spec := f.spec(j.JobID)
		if spec == nil || spec.Job.Uses == "" || j.Element != nil || j.RunAgainOf != "" {
			return
		}
		d := f.source(j, spec.Job.Uses)
		if d == nil {
			return
		}
		expected := d.Output
		if d.Status != client.Completed {
			expected = none
		}
		for _, r := range f.runs[j.JobID] {
			var t task
			_ = json.Unmarshal(r.Data, &t)
			if !same(t.In, expected) && !(same(t.In, none) && f.ahead(j, r, d)) {
				found(f.name(j.JobID), fmt.Sprintf("attempt %d gets the output of %s: %s", r.Attempt, f.name(d.JobID), expected), string(t.In))
			}
		}
	})
}

func (f *facts) checkFanOuts(found func(_, _, _ string)) {
	elements := map[string][]*client.Job{}
	f.each(func(j *client.Job) {
		if j.Element != nil {
			elements[j.Element.FanOutID] = append(elements[j.Element.FanOutID], j)
		}
	})
	f.each(func(j *client.Job) {
		spec := f.spec(j.JobID)
		if j.ForEach == nil || spec == nil {
			return
		}
		list := elements[j.JobID]
		slices.SortFunc(list, func(a, b *client.Job) int { return a.Element.Index - b.Element.Index })
		d := f.source(j, spec.Job.ForEach)
		var values []json.RawMessage
		if d != nil {
			var output struct{ List []json.RawMessage }
			if json.Unmarshal(d.Output, &output) != nil {
				_ = json.Unmarshal(d.Output, &values)
			} else {
				values = output.List
			}
		}
		f.checkElements(j, list, values, found)
		if j.Status != client.Completed || len(f.may(j.JobID, "delete")) > 0 || slices.ContainsFunc(list, func(e *client.Job) bool { return f.deleted(e.JobID) }) {
			return
		}
		if d != nil && len(list) != len(values) {
			found(f.name(j.JobID), fmt.Sprintf("a job for each of %d elements", len(values)), fmt.Sprint(len(list)))
			return
		}
		var outputs []json.RawMessage
		_ = json.Unmarshal(j.Output, &outputs)
		for i, e := range list {
			if e.Element.Index != i || e.Status != client.Completed || i >= len(outputs) || !same(outputs[i], e.Output) {
				found(f.name(j.JobID), fmt.Sprintf("its output %d is that of its element, %s %s", i, e.Status, e.Output), string(j.Output))
			}
		}
	})
}

// checkElements: each element has its value and its index, and no index is there twice.
func (f *facts) checkElements(j *client.Job, list []*client.Job, values []json.RawMessage, found func(_, _, _ string)) {
	for i, e := range list {
		if i > 0 && list[i-1].Element.Index == e.Element.Index {
			found(f.name(j.JobID), "an index once", fmt.Sprintf("%d twice", e.Element.Index))
		}
		for _, r := range f.runs[e.JobID] {
			var t task
			_ = json.Unmarshal(r.Data, &t)
			if t.Index == nil || *t.Index != e.Element.Index {
				found(f.name(e.JobID), fmt.Sprintf("index %d", e.Element.Index), fmt.Sprintf("attempt %d got %s", r.Attempt, r.Data))
			}
			if values != nil && e.Element.Index < len(values) && !same(t.Item, values[e.Element.Index]) {
				found(f.name(e.JobID), fmt.Sprintf("the value %s", values[e.Element.Index]), fmt.Sprintf("attempt %d got %s", r.Attempt, t.Item))
			}
		}
	}
}
