package gateway_test

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

type deliveriesShown struct {
	Deliveries []struct {
		ID, URL, Status, JobStatus string
		JobID                      uuid.UUID
		Version, Tries             int
		LastAnswer                 *int
		LastError                  *string
	}
	NextCursor *string
}

const callingJob = `{"jobType": "SIMULATION", "payload": {"steps": [{"type": "LOG", "message": "hi"}]},
	"callbackUrl": "https://example.org/done"}`

func TestDeliveriesAreShownAndRetried(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.submit(callingJob)
	var job struct{ CallbackURL *string }
	h.get("/api/jobs/" + id.String()).want(http.StatusOK).into(&job)
	if job.CallbackURL == nil || *job.CallbackURL != "https://example.org/done" {
		t.Errorf("shows %v", job.CallbackURL)
	}
	var shown deliveriesShown
	h.get("/api/jobs/" + id.String() + "/deliveries").want(http.StatusOK).into(&shown)
	if len(shown.Deliveries) != 0 {
		t.Errorf("got %+v", shown)
	}
	h.scheduler(id, 3, jobstate.Completed, nil)
	h.sql(`update deliveries set status = 'FAILED', tries = 10, last_answer = 500, last_error = 'it answered 500', last_try_at = now(),
		next_at = null, finished_at = now()`, nil)
	h.get("/api/jobs/" + id.String() + "/deliveries").want(http.StatusOK).into(&shown)
	if d := shown.Deliveries[0]; d.ID != jobevent.StatusID(id, 3) || d.Status != "FAILED" || d.JobStatus != "COMPLETED" ||
		*d.LastAnswer != 500 || d.Tries != 10 || d.URL != "https://example.org/done" {
		t.Errorf("got %+v", d)
	}
	h.post("/api/jobs/"+id.String()+"/deliveries/3/retry", "").want(http.StatusAccepted)
	h.get("/api/deliveries?status=PENDING").want(http.StatusOK).into(&shown)
	if d := shown.Deliveries[0]; d.JobID != id || d.Status != "PENDING" || d.Tries != 0 || shown.NextCursor != nil {
		t.Errorf("got %+v", shown)
	}
	for _, path := range []string{"/4/retry", "/x/retry", "/99999999999999999999/retry"} {
		h.post("/api/jobs/"+id.String()+"/deliveries"+path, "").wantError(apierror.NotFound)
	}
	h.post("/api/jobs/x/deliveries/3/retry", "").wantError(apierror.JobNotFound)
	for _, none := range []string{uuid.NewString(), "x"} {
		h.get("/api/jobs/" + none + "/deliveries").wantError(apierror.JobNotFound)
	}
}

func TestDeliveriesAreListedInPages(t *testing.T) {
	t.Parallel()
	h := open(t)
	const n = 5
	for range n {
		h.scheduler(h.submit(callingJob), 3, jobstate.Cancelled, nil)
	}
	seen := map[string]bool{}
	for cursor, pages := "", 0; pages == 0 || cursor != ""; pages++ {
		path := "/api/deliveries?limit=2"
		if cursor != "" {
			path += "&cursor=" + cursor
		}
		var page deliveriesShown
		h.get(path).want(http.StatusOK).into(&page)
		for _, d := range page.Deliveries {
			seen[d.ID] = true
		}
		if cursor = ""; page.NextCursor != nil {
			cursor = *page.NextCursor
		}
		if pages > n {
			t.Fatal("it never ends")
		}
	}
	if len(seen) != n {
		t.Errorf("saw %d", len(seen))
	}
	for _, wrong := range []string{"status=X", "limit=0", "limit=201", "cursor=x", "cursor=" + uuid.NewString(), "cursor=" + uuid.NewString() + ".vx", "x=1"} {
		h.get("/api/deliveries?" + wrong).wantError(apierror.InvalidJobRequest)
	}
}

// The callback URL is part of the request that an idempotency key identifies.
func TestDifferentCallbackURLIsADifferentRequest(t *testing.T) {
	t.Parallel()
	h := open(t)
	body := func(n int) string {
		return `{"jobType": "SIMULATION", "payload": {"steps": [{"type": "LOG", "message": "hi"}]}, "idempotencyKey": "k",
			"callbackUrl": "https://example.org/` + strconv.Itoa(n) + `"}`
	}
	h.submit(body(1))
	h.post("/api/jobs", body(1)).want(http.StatusOK)
	h.post("/api/jobs", body(2)).wantError(apierror.IdempotencyConflict)
	h.post("/api/schedules", `{"name": "a", "cron": "@daily", "job": `+`{"jobType": "SIMULATION", "callbackUrl": "ftp://x/",
		"payload": {"steps": [{"type": "LOG", "message": "hi"}]}}}`).wantError(apierror.InvalidJobRequest, "job.callbackUrl")
	h.post("/events?jobType=SIMULATION&callbackUrl=http://me:it@x/", `{"steps": [{"type": "LOG", "message": "hi"}]}`,
		"Ce-Specversion", "1.0", "Ce-Id", "1", "Ce-Source", "/x", "Ce-Type", "x").wantError(apierror.InvalidJobRequest, "callbackUrl")
}
