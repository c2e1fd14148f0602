package shuffle

import (
	"encoding/json"
	"time"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/retrypolicy"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

// kind is a sort of job, with its faults. The outcome of an attempt depends on how many attempts have ended before,
// not on its number, since a lost attempt does not count.
type kind struct {
	name    string
	ends    []workerdb.Outcome // in order, the last repeats; nil: it ends only by a cancel
	kills   int                // how many of its first attempts kill their worker
	request jobspec.Request
	command string // given when the job is accepted
	redrive bool   // a retry, once it has failed
	retries int    // a change sets its retries to this and runs it now; 0: no change

	reports []apibody.CallbackStatus // what an outside system reports of its attempts, in order
	early   bool                     // it reports at once after the call

	status jobstate.Status // its end
	dead   int             // dead letters
	loose  bool            // its attempts before its end are random
}

var (
	completes = workerdb.Outcome{Kind: workerdb.Completed, Output: json.RawMessage(`{"n":1}`)}
	fails     = workerdb.Outcome{Kind: jobevent.KindFailed, ErrorCode: "TEST", Message: "no", Retryable: true}
	dies      = workerdb.Outcome{Kind: jobevent.KindFailed, ErrorCode: "TEST", Message: "never"}
	handsBack = workerdb.Outcome{Kind: jobevent.KindInterrupted, Message: "no slot", Retryable: true}
	snoozes   = workerdb.Outcome{Kind: jobevent.KindSnoozed, RetryAfter: time.Millisecond, Retryable: true}
	waits     = workerdb.Outcome{Kind: workerdb.Waiting, CallbackTimeout: time.Hour}
	cancelled = workerdb.Outcome{Kind: jobevent.KindCancelled, ErrorCode: "WORKER.CANCELLED", Message: "cancelled"}
)

var kinds = []kind{
	{name: "completes", ends: outcomes(completes), status: jobstate.Completed},
	{name: "fails twice", ends: outcomes(fails, fails, completes), request: retries(3), status: jobstate.Completed},
	{name: "fails for good", ends: outcomes(fails), request: retries(2), status: jobstate.Failed, dead: 1},
	{name: "must not be retried", ends: outcomes(dies), request: retries(3), status: jobstate.Failed, dead: 1},
	{name: "loses its worker", ends: outcomes(completes), kills: 1, status: jobstate.Completed},
	{name: "kills its workers", ends: outcomes(completes), kills: 9, status: jobstate.Failed, dead: 1},
	{name: "is handed back", ends: outcomes(handsBack, fails, completes), request: retries(1), status: jobstate.Completed},
	{name: "snoozes", ends: outcomes(snoozes, snoozes, completes), status: jobstate.Completed},
	{name: "is called back", ends: outcomes(waits), reports: reports(apibody.CallbackCompleted), status: jobstate.Completed},
	{
		name: "is called back that it failed", ends: outcomes(waits), request: retries(1),
		reports: reports(apibody.CallbackFailed, apibody.CallbackCompleted), status: jobstate.Completed,
	},
	{
		name: "is called back that it failed for good", ends: outcomes(waits), request: retries(1),
		reports: reports(apibody.CallbackFailed), status: jobstate.Failed, dead: 1,
	},
	{
		name: "is called back at once", ends: outcomes(waits), reports: reports(apibody.CallbackCompleted), early: true,
		status: jobstate.Completed, loose: true,
	},
	{
		name: "is cancelled while it waits for its time", ends: outcomes(completes),
		request: jobspec.Request{Delay: time.Hour}, command: jobevent.CommandCancel, status: jobstate.Cancelled,
	},
	{
		name: "is changed while it waits for its time", ends: outcomes(fails), retries: 1,
		request: jobspec.Request{Delay: time.Hour, Spec: jobevent.Spec{MaxRetryCount: 100, RetryPolicy: retries(1).RetryPolicy}},
		status:  jobstate.Failed, dead: 1,
	},
	{name: "is cancelled while it runs", command: jobevent.CommandCancel, status: jobstate.Cancelled, loose: true},
	{
		name: "is cancelled while it fails", ends: outcomes(fails), request: retries(100),
		command: jobevent.CommandCancel, status: jobstate.Cancelled, loose: true,
	},
	{
		name: "is tried again after its end", ends: outcomes(fails, fails, fails, completes), request: retries(1),
		redrive: true, status: jobstate.Completed, dead: 1,
	},
}

func reports(list ...apibody.CallbackStatus) []apibody.CallbackStatus { return list }

func outcomes(list ...workerdb.Outcome) []workerdb.Outcome { return list }

func retries(n int) jobspec.Request {
	return jobspec.Request{Spec: jobevent.Spec{MaxRetryCount: n, RetryPolicy: &retrypolicy.Policy{Type: retrypolicy.Fixed, DelayMs: 1}}}
}

// job is an accepted job.
type job struct {
	*kind
	ended    int // attempts that their own worker settled
	redriven bool

	calledBack map[int]jobstate.Kind // by attempt: what the API has accepted; empty: the attempt was over
}

// next returns how an attempt ends, if it does.
func (j *job) next(h *held) (outcome workerdb.Outcome, ends bool) {
	switch {
	case h.cancelled:
		return cancelled, true
	case j.ends == nil:
		return workerdb.Outcome{}, false
	}
	return j.ends[min(j.ended, len(j.ends)-1)], true
}
