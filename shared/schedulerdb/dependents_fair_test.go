package schedulerdb

import (
	"testing"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/dispatch"
)

func TestADependentDoesNotWaitForThoseOfAnotherJob(t *testing.T) {
	h := newFixture(t)
	many, few, dependent := newJob(), newJob(), newJob()
	dependent.After, dependent.OwnerID = []uuid.UUID{few.JobID}, "quiet"
	crowd := newJobs(3 * dispatch.MaxReleases)
	for i := range crowd {
		crowd[i].After = []uuid.UUID{many.JobID}
	}
	h.ingest(many, few)
	h.ingest(crowd...)
	h.ingest(dependent)
	h.settle(completed(many, 1))
	h.settle(completed(few, 1))
	if waits := h.count("jobs WHERE owner_id = 'quiet' AND blocked_by IS NOT NULL"); waits != 0 {
		t.Error("it still waits")
	}
	if left := h.count("jobs WHERE blocked_by = 'dependency'"); left < dispatch.MaxReleases {
		t.Fatalf("only %d others wait", left)
	}
	for range 10 {
		effects, _, err := h.Due(t.Context(), 0)
		h.must(effects, err)
	}
	if left := h.count("jobs WHERE blocked_by = 'dependency'"); left != 0 {
		t.Errorf("%d others still wait", left)
	}
}
