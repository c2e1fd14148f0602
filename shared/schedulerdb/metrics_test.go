package schedulerdb

import (
	"crypto/rand"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/dispatch"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

func TestTransitionsOfRedeliveredEventsAreCountedOnce(t *testing.T) {
	h := newFixture(t)
	jobs := newJobs(4)
	jobType := rand.Text() // used by this test only
	for i := range jobs {
		jobs[i].JobType, jobs[i].MaxRetryCount = jobType, 1
	}
	h.ingest(jobs...)
	fails := ended(jobs[2], 1, jobstate.KindFailed)
	fails.ErrorCode, fails.Retryable = "X", true
	for range 3 {
		h.settle(completed(jobs[0], 1), completed(jobs[1], 1), fails)
		h.order(jobs[3], 1, jobevent.CommandCancel)
	}
	dies := ended(jobs[3], 1, jobstate.KindFailed)
	dies.ErrorCode = "X"
	for range 2 {
		h.settle(dies)
	}
	answer := httptest.NewRecorder()
	telemetry.MetricsHandler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	for state, n := range map[jobstate.Status]int{jobstate.Completed: 2, jobstate.Retrying: 1, jobstate.Cancelled: 1} {
		want := fmt.Sprintf("jobweaver_job_transitions_total{job_type=%q,state=%q} %d\n", jobType, state, n)
		if !strings.Contains(answer.Body.String(), want) {
			t.Errorf("no %s", want)
		}
	}
	if strings.Contains(answer.Body.String(), fmt.Sprintf("job_transitions_total{job_type=%q,state=%q}", jobType, jobstate.Failed)) {
		t.Error("a cancelled job has failed")
	}
}

func TestACountHasTheWaitingJobsAndTheAttemptsThatAreOut(t *testing.T) {
	h := newFixture(t)
	h.ingest(newJobs(dispatch.MaxUnserved + 3)...)
	h.tamper("update jobs set rank = rank - interval '1 hour' where status = 'PENDING'")
	late := newJob()
	late.RunAt = new(time.Now().Add(time.Hour))
	h.ingest(late)
	h.tamper("update jobs set due_at = now() - interval '1 minute' where job_id = $1", late.JobID)
	counted, err := h.Count(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f := counted.Figures()
	queue := jobevent.DefaultQueue
	if f.InFlight[queue] != dispatch.MaxUnserved || f.Waited[queue] < time.Hour || f.Waited[queue] > 2*time.Hour ||
		f.Late < time.Minute || f.Late > time.Hour || time.Since(f.At) > time.Minute {
		t.Errorf("the figures are %+v", f)
	}
}
