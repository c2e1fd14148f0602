package interplay

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jobweaver/jobweaver/shared/client"
)

var keyRules = []Rule{
	{
		"one at a time", "Jobs with the same `orderingKey` (and owner) run one at a time", "docs/scheduling.md",
		func(f *facts, found func(_, _, _ string)) {
			for key, jobs := range f.lines() {
				var all []work
				for _, j := range jobs {
					all = append(all, f.works(j)...)
				}
				slices.SortFunc(all, func(a, b work) int { return a.from.Compare(b.from) })
				for i := 1; i < len(all); i++ {
					before, next := all[i-1], all[i]
					if before.job != next.job && next.from.Before(before.to) {
						found(key, fmt.Sprintf("%s starts after %s, which were over at %s", next.what, before.what, clock(before.to)), clock(next.from))
					}
				}
			}
		},
	},
	{
		"in order", "in the order in which the API accepted them", "docs/scheduling.md",
		func(f *facts, found func(_, _, _ string)) {
			for key, jobs := range f.lines() {
				for _, a := range jobs {
					for _, b := range jobs {
						f.checkTurn(key, a, b, found)
					}
				}
			}
		},
	},
	{
		"once", "Requests with the same `idempotencyKey` (or header `Idempotency-Key`) make one job", "docs/scheduling.md",
		(*facts).checkOnce,
	},
	{
		"unique", "Two `ACTIVE` jobs are never accepted for one key.", "docs/submit-policies.md",
		func(f *facts, found func(_, _, _ string)) {
			f.checkPolicy(found, func(j *client.Job) (string, bool) {
				if j.Unique == nil {
					return "", false
				}
				return j.Unique.Key, j.Unique.While != "WAITING"
			})
		},
	},
	{
		"dropped", "has the last such job ended?", "docs/submit-policies.md",
		func(f *facts, found func(_, _, _ string)) {
			f.checkPolicy(found, func(j *client.Job) (string, bool) {
				if j.Singleton == nil {
					return "", false
				}
				return j.Singleton.Key, j.Singleton.Else == "drop"
			})
		},
	},
	{
		"throttle", "Each job reserves a start when it is accepted: now, or `perMs` after the start that the previous job reserved.", "docs/submit-policies.md",
		(*facts).checkThrottle,
	},
	{
		"debounce", "At `runAt` the job starts with the content of the last request", "docs/submit-policies.md",
		(*facts).checkDebounce,
	},
}

// lines returns the jobs of each ordering key and singleton key.
func (f *facts) lines() map[string][]*client.Job {
	lines := map[string][]*client.Job{}
	f.each(func(j *client.Job) {
		if !witnessed(j) {
			return
		}
		if j.OrderingKey != "" {
			key := fmt.Sprintf("orderingKey %s of %q", j.OrderingKey, j.OwnerID)
			lines[key] = append(lines[key], j)
		}
		if j.Singleton != nil {
			key := fmt.Sprintf("singleton %s of %q", j.Singleton.Key, j.OwnerID)
			lines[key] = append(lines[key], j)
		}
	})
	return lines
}

// checkTurn: of two jobs, the second of which was asked for when the first had been accepted, the first is first.
func (f *facts) checkTurn(key string, a, b *client.Job, found func(_, _, _ string)) {
	sa, sb := f.specs[a.JobID], f.specs[b.JobID]
	if a == b || sa == nil || sb == nil || !sa.Made || !sb.Made || a.Debounce != nil || b.Debounce != nil || !sa.At.Before(sb.Sent) {
		return
	}
	if sa.Way == "outbox" || sb.Way == "outbox" {
		return
	}
	la, lb := f.lives(a), f.lives(b)
	if len(la) == 0 || len(lb) == 0 || len(lb[0].runs) == 0 {
		return
	}
	for _, r := range la[0].runs {
		if r.Start.After(lb[0].runs[0].Start) {
			found(key, fmt.Sprintf("%s before %s, which was asked for at %s", f.name(a.JobID), f.name(b.JobID), clock(sb.Sent)),
				fmt.Sprintf("attempt %d of the first started at %s, the second at %s", r.Attempt, clock(r.Start), clock(lb[0].runs[0].Start)))
		}
	}
}

func (f *facts) checkOnce(found func(_, _, _ string)) {
	by := map[string]string{}
	for _, name := range f.names {
		s := f.Specs[name]
		key := "event or key " + s.Job.Name
		if s.Job.Idem != "" && s.Way != "event" && s.Way != "structured" && s.Way != "events" && s.Way != "hook" {
			key = "idempotencyKey " + s.Job.Idem
		} else if !s.Job.OwnID {
			continue
		}
		if s.ID == "" || s.By != "" || s.Way == "batch" || s.Way == "flow" || s.Way == "outbox" || s.Way == "schedule" {
			continue
		}
		if before := by[key]; before != "" && before != s.ID && !f.deleted(before) {
			found(key, "one job", before+" and "+s.ID)
		}
		by[key] = s.ID
	}
}

// checkPolicy: a request became a job although an earlier job of its key had not ended when it was answered.
func (f *facts) checkPolicy(found func(_, _, _ string), keyOf func(*client.Job) (string, bool)) {
	for _, name := range f.names {
		s := f.Specs[name]
		j := f.Jobs[s.ID]
		if !s.Made || j == nil || f.specs[s.ID] != s || s.Way == "run-again" || s.Way == "outbox" {
			continue
		}
		key, strict := keyOf(j)
		if !strict {
			continue
		}
		for _, other := range f.names {
			o := f.Specs[other]
			before := f.Jobs[o.ID]
			if o == s || !o.Made || before == nil || !o.At.Before(s.Sent) || before.OwnerID != j.OwnerID {
				continue
			}
			if k, _ := keyOf(before); k != key {
				continue
			}
			if lives := f.lives(before); len(lives) > 0 && lives[0].end.At.After(s.At) {
				found(key, fmt.Sprintf("%s is not made while %s, accepted at %s, has not ended", f.name(s.ID), f.name(o.ID), clock(o.At)),
					fmt.Sprintf("it was accepted at %s, the other ended at %s", clock(s.At), clock(lives[0].end.At)))
			}
		}
	}
}

func (f *facts) checkThrottle(found func(_, _, _ string)) {
	lines := map[string][]*client.Job{}
	f.each(func(j *client.Job) {
		if j.Throttle != nil && j.RunAt != nil && len(f.may(j.JobID, "reschedule")) == 0 {
			lines[j.Throttle.Key+j.OwnerID] = append(lines[j.Throttle.Key+j.OwnerID], j)
		}
	})
	for key, jobs := range lines {
		slices.SortFunc(jobs, func(a, b *client.Job) int { return a.RunAt.Compare(*b.RunAt) })
		for i := 1; i < len(jobs); i++ {
			a, b := jobs[i-1], jobs[i]
			// Of two neighbours, the one that was accepted later keeps its distance, which its request names.
			per := min(a.Throttle.PerMs, b.Throttle.PerMs)
			if gap := b.RunAt.Sub(*a.RunAt); gap < time.Duration(per)*time.Millisecond-rounding {
				found("throttle "+key, fmt.Sprintf("%d ms between the starts of %s and %s", per, f.name(a.JobID), f.name(b.JobID)), gap.String())
			}
		}
	}
}

// checkDebounce: a job runs with the content of the last request that changed it.
func (f *facts) checkDebounce(found func(_, _, _ string)) {
	last, certain := map[string]*Spec{}, map[string]bool{}
	for _, name := range f.names {
		s := f.Specs[name]
		if s.Job.Debounce == "" || s.ID == "" || strings.Contains(name, " again ") || s.Way == "outbox" || s.Way == "run-again" {
			continue
		}
		before := last[s.ID]
		certain[s.ID] = before == nil || before.At.Before(s.Sent)
		last[s.ID] = s
	}
	for id, s := range last {
		j := f.Jobs[id]
		if f.enqueued(s.Job.Debounce) {
			continue
		}
		if j == nil || !certain[id] || len(f.may(id, "patch")) > 0 || unseen(j.JobType) || unseen(s.Job.Type) || s.Status != 202 {
			continue
		}
		if got := nameIn(j.Payload); got != s.Job.Name {
			found(f.name(id), "the content of the last request, "+s.Job.Name, got)
		}
		for _, r := range f.runs[id] {
			if r.Name != s.Job.Name {
				found(f.name(id), "attempts with the content of the last request, "+s.Job.Name, fmt.Sprintf("attempt %d had that of %s", r.Attempt, r.Name))
			}
		}
		if j.RunAt != nil && j.Debounce != nil && len(f.may(id, "reschedule")) == 0 {
			most := j.CreatedAt.Add(time.Duration(j.Debounce.MaxDelayMs) * time.Millisecond)
			if j.RunAt.After(most.Add(rounding)) {
				found(f.name(id), "runAt at most maxDelayMs after the first request, "+clock(most), clock(*j.RunAt))
			}
		}
	}
}

// enqueued reports whether a request with a debounce key may have been carried out at a time that is not known.
func (f *facts) enqueued(key string) bool {
	for _, s := range f.Program.Steps {
		for _, j := range s.Jobs {
			if spec := f.Specs[j.Name]; j.Debounce == key && (s.Way == "outbox" || spec != nil && spec.Status == 0) {
				return true
			}
		}
	}
	return false
}
