package interplay

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/client"
)

var callRules = []Rule{
	{
		"called once", "A call makes one job, however often the handler runs", "docs/long-jobs.md",
		(*facts).checkCalledOnce,
	},
	{
		"returned", "and returns its output", "docs/long-jobs.md",
		func(f *facts, found func(_, _, _ string)) {
			f.eachCall(func(r *Run, w WaitSeen) {
				var output struct {
					From    string
					Attempt int
				}
				_ = json.Unmarshal(w.Output, &output)
				if w.Ended == client.Completed && (output.From != f.called(w) || !f.gave(w.Job, output.Attempt)) {
					found(f.name(r.Job), fmt.Sprintf("attempt %d gets the output of %s", r.Attempt, w.Job), string(w.Output))
				}
			})
		},
	},
	{
		"kept", "`RETAIN_COMPLETED` may delete the job that was called before its caller asks again.", "docs/long-jobs.md",
		func(f *facts, found func(_, _, _ string)) {
			had := map[string]WaitSeen{}
			f.eachCall(func(r *Run, w WaitSeen) {
				before := had[w.Name]
				if before.Ended == client.Completed && (w.Ended != client.Completed || w.Job != before.Job || !same(w.Output, before.Output)) {
					found(f.name(r.Job), fmt.Sprintf("attempt %d gets what an earlier one got of %q: job %s, %s", r.Attempt, w.Name, before.Job, before.Output),
						fmt.Sprintf("job %s %s, %s", w.Job, w.Ended, w.Output))
				}
				if w.Ended == client.Completed {
					had[w.Name] = w
				}
			})
		},
	},
	{
		"child failed", "If that job fails, the call fails with `WORKER.CHILD_FAILED`, in every attempt", "docs/long-jobs.md",
		(*facts).checkChildFailed,
	},
	{
		"called again", "If a person retries the handler's job, it calls again what has not completed.", "docs/long-jobs.md",
		func(f *facts, found func(_, _, _ string)) {
			f.eachCaller(func(j *client.Job, lives []life) {
				for i := 1; i < len(lives); i++ {
					for _, r := range lives[i].runs {
						for _, w := range r.Waits {
							if old := lastSeen(lives[:i], w.Name); old.Ended != "" && old.Ended != client.Completed && old.Job == w.Job && !f.retriedByHand(w.Job) {
								found(f.name(j.JobID), fmt.Sprintf("attempt %d calls %q again: %s was %s before the retry", r.Attempt, w.Name, old.Job, old.Ended),
									"it gets the same job")
							}
						}
					}
				}
			})
		},
	},
	{
		"called off", "The end of the caller cancels the jobs that it has called and that have not ended.", "docs/long-jobs.md",
		(*facts).checkCalledOff,
	},
	{
		"called off by an end", "The end of the caller cancels the jobs that it has called and that have not ended.", "docs/long-jobs.md",
		func(f *facts, found func(_, _, _ string)) {
			f.each(func(j *client.Job) {
				p := f.Jobs[j.ParentID]
				if p == nil || len(p.History) == 100 {
					return
				}
				for _, m := range j.History {
					ended := slices.ContainsFunc(f.lives(p), func(l life) bool { return !l.end.At.IsZero() && !l.end.At.After(m.At) })
					if byCaller(m) && !ended {
						found(f.name(j.JobID), "no cancel before its caller has ended: "+f.name(p.JobID), "cancelled at "+clock(m.At))
					}
				}
			})
		},
	},
	{
		"of its caller", "The job of a call belongs to the owner and the trace of its caller.", "docs/long-jobs.md",
		func(f *facts, found func(_, _, _ string)) {
			f.eachCall(func(r *Run, w WaitSeen) {
				p, j := f.Jobs[r.Job], f.Jobs[w.Job]
				if p == nil || j == nil {
					return
				}
				if j.ParentID != p.JobID || j.OwnerID != p.OwnerID || j.TraceID != p.TraceID {
					found(f.name(w.Job), fmt.Sprintf("the parent %s, its owner %q and its trace %s", p.JobID, p.OwnerID, p.TraceID),
						fmt.Sprintf("%q, %q, %s", j.ParentID, j.OwnerID, j.TraceID))
				}
			})
		},
	},
	{
		"no slot", "While it waits it keeps no slot, for a minute or for months", "docs/long-jobs.md",
		func(f *facts, found func(_, _, _ string)) {
			f.eachCaller(func(j *client.Job, _ []life) {
				for _, r := range f.runs[j.JobID] {
					if r.How != actCall && r.How != actReceive || !slices.Contains(r.Settled, 200) {
						continue
					}
					for _, a := range j.Attempts {
						if a.Attempt == r.Attempt && a.Outcome != "snoozed" && a.Outcome != "cancelled" {
							found(f.name(j.JobID), fmt.Sprintf("attempt %d is over while its job waits", r.Attempt), fmt.Sprintf("%q", a.Outcome))
						}
					}
				}
			})
		},
	},
	{
		"together", "The handler is called again when all jobs have ended.", "shared/client/worker, CallAll",
		(*facts).checkTogether,
	},
	{
		"woken", "the job runs again when it is done, and asks again", "docs/pull-workers.md",
		(*facts).checkWoken,
	},
}

// byCaller reports whether a job was cancelled because its caller had ended.
func byCaller(m client.Move) bool { return m.By == "wait" && strings.HasPrefix(m.Reason, "cancel") }

// eachCall calls do for each answer about a call, in the order of the attempts of a job.
func (f *facts) eachCall(do func(*Run, WaitSeen)) {
	for _, list := range f.runs {
		for _, r := range list {
			for _, w := range r.Waits {
				if w.Job != "" {
					do(r, w)
				}
			}
		}
	}
}

// eachCaller calls do for each job that has waited, and whose whole history is shown.
func (f *facts) eachCaller(do func(*client.Job, []life)) {
	f.each(func(j *client.Job) {
		waits := slices.ContainsFunc(f.runs[j.JobID], func(r *Run) bool { return len(r.Waits) > 0 })
		if waits && len(j.History) < 100 {
			do(j, f.lives(j))
		}
	})
}

// called returns the name of the job of a call.
func (f *facts) called(w WaitSeen) string {
	if s := f.specs[w.Job]; s != nil {
		return s.Job.Name
	}
	return ""
}

// gave reports whether an attempt of a job may have put out something.
func (f *facts) gave(id string, attempt int) bool {
	return slices.ContainsFunc(f.runs[id], func(r *Run) bool {
		return r.Attempt == attempt && (r.How == actOK || r.How == actLater)
	})
}

func (f *facts) retriedByHand(id string) bool { return len(f.may(id, "retry")) > 0 }

// lastSeen returns the last answer about a wait in some lives.
func lastSeen(lives []life, name string) (last WaitSeen) {
	for _, l := range lives {
		for _, r := range l.runs {
			for _, w := range r.Waits {
				if w.Name == name {
					last = w
				}
			}
		}
	}
	return last
}

// checkCalledOnce: all attempts of a life have the same job of a call, and there are no others.
func (f *facts) checkCalledOnce(found func(_, _, _ string)) {
	made := map[string]map[string]bool{} // ids by name
	f.each(func(j *client.Job) {
		if name := nameIn(j.Payload); j.ParentID != "" {
			if made[name] == nil {
				made[name] = map[string]bool{}
			}
			made[name][j.JobID] = true
		}
	})
	f.eachCaller(func(j *client.Job, lives []life) {
		asking := map[string]int{} // lives by name of the child
		for _, l := range lives {
			had := map[string]WaitSeen{}
			for _, r := range l.runs {
				for _, w := range r.Waits {
					if before := had[w.Name]; before.Job != "" && before.Job != w.Job {
						found(f.name(j.JobID), fmt.Sprintf("attempt %d has the job %s of %q", r.Attempt, before.Job, w.Name), w.Job)
					}
					had[w.Name] = w
				}
			}
			for _, w := range had {
				asking[f.called(w)]++
			}
		}
		for name, n := range asking {
			if unanswered := slices.ContainsFunc(f.runs[j.JobID], func(r *Run) bool { return r.How == "cut" || r.How == "" }); !unanswered && len(made[name]) > n {
				found(f.name(j.JobID), fmt.Sprintf("%d jobs of the call %q at most: so many lives have asked", n, name), fmt.Sprint(len(made[name])))
			}
		}
	})
}

// checkChildFailed: an attempt that has seen a failed call is the last one of its life.
func (f *facts) checkChildFailed(found func(_, _, _ string)) {
	f.eachCaller(func(j *client.Job, lives []life) {
		for _, l := range lives {
			for i, r := range l.runs {
				if r.How != childFailed || !slices.Contains(r.Settled, 200) {
					continue
				}
				if i+1 < len(l.runs) {
					found(f.name(j.JobID), fmt.Sprintf("no retry after attempt %d: a job that it called has failed", r.Attempt), fmt.Sprintf("attempt %d", l.runs[i+1].Attempt))
				} else if l.end.To != client.Failed && l.end.To != client.Cancelled {
					found(f.name(j.JobID), fmt.Sprintf("FAILED after attempt %d: a job that it called has failed", r.Attempt), l.end.To)
				}
			}
		}
		if last := f.outcome(j); code(j) == string(apierror.ChildFailed) && j.Status == client.Failed && last != nil && last.How != childFailed {
			found(f.name(j.JobID), "another error: none of its calls has failed", code(j))
		}
	})
}

// checkCalledOff: no attempt of a job is sent once its caller has ended.
func (f *facts) checkCalledOff(found func(_, _, _ string)) {
	f.each(func(j *client.Job) {
		p := f.Jobs[j.ParentID]
		if p == nil || len(p.History) == 100 || f.retriedByHand(j.JobID) {
			return
		}
		for _, l := range f.lives(p) {
			if l.end.At.IsZero() || l.end.At.Before(j.CreatedAt) {
				continue
			}
			for _, m := range j.History {
				if sent(m) && m.At.After(l.end.At.Add(cancelReaches)) && !f.disturbed(l.end.At.Add(-aftermath), m.At) {
					found(f.name(j.JobID), fmt.Sprintf("no further attempt: its caller, %s, was %s at %s", f.name(p.JobID), l.end.To, clock(l.end.At)),
						fmt.Sprintf("attempt %d was sent at %s", m.Attempt, clock(m.At)))
				}
			}
		}
	})
}

// checkTogether: an attempt after one that waited for a group sees all of the group ended, unless something else has
// let the job run.
func (f *facts) checkTogether(found func(_, _, _ string)) {
	f.eachCaller(func(j *client.Job, lives []life) {
		if len(f.may(j.JobID, "reschedule"))+len(f.may(j.JobID, "patch")) > 0 {
			return
		}
		for _, l := range lives {
			for i := 1; i < len(l.runs); i++ {
				before, next := l.runs[i-1], l.runs[i]
				if before.How != actCall || !slices.Contains(before.Settled, 200) || next.Attempt != before.Attempt+1 {
					continue
				}
				open := 0
				for _, w := range next.Waits {
					asked := slices.ContainsFunc(before.Waits, func(o WaitSeen) bool { return o.Name == w.Name })
					if asked && w.Status == client.WaitOpen && !f.retriedByHand(w.Job) {
						open++
					}
				}
				group := before.Waits[0].Group // calls without one wake their caller one by one
				one := group != "" && !slices.ContainsFunc(before.Waits, func(w WaitSeen) bool { return w.Group != group })
				if (one || len(before.Waits) == 1) && open > 0 {
					found(f.name(j.JobID), fmt.Sprintf("attempt %d runs when all calls of its group have ended", next.Attempt), fmt.Sprintf("%d are open", open))
				}
			}
		}
	})
}

// checkWoken: no job waits any more whose waits are done.
func (f *facts) checkWoken(found func(_, _, _ string)) {
	sent := map[string]time.Time{}
	for _, e := range f.Events {
		sent[e.ID] = e.At
	}
	for _, j := range f.Open {
		list := f.runs[j.JobID]
		if j.Status != client.Scheduled || len(list) == 0 || len(list[len(list)-1].Waits) == 0 {
			continue
		}
		done := true
		for _, w := range list[len(list)-1].Waits {
			child := f.Jobs[w.Job]
			_, came := sent[w.Name]
			done = done && (w.Job != "" && (child == nil || child.Terminal()) || w.Job == "" && came)
		}
		if done {
			found(f.name(j.JobID), "it runs again: all that it waits for has ended, or was sent", "SCHEDULED")
		}
	}
}
