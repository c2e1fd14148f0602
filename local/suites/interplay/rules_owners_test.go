package interplay

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/jobweaver/jobweaver/shared/client"
)

// Two owners run each program at once, with the same keys and names. What one of them does must not show in the other's
// record: all other rules hold for it as if it were alone.
var ownerRules = []Rule{
	{
		"not found", "the id of another owner's resource gets the same 404 as an unknown id", "docs/security.md",
		func(f *facts, found func(_, _, _ string)) {
			for _, a := range f.Asked {
				if a.Want > 0 && a.Status > 0 && a.Status != a.Want {
					found(fmt.Sprintf("step %d: %s %s", a.Step, a.Method, a.Path), fmt.Sprintf("%d: it is the other owner's", a.Want),
						fmt.Sprintf("%d %s", a.Status, a.Answer))
				}
			}
		},
	},
	{
		"not reached", "An operation reaches its owner's jobs only, whatever its list or filter contains.", "docs/security.md",
		func(f *facts, found func(_, _, _ string)) {
			for _, a := range f.Asked {
				for name, o := range f.Operations {
					if a.Want > 0 && a.ok() && strings.Contains(string(a.Answer), o.OperationID) && o.Progress.Asked > 0 {
						found(name, "no job of the other owner gets the command", fmt.Sprintf("%+v", o.Progress))
					}
				}
			}
		},
	},
	{
		"own jobs", "A job belongs to the owner of the key that submitted it, whatever `ownerId` a job, an event or a schedule names.", "docs/security.md",
		func(f *facts, found func(_, _, _ string)) {
			f.each(func(j *client.Job) {
				owner := f.Owner
				if s := f.spec(j.JobID); s != nil && s.Foreign {
					owner = s.Owner
				}
				if j.OwnerID != owner {
					found(f.name(j.JobID), "a job of "+owner, "of "+j.OwnerID)
				}
			})
		},
	},
	{
		"own keys", "Idempotency keys, ordering keys, event identities (source, id) and names of schedules and alerts are separate for each owner.", "docs/security.md",
		func(f *facts, found func(_, _, _ string)) {
			for _, name := range f.names {
				if s := f.Specs[name]; slices.Contains(f.Others, s.ID) {
					found(name, "a job of its owner, or none", fmt.Sprintf("%s of %s, found by %q", s.ID, f.Other, s.By))
				}
			}
			for _, w := range f.Waits {
				if j := f.Jobs[w.Job]; j != nil && !f.behindOwn(j, w) {
					found(f.name(w.Job), "it waits behind a job of its owner", fmt.Sprintf("behind none, blocked by %v at %s", w.By, clock(w.At)))
				}
			}
		},
	},
	{
		"own throttle", "Each job reserves a start when it is accepted: now, or `perMs` after the start that the previous job reserved.", "docs/submit-policies.md",
		(*facts).checkOwnThrottle,
	},
	{
		"own lists", "A key cannot see other owners' jobs, logs, deliveries, operations, schedules", "docs/security.md",
		(*facts).checkOwnLists,
	},
	{
		"own work", "It gets attempts of its owner's jobs; a key of the installation gets those of all owners.", "docs/pull-workers.md",
		func(f *facts, found func(_, _, _ string)) {
			for _, r := range f.Record.Runs {
				if r.Pull && r.Taker != "" && (r.Taker != r.Owner || r.Taker != f.Owner) {
					found(f.name(r.Job), "the key of "+r.Taker+" gets jobs of that owner only", "it got a job of "+r.Owner)
				}
			}
		},
	},
	{
		"own tokens", "with any other key it is over", "docs/pull-workers.md",
		func(f *facts, found func(_, _, _ string)) {
			for _, r := range f.Record.Runs {
				for _, status := range r.Stolen {
					if status != http.StatusConflict && status < 500 {
						found(fmt.Sprintf("attempt %d of %s", r.Attempt, f.name(r.Job)), "409 to each request of the other owner", fmt.Sprint(r.Stolen))
						break
					}
				}
			}
		},
	},
	{
		"own commands", "the id of another owner's resource gets the same 404 as an unknown id", "docs/security.md",
		func(f *facts, found func(_, _, _ string)) {
			f.each(func(j *client.Job) {
				for _, m := range j.History {
					command := map[string]string{"retry": "retry", "change": "patch", "reschedule": "reschedule"}[m.Reason]
					if command == "" || m.By == "wait" || len(f.may(j.JobID, command)) > 0 || j.Element != nil && len(f.may(j.Element.FanOutID, command)) > 0 {
						continue
					}
					found(f.name(j.JobID), "no command but those of its owner", fmt.Sprintf("a %s at %s", command, clock(m.At)))
				}
			})
		},
	},
}

// behindOwn reports whether a job that waited for its order waited for a job of its owner.
func (f *facts) behindOwn(j *client.Job, w Waiting) bool {
	keyOf := func(j *client.Job) (keys []string) {
		if j.OrderingKey != "" {
			keys = append(keys, "order "+j.OrderingKey)
		}
		if j.Singleton != nil {
			keys = append(keys, "singleton "+j.Singleton.Key)
		}
		return keys
	}
	behind := func(o *client.Job) bool {
		if o.JobID == j.JobID || o.OwnerID != j.OwnerID || !slices.ContainsFunc(keyOf(o), func(k string) bool { return slices.Contains(keyOf(j), k) }) {
			return false
		}
		if gone := f.gone(o.JobID); !gone.IsZero() && gone.Before(w.At) {
			return false
		}
		return o.CreatedAt.Before(w.At.Add(lateness)) && !f.shownEnded(o.JobID, w.At)
	}
	if !slices.ContainsFunc(w.By, func(b client.Block) bool { return b.Kind == "order" || b.Kind == "singleton" }) {
		return true
	}
	for _, jobs := range []map[string]*client.Job{f.Jobs, f.Gone} {
		for _, o := range jobs {
			if behind(o) {
				return true
			}
		}
	}
	return false
}

// shownEnded reports whether the API showed before and after an instant that a job had ended. How late the API shows an
// end has no bound: another process takes over a partition of a killed one, and reads what has waited there.
func (f *facts) shownEnded(id string, at time.Time) bool {
	var ended bool
	var next time.Time // the first list after the instant that had changed
	for _, s := range f.Seen {
		switch {
		case !s.At.After(at) && s.Job == id:
			ended = terminal(s.Status)
		case s.At.After(at) && next.IsZero():
			next = s.At
		}
		if s.Job == id && s.At.Equal(next) {
			return false
		}
	}
	return ended
}

// checkOwnThrottle: a job's start is at most perMs after that of the job before it, or at once.
func (f *facts) checkOwnThrottle(found func(_, _, _ string)) {
	lines, moved := map[string][]*client.Job{}, map[string]bool{}
	add := func(j *client.Job) {
		if j.Throttle != nil && j.RunAt != nil {
			key := j.Throttle.Key + " of " + j.OwnerID
			lines[key] = append(lines[key], j)
			moved[key] = moved[key] || len(f.may(j.JobID, "reschedule")) > 0
		}
	}
	f.each(add)
	unseen := map[string]bool{} // keys of jobs that were deleted: lists do not show what they had reserved
	for id, s := range f.specs {
		if s.Job.Throttle != "" && f.Jobs[id] == nil {
			unseen[s.Job.Throttle] = true
		}
	}
	for key, jobs := range lines {
		name := jobs[0].Throttle.Key[strings.LastIndex(jobs[0].Throttle.Key, "-")+1:]
		if moved[key] || unseen[name] {
			continue
		}
		slices.SortFunc(jobs, func(a, b *client.Job) int { return a.RunAt.Compare(*b.RunAt) })
		var before *client.Job
		for _, j := range jobs {
			most := j.CreatedAt
			if before != nil {
				// Of two neighbours, the one that was accepted later keeps its distance, which its request names.
				per := max(before.Throttle.PerMs, j.Throttle.PerMs)
				most = later(most, before.RunAt.Add(time.Duration(per)*time.Millisecond))
			}
			if j.RunAt.After(most.Add(lateness)) {
				found("throttle "+key, fmt.Sprintf("%s starts at %s: no job of its owner has reserved a later start", f.name(j.JobID), clock(most)),
					clock(*j.RunAt))
			}
			before = j
		}
	}
}

func (f *facts) checkOwnLists(found func(_, _, _ string)) {
	shown := func(what string, ids []string) {
		for _, id := range ids {
			if slices.Contains(f.Others, id) {
				found(what, "nothing of "+f.Other, id)
			}
		}
	}
	for id := range f.Listed {
		shown("/api/jobs", []string{id})
	}
	for _, s := range f.Seen {
		shown("/api/jobs", []string{s.Job})
	}
	for text, ids := range f.Filters {
		shown("/api/jobs?"+text, ids)
	}
	for path, ids := range f.Lists {
		shown(path, ids)
	}
	for name, ticks := range f.Ticks {
		for _, t := range ticks {
			shown("the ticks of "+name, []string{t.JobID})
		}
	}
	has := func(path, id, name string) {
		if f.Lists != nil && !slices.Contains(f.Lists[path], id) {
			found(path, "it has "+name, "it has not")
		}
	}
	for name, b := range f.Batches {
		has("/api/batches", b.BatchID, name)
	}
	for name, fl := range f.Flows {
		has("/api/flows", fl.FlowID, name)
	}
	for name, o := range f.Operations {
		has("/api/operations", o.OperationID, name)
	}
}
