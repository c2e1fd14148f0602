package schedulerdb

import (
	"slices"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/dispatch"
)

// The outcome of an attempt may wait a moment for others (SETTLE_LINGER), but not if a job may wait for it: for its
// slot, for the turn of its key or for its end.
func TestTheOrderOfAJobThatHasWaitedIsPrompt(t *testing.T) {
	h := newFixture(t)
	plain, awaited := newJob(), newJob()
	awaited.Awaited = true
	for _, run := range h.ingest(plain, awaited).Runs {
		if run.Prompt != (run.JobID == awaited.JobID) {
			t.Errorf("sent out at once, awaited %v: prompt %v", run.JobID == awaited.JobID, run.Prompt)
		}
	}
	h.settle(completed(plain, 1), completed(awaited, 1))

	first, second, dependent, scheduled := newJob(), newJob(), newJob(), newJob()
	first.OrderingKey, first.OrderNumber = "k", 1
	second.OrderingKey, second.OrderNumber, second.OrderAfter = "k", 2, &first.JobID
	dependent.After = append(dependent.After, first.JobID)
	soon := time.Now().Add(time.Hour)
	scheduled.RunAt = &soon
	h.ingest(first, second, dependent, scheduled)
	h.tamper("UPDATE jobs SET due_at = now() WHERE due_at IS NOT NULL")
	runs := slices.Concat(h.settle(completed(first, 1)).Runs, h.due().Runs)
	if len(runs) != 3 {
		t.Fatalf("%d attempts go out", len(runs))
	}
	for _, run := range runs {
		if !run.Prompt {
			t.Errorf("the job of type %s has waited, and is not prompt", run.JobType)
		}
	}

	full := newJobs(dispatch.MaxUnserved + 5)
	h.ingest(full...)
	after := h.settle(completed(full[0], 1), completed(full[1], 1)).Runs
	if len(after) == 0 {
		t.Error("room does not send out a job that waits for it")
	}
	for _, run := range after {
		if !run.Prompt {
			t.Error("a job that waited for room is not prompt")
		}
	}
}
