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

// kind is a sort of job, with what happens to it. Its attempts end by how many of the job's have ended
// before, not by their number: one that its worker has lost does not count.
type kind struct {
	name    string
	ends    []workerdb.Outcome // one after another, the last repeats; nil: only by a cancel
	kills   int                // of its first attempts, how many their worker does not survive
	request jobspec.Request
	command string // kept when the job is accepted
	redrive bool   // a retry, once it has failed
	retries int    // to how many a change brings its retries, when it is accepted, and has it run now; 0: no change

	says  []apibody.CallbackStatus // what an outside system says of attempts, one after another
	early bool                     // it does so as soon as it was called

	status jobstate.Status // its end
	dead   int             // dead letters
	loose  bool            // how far it came before its end is chance
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
	{name: "is called back", ends: outcomes(waits), says: says(apibody.CallbackCompleted), status: jobstate.Completed},
	{
		name: "is called back that it failed", ends: outcomes(waits), request: retries(1),
		says: says(apibody.CallbackFailed, apibody.CallbackCompleted), status: jobstate.Completed,
	},
	{
		name: "is called back that it failed for good", ends: outcomes(waits), request: retries(1),
		says: says(apibody.CallbackFailed), status: jobstate.Failed, dead: 1,
	},
	{
		name: "is called back at once", ends: outcomes(waits), says: says(apibody.CallbackCompleted), early: true,
		status: jobstate.Completed, loose: true,
	},
	{
		name: "is cancelled while it waits for its time", ends: outcomes(completes),
		request: jobspec.Request{Delay: time.Hour}, command: jobevent.CommandCancel, status: jobstate.Cancelled,
	},
	{
		name: "is changed while it waits for its time", ends: outcomes(fails), retries: 1,
		request: jobspec.Request{Delay: time.Hour, MaxRetryCount: 100, RetryPolicy: retries(1).RetryPolicy},
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

func says(list ...apibody.CallbackStatus) []apibody.CallbackStatus { return list }

func outcomes(list ...workerdb.Outcome) []workerdb.Outcome { return list }

func retries(n int) jobspec.Request {
	return jobspec.Request{MaxRetryCount: n, RetryPolicy: &retrypolicy.Policy{Type: retrypolicy.Fixed, DelayMs: 1}}
}

// job is one that was accepted.
type job struct {
	*kind
	ended    int // attempts that were settled by their own worker
	redriven bool

	calledBack map[int]jobstate.Kind // by attempt: what the API has taken; empty: it was over
}

// next is how an attempt ends, if it does.
func (j *job) next(h *held) (outcome workerdb.Outcome, ends bool) {
	switch {
	case h.cancelled:
		return cancelled, true
	case j.ends == nil:
		return workerdb.Outcome{}, false
	}
	return j.ends[min(j.ended, len(j.ends)-1)], true
}
