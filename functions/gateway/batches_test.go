package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/batchstore"
	"github.com/jobweaver/jobweaver/shared/apidb/schedulestore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

type batchView struct {
	BatchID       uuid.UUID
	Name, OwnerID *string
	Status        string
	Percent       *int
	Total         *int
	Counts        map[string]int
	FinishedAt    *time.Time
	FollowUpJobID *uuid.UUID
	OperationID   uuid.UUID
}

// batch creates a batch.
func (c *client) batch(body string) (b batchView) {
	c.t.Helper()
	r := c.post("/api/batches", body).want(http.StatusCreated)
	if r.into(&b); r.header.Get("Location") != "/api/batches/"+b.BatchID.String() {
		c.t.Errorf("it is at %s", r.header.Get("Location"))
	}
	return b
}

func (c *client) readBatch(id uuid.UUID, query string) (b batchView) {
	c.t.Helper()
	c.get("/api/batches/" + id.String() + query).want(http.StatusOK).into(&b)
	return b
}

// sweep ends what has ended, as cron does.
func (h *fixture) sweep() {
	h.t.Helper()
	rules := schedulestore.Rules{Rules: jobspec.Rules{Queues: []string{"default"}, JobTypes: []string{"MAIL"}}}
	swept, _, err := h.store.Batches.Sweep(h.t.Context(), rules, time.Minute)
	if err != nil || len(swept.Failed) > 0 {
		h.t.Fatal(err, swept.Failed)
	}
}

func inBatch(id uuid.UUID, more string) string {
	return fmt.Sprintf(`{"jobType": "MAIL", "payload": 1, "batchId": %q%s}`, id, more)
}

func TestABatchIsFilledClosedAndFollowed(t *testing.T) {
	t.Parallel()
	h := open(t)
	made := h.batch(`{"name": "import", "jobs": [{"jobType": "MAIL", "payload": 1}], "expiresAt": "2035-01-01T00:00:00Z",
		"onComplete": {"jobType": "MAIL", "payload": {"of": {"$batch": "summary"}}}}`)
	if made.Status != "OPEN" {
		t.Errorf("it is %s", made.Status)
	}
	h.post("/api/jobs", inBatch(made.BatchID, "")).want(http.StatusAccepted)
	h.post("/api/jobs/batch", `{"jobs": [`+inBatch(made.BatchID, "")+`]}`).want(http.StatusOK)
	h.post("/events", envelope("in-batch", submitType, inBatch(made.BatchID, "")), "Content-Type", structuredType).want(http.StatusAccepted)
	h.post("/events?jobType=MAIL&batchId="+made.BatchID.String(), "1", "Ce-Specversion", "1.0", "Ce-Id", "b", "Ce-Source", "s", "Ce-Type", "t",
		"Content-Type", "application/json").want(http.StatusAccepted)
	var list struct {
		Jobs []struct {
			JobID   uuid.UUID
			BatchID *uuid.UUID
		}
	}
	h.get("/api/jobs?batchId=" + made.BatchID.String()).want(http.StatusOK).into(&list)
	if len(list.Jobs) != 5 {
		t.Fatalf("it has %d jobs", len(list.Jobs))
	}
	for i, job := range list.Jobs {
		if job.BatchID == nil || *job.BatchID != made.BatchID || i > 0 && job.JobID.String() > list.Jobs[i-1].JobID.String() {
			t.Errorf("job %d is %v of %v", i, job.JobID, job.BatchID)
		}
	}
	h.scheduler(list.Jobs[0].JobID, 1, jobstate.Completed, nil)
	if b := h.readBatch(made.BatchID, ""); *b.Percent != 20 || *b.Total != 5 || b.Counts["PENDING"] != 4 || b.Counts["COMPLETED"] != 1 {
		t.Errorf("it shows %+v", b)
	}
	for range 2 {
		var closed batchView
		h.post("/api/batches/"+made.BatchID.String()+"/close", "").want(http.StatusOK).into(&closed)
		if closed.Status != "RUNNING" {
			t.Errorf("it is %s", closed.Status)
		}
	}
	for _, job := range list.Jobs[1:] {
		h.scheduler(job.JobID, 1, jobstate.Completed, nil)
	}
	ended := make(chan batchView, 1)
	go func() { ended <- h.readBatch(made.BatchID, "?wait=30s") }()
	h.sweep()
	b := <-ended
	if b.Status != "COMPLETED" || *b.Percent != 100 || b.FollowUpJobID == nil {
		t.Fatalf("it has ended as %+v", b)
	}
	var followed struct {
		Payload struct{ Of batchView }
		BatchID *uuid.UUID
	}
	h.get("/api/jobs/" + b.FollowUpJobID.String()).want(http.StatusOK).into(&followed)
	if of := followed.Payload.Of; of.BatchID != made.BatchID || of.Status != "COMPLETED" || *of.Total != 5 || followed.BatchID != nil {
		t.Errorf("the job that follows got %+v", followed)
	}
	h.post("/api/batches/"+made.BatchID.String()+"/cancel", "").wantError(apierror.InvalidStateTransition)
	h.post("/api/batches/"+made.BatchID.String()+"/retry", "").wantError(apierror.InvalidStateTransition)
	var page struct{ Batches []batchView }
	h.get("/api/batches?status=COMPLETED").want(http.StatusOK).into(&page)
	if len(page.Batches) != 1 || *page.Batches[0].Name != "import" || page.Batches[0].Counts["COMPLETED"] != 5 {
		t.Errorf("the list is %+v", page)
	}
}

func TestAClosedBatchTakesNoJobsButRepeatsOfItsOwn(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.batch(`{}`).BatchID
	known := inBatch(id, `, "idempotencyKey": "k"`)
	first := h.post("/api/jobs", known).want(http.StatusAccepted).jobID()
	h.post("/api/batches/"+id.String()+"/close", "").want(http.StatusOK)
	h.post("/api/jobs", inBatch(id, "")).wantError(apierror.BatchClosed, "batchId")
	h.post("/api/jobs", inBatch(id, `, "orderingKey": "o"`)).wantError(apierror.BatchClosed, "batchId")
	if again := h.post("/api/jobs", known).want(http.StatusOK).jobID(); again != first {
		t.Errorf("the repeated request returned %s", again)
	}
	var batch struct {
		Results []struct {
			Status int
			Error  struct{ ErrorCode string }
		}
	}
	h.post("/api/jobs/batch", `{"jobs": [`+inBatch(id, "")+`, {"jobType": "MAIL", "payload": 1}, `+inBatch(uuid.New(), "")+`]}`).
		want(http.StatusOK).into(&batch)
	if r := batch.Results; r[0].Status != 409 || r[0].Error.ErrorCode != "API.BATCH_CLOSED" || r[1].Status != 202 || r[2].Status != 404 {
		t.Errorf("the results are %+v", r)
	}
	h.post("/events", envelope("late", submitType, inBatch(id, "")), "Content-Type", structuredType).
		wantError(apierror.InvalidEvent, "data.batchId")
}

func TestABatchIsAcceptedWholeOrRefusedWithThePath(t *testing.T) {
	t.Parallel()
	h := open(t)
	const job = `{"jobType": "MAIL", "payload": 1}`
	for body, path := range map[string]string{
		`{"jobs": [` + job + `, {"jobType": "MAIL"}]}`:                                                       "jobs[1].payload",
		`{"jobs": [` + job + `, {"jobType": "NONE", "payload": 1}]}`:                                         "jobs[1].jobType",
		`{"jobs": [` + inBatch(uuid.New(), "") + `]}`:                                                        "jobs[0].batchId",
		`{"ownerId": "acme", "jobs": [{"jobType": "MAIL", "payload": 1, "ownerId": "other"}]}`:               "jobs[0].ownerId",
		fmt.Sprintf(`{"jobs": [`+job+`, {"jobType": "MAIL", "payload": 1, "after": [%q]}]}`, uuid.New()):     "jobs[1].after[0]",
		`{"onComplete": {"jobType": "MAIL", "payload": {"a": [{"$batch": "sum"}]}}}`:                         `onComplete.payload.a[0]["$batch"]`,
		`{"onComplete": {"jobType": "MAIL", "payload": {"$batch": "summary", "b": 1}}}`:                      `onComplete.payload["$batch"]`,
		`{"onFailure": {"jobType": "MAIL", "payload": 1, "runAt": "2035-01-01T00:00:00Z"}}`:                  "onFailure.runAt",
		`{"onFailure": {"jobType": "MAIL", "payload": 1, "queue": "none"}}`:                                  "onFailure.queue",
		`{"onFailure": {"jobType": "SIMULATION", "payload": {"steps": [], "batch": {"$batch": "summary"}}}}`: "onFailure.payload.batch",
		`{"onFailure": []}`:                     "onFailure",
		`{"expiresAt": "2020-01-01T00:00:00Z"}`: "expiresAt",
		`{"name": ""}`:                          "name",
		`{"closed": 1}`:                         "closed",
		`{"close": true}`:                       "close",
		`{"jobs": {}}`:                          "jobs",
	} {
		r := h.post("/api/batches", body)
		if r.status != http.StatusBadRequest || !strings.Contains(string(r.body), fmt.Sprintf(`"path":%q`, path)) {
			t.Errorf("%s: %d %s", body, r.status, r.body)
		}
	}
	if n := h.rows(); n != 0 {
		t.Errorf("%d jobs are stored", n)
	}
	h.get("/api/batches?status=NONE").wantError(apierror.InvalidJobRequest, "status")
	h.get("/api/batches/none").wantError(apierror.BatchNotFound)
	h.post("/api/jobs", `{"jobType": "MAIL", "payload": 1, "batchId": "none"}`).wantError(apierror.InvalidJobRequest, "batchId")
	h.post("/api/jobs", `{"jobType": "MAIL", "payload": 1, "batchId": "00000000-0000-0000-0000-000000000000"}`).
		wantError(apierror.InvalidJobRequest, "batchId")
}

func TestARepeatedCreationReturnsTheSameBatch(t *testing.T) {
	t.Parallel()
	h := open(t)
	at := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	body := `{"jobs": [{"jobType": "MAIL", "payload": 1}], "closed": true, "expiresAt": "` + at + `"}`
	var first, again batchView
	h.post("/api/batches", body, "Idempotency-Key", "k").want(http.StatusCreated).into(&first)
	r := h.post("/api/batches", strings.ReplaceAll(body, " ", "\n"), "Idempotency-Key", "k").want(http.StatusOK)
	if r.into(&again); again.BatchID != first.BatchID || r.header.Get("Idempotent-Replayed") != "true" || h.rows() != 1 {
		t.Errorf("it returned %+v for %+v; there are %d jobs", again, first, h.rows())
	}
	h.post("/api/batches", `{"idempotencyKey": "k"}`).wantError(apierror.IdempotencyConflict)
}

func TestABatchIsItsOwnersAlone(t *testing.T) {
	t.Parallel()
	h := openLocked(t)
	acme, other, all := h.as("acme", "operate"), h.as("other", "operate"), h.as("", "admin")
	id := acme.batch(`{"ownerId": "other", "jobs": [{"jobType": "MAIL", "payload": 1}],
		"onFailure": {"jobType": "MAIL", "payload": 2}}`).BatchID
	at := "/api/batches/" + id.String()
	for name, refused := range map[string]*response{
		"read": other.get(at), "close": other.post(at+"/close", ""), "cancel": other.post(at+"/cancel", ""), "retry": other.post(at+"/retry", ""),
		"job": other.post("/api/jobs", inBatch(id, "")), "job of all": all.post("/api/jobs", inBatch(id, "")),
	} {
		t.Log(name)
		refused.wantError(apierror.BatchNotFound)
	}
	for want, listed := range []*response{other.get("/api/batches"), all.get("/api/batches", "X-Owner-Id", "acme")} {
		var page struct{ Batches []batchView }
		if listed.want(http.StatusOK).into(&page); len(page.Batches) != want {
			t.Errorf("the list has %d batches, not %d", len(page.Batches), want)
		}
	}
	if b := acme.readBatch(id, ""); *b.OwnerID != "acme" || *b.Total != 1 {
		t.Errorf("it is %+v", b)
	}
	var list struct{ Jobs []struct{ OwnerID string } }
	other.get("/api/jobs?batchId=" + id.String()).want(http.StatusOK).into(&list)
	if len(list.Jobs) != 0 {
		t.Errorf("another owner lists %v", list.Jobs)
	}
	submitter := h.as("acme", "submit")
	own := submitter.batch(`{}`).BatchID
	submitter.post("/api/jobs", inBatch(own, "")).want(http.StatusAccepted)
	submitter.post("/api/batches/"+own.String()+"/close", "").want(http.StatusOK)
	submitter.get("/api/batches/" + own.String()).wantError(apierror.Forbidden)
	submitter.post("/api/batches/"+own.String()+"/cancel", "").wantError(apierror.Forbidden)
	if actions := h.audited(t, "batch/"+id.String()); actions != "batch.create" {
		t.Errorf("the audit log has %q", actions)
	}
}

// audited returns the actions in the audit log about a resource.
func (h *fixture) audited(t *testing.T, resource string) (actions string) {
	t.Helper()
	h.sql("select coalesce(string_agg(action, ' ' order by audit_id), '') from audit_log where resource = $1", &actions, resource)
	return actions
}

func TestCancelAndRetryOfABatchAreOperations(t *testing.T) {
	t.Parallel()
	h := openLocked(t)
	c := h.as("acme", "operate")
	id := c.batch(`{"jobs": [{"jobType": "MAIL", "payload": 1}, {"jobType": "MAIL", "payload": 2}],
		"onFailure": {"jobType": "MAIL", "payload": 3}}`).BatchID
	at := "/api/batches/" + id.String()
	outside := c.post("/api/jobs", `{"jobType": "MAIL", "payload": 1}`).want(http.StatusAccepted).jobID()
	var op batchView
	r := c.post(at+"/cancel", "").want(http.StatusAccepted)
	if r.into(&op); r.header.Get("Location") != "/api/operations/"+op.OperationID.String() {
		t.Errorf("the operation is at %s", r.header.Get("Location"))
	}
	h.work(op.OperationID)
	var running operation
	c.get("/api/operations/" + op.OperationID.String()).want(http.StatusOK).into(&running)
	if running.Progress.Asked != 2 || !strings.Contains(string(running.Filter), id.String()) {
		t.Errorf("the operation is %+v", running)
	}
	if b := c.readBatch(id, ""); b.Status != "RUNNING" {
		t.Errorf("a cancelled batch is %s", b.Status)
	}
	if job, err := h.store.Jobs.Job(t.Context(), apidb.Everyone, outside); err != nil || job.CancelRequestedAt != nil {
		t.Errorf("a job of no batch is cancelled, %v", err)
	}
	h.sql("delete from commands", nil)
	h.sql("update jobs set status = 'CANCELLED', version = 1, snapshot = '{}' where batch_id is not null", nil)
	h.sql("update operations set status = 'COMPLETED', finished_at = now()", nil)
	h.sweep()
	b := c.readBatch(id, "")
	if b.Status != string(batchstore.Cancelled) || b.FollowUpJobID == nil {
		t.Fatalf("it has ended as %+v", b)
	}
	c.post(at+"/retry", "").want(http.StatusAccepted).into(&op)
	h.sweep()
	if again := c.readBatch(id, ""); again.Status != "RUNNING" || again.FollowUpJobID != nil {
		t.Errorf("a batch whose jobs are about to run again is %+v", again)
	}
	if actions := h.audited(t, "batch/"+id.String()); actions != "batch.create batch.cancel batch.retry" {
		t.Errorf("the audit log has %q", actions)
	}
}
