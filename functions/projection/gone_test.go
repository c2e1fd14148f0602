package projection_test

import (
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/apidb"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/projection"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// The event that a job is deleted can arrive before the event that it has ended, or alone.
func TestTheEndOfADeletedJobIsCountedOnce(t *testing.T) {
	t.Parallel()
	for name, order := range map[string][]string{
		"the end first": {"end", "deleted"}, "the deletion first": {"deleted", "end"}, "the deletion alone": {"deleted"},
		"the deletion twice": {"deleted", "deleted", "end"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t)
			jobID := h.accept(func(r *jobspec.Request) { r.CallbackURL = "https://example.org/ended" }).Subject()
			gone := deleted(t, jobID, 4)
			jobevent.SetEnd(&gone, jobevent.End{Status: string(jobstate.Failed), At: time.Now(), Attempt: 2, ErrorCode: "A.B"})
			events := map[string]jobevent.Item{
				"deleted": gone,
				"end": status(t, jobID, 3, jobstate.Failed, func(s *jobevent.Status) {
					s.Attempt, s.LastError = 2, &jobevent.Error{ErrorCode: "A.B"}
				}),
			}
			for _, which := range order {
				if _, err := h.Handle(t.Context(), []jobevent.Item{events[which]}); err != nil {
					t.Fatal(err)
				}
			}
			id := uuid.MustParse(jobID)
			if n := h.count("jobs where job_id = $1", id); n != 0 {
				t.Error("the job is still there")
			}
			if n := h.count(`deliveries where job_id = $1 and version = 3 and status = 'PENDING' and job_status = 'FAILED'
				and (job ->> 'attempt')::int = 2 and snapshot::json -> 'lastError' ->> 'errorCode' = 'A.B'`, id); n != 1 {
				t.Errorf("%d deliveries of its end", n)
			}
			if n := h.count("tally_entries where what = 'FAILED' and n = 1"); n != 1 {
				t.Errorf("its end is counted %d times", n)
			}
		})
	}
}

func TestTooShortRetentionsAreRefused(t *testing.T) {
	t.Parallel()
	if _, err := projection.New(projection.Config{Cancelled: 23 * time.Hour}, nil); err == nil {
		t.Error("23 h are enough")
	}
	if _, err := projection.New(projection.Config{Audit: 719 * time.Hour}, nil); err == nil {
		t.Error("719 h of the audit log are enough")
	}
	if _, err := projection.New(projection.Config{Cancelled: 24 * time.Hour, Audit: 720 * time.Hour}, new(apidb.Store)); err != nil {
		t.Error(err)
	}
}
