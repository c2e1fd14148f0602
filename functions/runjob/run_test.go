package runjob

import (
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

func TestAJobRunsFromItsRecordToItsOutcome(t *testing.T) {
	h := newFixture(t)
	h.start(nil)
	run := h.run("SIMULATION", `{"steps": [{"type": "LOG", "message": "hi"}, {"type": "SLEEP", "durationMs": 20}]}`)
	h.order(run)
	e := h.outcome(run)
	completed, err := jobevent.DecodeAs[jobevent.Completed](e, jobevent.TypeCompleted)
	if err != nil {
		t.Fatal(err)
	}
	if string(completed.Output) != `{"steps":2}` || completed.FinishedAt.Sub(completed.StartedAt).Milliseconds() < 20 {
		t.Errorf("completed %+v", completed)
	}
	if e.TraceID().String() == "" || e.Subject() != run.JobID.String() {
		t.Errorf("event %v", e)
	}
}

func TestADuplicateNeverStartsAndRepeatsTheOutcome(t *testing.T) {
	h := newFixture(t)
	h.start(nil)
	run := h.run("BLOCK", "")
	h.order(run, run, run)
	h.untilStarted(run)
	h.order(run, run) // while it runs
	h.open(run)
	h.outcome(run)
	h.order(run)
	again := h.outcomes(run, 2)
	if again[0].ID() != again[1].ID() {
		t.Errorf("published %s, then %s", again[0].ID(), again[1].ID())
	}
	if n := h.startsOf(run); n != 1 {
		t.Errorf("started %d times", n)
	}
}

func TestAnAttemptOfAnUnknownTypeIsPutOff(t *testing.T) {
	h := newFixture(t)
	h.start(nil)
	run := h.run("NONE", "")
	run.Attempt = 3
	h.order(run)
	got := h.failed(run)
	if got.Kind != jobevent.KindSnoozed || got.ErrorCode != "WORKER.UNKNOWN_JOB_TYPE" ||
		!strings.Contains(got.Message, `"NONE"`) || got.RetryAfterMs != 6000 || got.StartedAt != nil {
		t.Errorf("%+v", got)
	}
}

func TestAttemptsFailWithACodeAndAMessage(t *testing.T) {
	h := newFixture(t)
	h.start(nil)
	for _, c := range []struct {
		jobType, payload, code, message string
		retryable                       bool
	}{
		{"PANIC", "", "WORKER.PANIC", "oh no", true},
		{"NIL", "", "WORKER.PANIC", "nil pointer", true},
		{"HUGE", "", "WORKER.OUTPUT_TOO_LARGE", "262144", false},
		{"SIMULATION", `{"steps": []}`, "WORKER.INVALID_PAYLOAD", "steps", false},
		{"SIMULATION", `{"steps": [{"type": "FAIL", "message": "no"}]}`, "WORKER.SIMULATION_FAILED", "no", true},
	} {
		run := h.run(c.jobType, c.payload)
		h.order(run)
		got := h.failed(run)
		if got.ErrorCode != c.code || !strings.Contains(got.Message, c.message) || got.Retryable != c.retryable ||
			got.Kind != jobevent.KindFailed || got.StartedAt == nil {
			t.Errorf("%s %s: %+v", c.jobType, c.payload, got)
		}
		if c.jobType == "PANIC" && !strings.Contains(got.Message, "fixture_test.go") {
			t.Errorf("no stack: %s", got.Message)
		}
	}
}
