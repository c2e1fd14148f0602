package interplay

import (
	"fmt"
	"slices"
	"time"

	"github.com/jobweaver/jobweaver/shared/client"
)

var runRules = []Rule{
	{
		"attempts", "An attempt starts at most once", "docs/design.md",
		func(f *facts, found func(_, _, _ string)) {
			for id, list := range f.runs {
				last := 0
				for _, r := range list {
					if r.Attempt <= last {
						found(f.name(id), fmt.Sprintf("an attempt after %d", last), fmt.Sprintf("attempt %d started at %s", r.Attempt, clock(r.Start)))
					}
					last = r.Attempt
					if j := f.Jobs[id]; j != nil && r.Attempt > j.Attempt {
						found(f.name(id), fmt.Sprintf("the job has had attempt %d", r.Attempt), fmt.Sprintf("it shows %d", j.Attempt))
					}
				}
			}
		},
	},
	{
		"apart", "the attempts of a job follow one another", "docs/design.md",
		func(f *facts, found func(_, _, _ string)) {
			for id, list := range f.runs {
				for i := 1; i < len(list); i++ {
					over := f.overAt(list[i-1])
					if list[i].Start.Before(over) && !f.disturbed(list[i-1].Start, list[i].Start) {
						found(f.name(id), fmt.Sprintf("attempt %d starts after attempt %d is over, at %s", list[i].Attempt, list[i-1].Attempt, clock(over)), clock(list[i].Start))
					}
				}
			}
		},
	},
	{
		"after its end", "Once the API shows CANCELLED, no attempt of the job starts", "docs/design.md",
		(*facts).checkShownEnds,
	},
	{
		"expires", "A job that has not started by `expiresAt` ends as CANCELLED", "docs/scheduling.md",
		func(f *facts, found func(_, _, _ string)) {
			f.each(func(j *client.Job) {
				if j.ExpiresAt == nil || len(f.lives(j)) > 1 || len(j.Attempts) == 0 {
					return
				}
				if at := f.startOf(j, j.Attempts[0]); at.After(j.ExpiresAt.Add(lateness)) {
					found(f.name(j.JobID), "no start after "+clock(*j.ExpiresAt), "attempt 1 started at "+clock(at))
				}
			})
		},
	},
	{
		"not before", "Not before this instant", "openapi.yaml, runAt",
		func(f *facts, found func(_, _, _ string)) {
			f.each(func(j *client.Job) {
				list := f.runs[j.JobID]
				if j.RunAt == nil || len(list) == 0 || len(f.may(j.JobID, "reschedule")) > 0 || len(f.lives(j)) > 1 {
					return
				}
				if list[0].Start.Before(j.RunAt.Add(-rounding)) {
					found(f.name(j.JobID), "no start before "+clock(*j.RunAt), clock(list[0].Start))
				}
			})
		},
	},
	{
		"delays", "A failed job is retried `maxRetryCount` times (3 by default), at the intervals of its `retryPolicy`", "docs/scheduling.md",
		(*facts).checkDelays,
	},
	{
		"received", "It wakes all jobs that wait for it, and each job gets it once.", "docs/long-jobs.md",
		(*facts).checkReceived,
	},
	{
		"checkpoint", "all later attempts of the job, however the previous one ended", "docs/long-jobs.md",
		func(f *facts, found func(_, _, _ string)) {
			for id, list := range f.runs {
				saved := []string{""} // either of these
				for i, r := range list {
					if !slices.Contains(saved, r.Had) && !(i > 0 && f.disturbed(list[i-1].Start, r.Start)) {
						found(f.name(id), fmt.Sprintf("attempt %d gets the checkpoint %q", r.Attempt, saved), fmt.Sprintf("%q", r.Had))
					}
					saved = []string{r.Had}
					if r.Saved != "" {
						saved = []string{r.Saved}
						if r.Cut || f.short(id, r) { // it may have been over by then
							saved = append(saved, r.Had)
						}
					}
				}
			}
		},
	},
	{
		"callbacks", "COMPLETED and FAILED end the attempt, once: a callback that was answered with 200 is stored", "openapi.yaml, callback",
		(*facts).checkBacks,
	},
	{
		"calls are signed", "If the worker has `WEBHOOK_SECRETS`, it signs its requests by", "docs/functions.md",
		func(f *facts, found func(_, _, _ string)) {
			for _, r := range f.Runs {
				if r.Wrong != "" {
					found(f.name(r.Job), fmt.Sprintf("a good signature of the call of attempt %d", r.Attempt), r.Wrong)
				}
			}
		},
	},
	{
		"settles", "A 409, `API.ATTEMPT_OVER`, changes nothing: the attempt ended, timed out, or was lost.", "docs/pull-workers.md",
		func(f *facts, found func(_, _, _ string)) {
			for _, r := range f.Runs {
				for _, status := range r.Settled {
					if status != 200 && status != 409 {
						found(f.name(r.Job), "a result is stored or refused", fmt.Sprintf("%d for attempt %d", status, r.Attempt))
					}
				}
				if len(r.Settled) == 2 && r.Settled[0] != r.Settled[1] {
					found(f.name(r.Job), "the same answer to the same result", fmt.Sprint(r.Settled))
				}
				if r.How == actTardy && slices.Contains(r.Settled, 200) {
					found(f.name(r.Job), "409 for a result after the deadline", fmt.Sprint(r.Settled))
				}
			}
		},
	},
}

// rounding is the difference between instants of which one has fewer digits.
const rounding = 5 * time.Millisecond

// lateness is how much later than its start an attempt may be noticed both by the witness, to which the worker's request
// travels, and by the worker's database, which subtracts the age of the attempt from the time of the settle.
const lateness = time.Second

// startOf returns the earlier of these two instants; zero: the attempt has not started.
func (f *facts) startOf(j *client.Job, a client.Attempt) (at time.Time) {
	if a.StartedAt != nil {
		at = *a.StartedAt
	}
	for _, r := range f.runs[j.JobID] {
		if r.Attempt == a.Attempt && r.Start.Before(at) {
			at = r.Start
		}
	}
	return at
}

func (f *facts) checkShownEnds(found func(_, _, _ string)) {
	for _, s := range f.Seen {
		j := f.Jobs[s.Job]
		if !terminal(s.Status) || j == nil {
			continue
		}
		for _, a := range j.Attempts {
			if at := f.startOf(j, a); a.Attempt <= s.Attempt && at.After(s.At.Add(lateness)) {
				found(f.name(s.Job), fmt.Sprintf("attempt %d does not start: the API showed %s at %s", a.Attempt, s.Status, clock(s.At)), clock(at))
			}
		}
		for _, r := range f.runs[s.Job] {
			back := slices.ContainsFunc(j.History, func(m client.Move) bool { return terminal(m.From) && m.Attempt >= s.Attempt })
			if r.Attempt > s.Attempt && !back && len(j.History) < 100 {
				found(f.name(s.Job), "no attempt without a retry: the API showed "+s.Status, fmt.Sprintf("attempt %d ran", r.Attempt))
			}
		}
	}
}

// checkDelays: an attempt that failed is followed by the next one after the delay, never before.
func (f *facts) checkDelays(found func(_, _, _ string)) {
	f.each(func(j *client.Job) {
		spec := f.spec(j.JobID)
		if spec == nil || len(f.may(j.JobID, "reschedule")) > 0 {
			return
		}
		policy := spec.Job.Policy
		for _, l := range f.lives(j) {
			failures := 0
			for i, r := range l.runs {
				failed := r.How == actFail || r.How == actDrop
				if failed {
					failures++
				}
				if i+1 == len(l.runs) || l.runs[i+1].Attempt != r.Attempt+1 || r.Cut {
					continue
				}
				least := time.Duration(r.DelayMs) * time.Millisecond
				if failed || timedOut(j, r) {
					least = delayOf(policy, 1) // at least that of the first failure
				}
				if next := l.runs[i+1].Start; (failed || r.DelayMs > 0) && settled(r) && next.Before(r.End.Add(least-rounding)) {
					found(f.name(j.JobID), fmt.Sprintf("attempt %d at least %s after the end of attempt %d, %s, at %s", r.Attempt+1, least, r.Attempt, r.How, clock(r.End)), clock(next))
				}
			}
		}
	})
}

// timedOut reports whether an attempt was over before its handler answered.
func timedOut(j *client.Job, r *Run) bool {
	return slices.ContainsFunc(j.Attempts, func(a client.Attempt) bool {
		return a.Attempt == r.Attempt && a.ErrorCode == "WORKER.TIMEOUT"
	})
}

// settled reports whether the outcome of an attempt counted, as far as its handler knows.
func settled(r *Run) bool { return !r.Pull || slices.Contains(r.Settled, 200) }

func (f *facts) checkBacks(found func(_, _, _ string)) {
	for _, list := range f.backs {
		first := map[int]int{}
		for _, b := range list {
			expected := []int{200, 409, 404}
			switch b.How {
			case backWrong:
				expected = []int{401}
			case backLate:
				// The deadline counts from the moment at which the scheduler knows that the attempt waits.
			case "same again":
				if first[b.Attempt] == 200 {
					expected = []int{200, 404} // it may have been deleted
				}
			case "another":
				expected = []int{409, 404}
			case backProgress:
			default:
				first[b.Attempt] = b.Answer
			}
			if !slices.Contains(expected, b.Answer) {
				found(f.name(b.Job), fmt.Sprintf("%v for the callback %q of attempt %d", expected, b.How, b.Attempt), fmt.Sprintf("%d %s", b.Answer, b.Code))
			}
		}
	}
}

// checkReceived: a wait that is done has its own event, once that was sent, in each attempt; and what was sent before
// the question is there.
func (f *facts) checkReceived(found func(_, _, _ string)) {
	sent := map[string]time.Time{}
	for _, e := range f.Events {
		sent[e.ID] = e.At
	}
	for id, list := range f.runs {
		for _, r := range list {
			for _, w := range r.Waits {
				at, is := sent[w.Name]
				switch {
				case w.Job != "": // callRules
				case w.Status == client.WaitDone && w.Event != w.Name:
					found(f.name(id), fmt.Sprintf("attempt %d gets the event %q", r.Attempt, w.Name), fmt.Sprintf("%q", w.Event))
				case w.Status == client.WaitTimedOut:
					found(f.name(id), fmt.Sprintf("attempt %d waits for %q without a limit", r.Attempt, w.Name), w.Status)
				case w.Status == client.WaitOpen && is && at.Before(w.Asked):
					found(f.name(id), fmt.Sprintf("attempt %d gets the event %q, which was sent at %s", r.Attempt, w.Name, clock(at)), "it waits, asked at "+clock(w.Asked))
				}
			}
		}
	}
}
