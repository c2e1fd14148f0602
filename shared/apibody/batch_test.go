package apibody_test

import (
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/jobspec"
)

func TestAJobThatIsWrittenAgainDoesNotGrow(t *testing.T) {
	t.Parallel()
	page := `"` + strings.Repeat("<", jobspec.MaxJobBytes/2) + `"`
	req, err := apibody.DecodeFollowUp([]byte(`{"jobType": "OWN", "payload": `+page+`}`), nil)
	if err != nil || string(req.Payload) != page {
		t.Errorf("a follow-up has %d bytes, %v", len(req.Payload), err)
	}
	s, err := apibody.DecodeSchedule([]byte(`{"cron": "@daily", "job": {"jobType": "OWN", "payload": ` + page + `, "ownerId": "a"}}`))
	if err == nil {
		err = s.Belong("b")
	}
	if err != nil || len(s.JobJSON) > jobspec.MaxJobBytes || s.Job.OwnerID != "b" {
		t.Errorf("the job of a schedule has %d bytes, %v", len(s.JobJSON), err)
	}
}
