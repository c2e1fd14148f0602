package schedulerdb

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// calledBack is the outcome that the gateway publishes for a callback. It has neither the worker nor the start.
func calledBack(job jobevent.Created, attempt int, kind jobstate.Kind) Outcome {
	now := time.Now()
	o := Outcome{JobID: job.JobID, Attempt: attempt, Kind: kind, StartedAt: &time.Time{}, FinishedAt: &now}
	if kind == jobstate.KindFailed {
		o.StartedAt, o.ErrorCode, o.Message, o.Retryable = nil, "SHOP.SOLD_OUT", "none left", true
	} else {
		o.Output = json.RawMessage(`{"tracking":17}`)
	}
	return o
}

// A callback may arrive before the worker's outcome that its attempt waits.
func TestACallbackCountsInEveryStateOfItsAttempt(t *testing.T) {
	h := newFixture(t)
	began := time.Now().Add(-time.Minute).UTC().Truncate(time.Microsecond)
	for name, come := range map[string]func(jobevent.Created){
		"queued": func(jobevent.Created) {},
		"running": func(job jobevent.Created) {
			h.heartbeat("w", 100, []int32{0}, jobevent.ListedAttempt{JobID: job.JobID, Attempt: 1, StartedAt: &began})
		},
		"waiting": func(job jobevent.Created) {
			o := waiting(job)
			o.WorkerID, o.StartedAt = "w", &began
			h.settle(o)
		},
		"under a cancel": func(job jobevent.Created) { h.order(job, 1, jobevent.CommandCancel) },
	} {
		for _, kind := range []jobstate.Kind{jobstate.KindCompleted, jobstate.KindFailed} {
			job := newJob()
			h.ingest(job)
			come(job)
			before := h.status(job)
			h.settle(calledBack(job, 1, kind))
			if kind == jobstate.KindFailed && name != "waiting" { // its handler may still run
				if after := h.status(job); after.Version != before.Version {
					t.Errorf("%s: a callback made %+v of %+v", name, after, before)
				}
				continue
			}
			want := jobstate.Completed
			if kind == jobstate.KindFailed {
				want = jobstate.Retrying
			}
			got := h.wantStatus(job, want)
			last := got.History[len(got.History)-1]
			if last.Outcome != string(kind) || last.WorkerID != "" || last.StartedAt != nil || last.FinishedAt == nil {
				t.Errorf("%s, %s: %+v", name, kind, last)
			}
			if known := name == "running" || name == "waiting"; known && (got.StartedAt == nil || !got.StartedAt.Equal(began)) {
				t.Errorf("%s, %s: started at %v", name, kind, got.StartedAt)
			}
			if (kind == jobstate.KindCompleted) != (string(got.Output) == `{"tracking":17}`) || kind == jobstate.KindFailed &&
				(got.RetryCount != 1 && want == jobstate.Retrying || got.LastError.ErrorCode != "SHOP.SOLD_OUT") {
				t.Errorf("%s, %s: %+v", name, kind, got)
			}
			// Later outcomes of the worker change nothing, and neither does a second callback.
			h.settle(waiting(job), ended(job, 1, jobstate.KindLost))
			h.settle(waiting(job))
			h.settle(calledBack(job, 1, jobstate.KindCompleted), calledBack(job, 1, jobstate.KindFailed))
			if after := h.status(job); after.Version != got.Version {
				t.Errorf("%s, %s: then %+v", name, kind, after)
			}
		}
	}
}

// The callback arrives before the worker's outcome that the attempt waits.
func TestAFailedCallbackCountsOnceItsAttemptWaits(t *testing.T) {
	h := newFixture(t)
	job := newJob()
	h.ingest(job)
	if effects := h.settle(calledBack(job, 1, jobstate.KindFailed)); len(effects.Runs) != 1 || effects.Runs[0].Attempt != 1 {
		t.Fatalf("it returned %+v", effects)
	}
	h.settle(waiting(job))
	h.settle(calledBack(job, 1, jobstate.KindFailed)) // the gateway republishes it until the attempt has ended
	if got := h.wantStatus(job, jobstate.Retrying); got.RetryCount != 1 || got.LastError.ErrorCode != "SHOP.SOLD_OUT" {
		t.Errorf("%+v", got)
	}
}

func TestACallbackInOneBatchWithTheWaitingOutcomeKeepsTheStart(t *testing.T) {
	h := newFixture(t)
	began := time.Now().Add(-time.Minute).UTC().Truncate(time.Microsecond)
	for _, kind := range []jobstate.Kind{jobstate.KindCompleted, jobstate.KindFailed} {
		job := newJob()
		h.ingest(job)
		o := waiting(job)
		o.WorkerID, o.StartedAt = "w", &began
		h.settle(o, calledBack(job, 1, kind))
		got := h.status(job)
		if n := len(got.History); n != 3 || got.History[n-2].Outcome != "waiting" || got.History[n-1].Outcome != string(kind) ||
			got.StartedAt == nil || !got.StartedAt.Equal(began) {
			t.Errorf("%s: %+v", kind, got)
		}
	}
}

func TestACallbackOfALostAttemptChangesNothing(t *testing.T) {
	h := newFixture(t)
	job := newJob()
	h.ingest(job)
	h.settle(ended(job, 1, jobstate.KindLost))
	before := h.wantStatus(job, jobstate.Queued)
	h.settle(calledBack(job, 1, jobstate.KindCompleted))
	h.settle(calledBack(job, 1, jobstate.KindFailed))
	if after := h.status(job); after.Version != before.Version || after.Attempt != 2 {
		t.Errorf("%+v", after)
	}
}

func TestACallbackOfAFutureAttemptChangesNothing(t *testing.T) {
	h := newFixture(t)
	job := newJob()
	h.ingest(job)
	h.settle(calledBack(job, 2, jobstate.KindCompleted))
	h.wantStatus(job, jobstate.Queued)
}

func TestANonRetryableCallbackFailsTheJob(t *testing.T) {
	h := newFixture(t)
	job := newJob()
	h.ingest(job)
	h.settle(waiting(job))
	o := calledBack(job, 1, jobstate.KindFailed)
	o.Retryable = false
	effects := h.settle(o)
	events, err := effects.Events("outcome")
	if err != nil || len(events) != 2 || events[0].Type() != jobevent.TypeDeadLettered ||
		events[0].ID() != jobevent.DeadLetterID(job.JobID, 1) || events[1].Type() != jobevent.TypeStatus {
		t.Errorf("got %v, %v", events, err)
	}
	if got := h.wantStatus(job, jobstate.Failed); got.RetryCount != 0 || got.LastError.Message != "none left" {
		t.Errorf("%+v", got)
	}
}

// A job with a callback has started, so its expiry does not apply any more.
func TestAJobWithACallbackDoesNotExpire(t *testing.T) {
	h := newFixture(t)
	job := newJob()
	at := time.Now().Add(time.Hour)
	job.ExpiresAt = &at
	h.ingest(job)
	h.settle(waiting(job), calledBack(job, 1, jobstate.KindFailed))
	h.tamper("UPDATE jobs SET expires_at = now(), due_at = now()")
	h.due()
	if got := h.status(job); got.Attempt != 2 || got.Status != string(jobstate.Queued) {
		t.Errorf("%+v", got)
	}
}
