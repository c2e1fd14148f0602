package interplay

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/client"
)

// returned plants into the last answer about a call that has completed, of a job that was given no command, with all
// of its earlier answers and the job that was called.
func returned(plant func(f *facts, caller, child *client.Job, r *Run, w *WaitSeen)) func(*facts) bool {
	return func(f *facts) bool {
		return anyJob(f, func(caller *client.Job) bool {
			commands := len(f.may(caller.JobID, "retry")) + len(f.may(caller.JobID, "reschedule")) + len(f.may(caller.JobID, "patch"))
			list := f.runs[caller.JobID]
			if commands > 0 || len(list) < 2 || caller.Status != client.Completed || len(f.lives(caller)) != 1 {
				return false
			}
			r := list[len(list)-1]
			i := slices.IndexFunc(r.Waits, func(w WaitSeen) bool {
				child := f.Jobs[w.Job]
				return w.Ended == client.Completed && child != nil && !f.retriedByHand(w.Job) && witnessed(child) && len(f.runs[w.Job]) > 0
			})
			if i < 0 || list[len(list)-2].How != actCall || !slices.Contains(list[len(list)-2].Settled, 200) {
				return false
			}
			plant(f, caller, f.Jobs[r.Waits[i].Job], r, &r.Waits[i])
			return true
		})
	}
}

// pulled plants into an attempt of a pull worker whose success was stored.
func pulled(plant func(*client.Attempt, *Run)) func(*facts) bool {
	return ran(func(_ *facts, j *client.Job, r *Run) {
		r.Pull, r.Settled = true, []int{200}
		plant(&j.Attempts[0], r)
	})
}

var plantedCalls = map[string]func(*facts) bool{
	"called once": returned(func(f *facts, _, child *client.Job, _ *Run, _ *WaitSeen) {
		second := *child
		second.JobID = "another " + child.JobID
		f.Jobs[second.JobID] = &second
	}),
	"returned": returned(func(_ *facts, _, _ *client.Job, _ *Run, w *WaitSeen) {
		w.Output = json.RawMessage(`{"from": "another job", "attempt": 1}`)
	}),
	"kept": returned(func(_ *facts, _, _ *client.Job, r *Run, w *WaitSeen) {
		again := *w
		again.Output = nil
		r.Waits = append(r.Waits, again)
	}),
	"child failed": returned(func(_ *facts, _, _ *client.Job, r *Run, _ *WaitSeen) {
		r.How, r.Settled = childFailed, []int{200}
	}),
	"called again": returned(func(f *facts, caller, _ *client.Job, r *Run, w *WaitSeen) {
		list := f.runs[caller.JobID]
		before := list[len(list)-2]
		before.Waits = []WaitSeen{{Name: w.Name, Job: w.Job, Ended: client.Failed}}
		for i, m := range caller.History { // the last attempt follows a retry
			if m.Attempt == r.Attempt {
				end := client.Move{At: m.At, From: m.From, To: client.Failed, Attempt: before.Attempt}
				retry := client.Move{At: m.At, From: client.Failed, To: client.Pending, Attempt: before.Attempt, Reason: "retry"}
				caller.History = slices.Insert(caller.History, i, end, retry)
				break
			}
		}
	}),
	"called off": returned(func(_ *facts, caller, child *client.Job, _ *Run, _ *WaitSeen) {
		end := caller.History[len(caller.History)-1].At
		child.History = append(child.History, client.Move{At: end.Add(time.Hour), From: client.Pending, To: client.Queued, Attempt: 9})
	}),
	"called off by an end": returned(func(_ *facts, caller, child *client.Job, _ *Run, _ *WaitSeen) {
		child.History = append(child.History, client.Move{At: caller.History[0].At, To: client.Cancelled, By: "wait", Reason: "cancel"})
	}),
	"of its caller": returned(func(_ *facts, _, child *client.Job, _ *Run, _ *WaitSeen) { child.TraceID = "another" }),
	"no slot": returned(func(_ *facts, caller, _ *client.Job, r *Run, _ *WaitSeen) {
		for i := range caller.Attempts {
			if caller.Attempts[i].Attempt == r.Attempt-1 {
				caller.Attempts[i].Outcome = ""
			}
		}
	}),
	"together": returned(func(f *facts, caller, _ *client.Job, _ *Run, w *WaitSeen) {
		w.Status = client.WaitOpen
		list := f.runs[caller.JobID]
		list[len(list)-2].Waits = []WaitSeen{*w}
	}),
	"woken": returned(func(f *facts, caller, _ *client.Job, _ *Run, _ *WaitSeen) {
		caller.Status = client.Scheduled
		f.Open = append(f.Open, caller)
	}),
	"own alerts": ran(func(f *facts, _ *client.Job, _ *Run) {
		f.Alerts = []AlertAsked{{Failures: 1}}
		f.Notices = []*NoticeSeen{{State: "FIRING", Alert: f.Base + "-" + alertName, OwnerID: f.Other, Failures: 1, Failed: 1}}
	}),
	"alerted": ran(func(f *facts, j *client.Job, _ *Run) {
		first := &NoticeSeen{NoticeID: "1", State: "FIRING", Since: j.CreatedAt, Failures: 1, Failed: 1}
		second := *first
		second.NoticeID = "2"
		f.Notices = []*NoticeSeen{first, &second}
	}),
	"stored":        pulled(func(a *client.Attempt, _ *Run) { a.Outcome = "failed" }),
	"settled alone": pulled(func(a *client.Attempt, r *Run) { a.Outcome, r.With = "failed", 2 }),
}

// Both causes of a FAILED caller are compared: that of the witness, and that of the API.
func TestAJobThatHasNoFailedCallDoesNotFailWithItsCode(t *testing.T) {
	t.Parallel()
	for how, wrong := range map[string]bool{childFailed: false, actFail: true} {
		r := &Record{
			Jobs: map[string]*client.Job{"job": {
				JobID: "job", Status: client.Failed, Attempt: 1, LastError: &client.Failure{ErrorCode: string(apierror.ChildFailed)},
				History: []client.Move{{To: client.Queued, Attempt: 1}, {From: client.Queued, To: client.Failed, Attempt: 1}},
			}},
			Runs: []*Run{{Job: "job", Attempt: 1, How: how, Settled: []int{200}, Waits: []WaitSeen{{Name: "x", Job: "child"}}}},
		}
		if breaks(r, "child failed") != wrong {
			t.Errorf("a violation after an attempt that ended as %q: %v, want %v", how, !wrong, wrong)
		}
	}
}
