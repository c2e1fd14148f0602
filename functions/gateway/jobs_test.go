package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

func TestJobIsAcceptedAndPublished(t *testing.T) {
	t.Parallel()
	h := open(t)
	trace := uuid.New()
	r := h.post("/api/jobs", `{"jobType": "SIMULATION", "payload": {"steps": [{"type": "SLEEP", "durationMs": 5}]},
		"maxRetryCount": 7, "retryPolicy": {"type": "fixed", "delayMs": 5}, "queue": "mail", "priority": 4,
		"timeoutMs": 1234, "tags": ["a", "b"], "ownerId": "acme"}`, "X-Trace-Id", trace.String())
	r.want(http.StatusAccepted)
	id := r.jobID()
	if got := r.header.Get("Location"); got != "/api/jobs/"+id.String() {
		t.Errorf("Location %q", got)
	}
	var accepted struct{ TraceID, Status string }
	if r.into(&accepted); accepted.TraceID != trace.String() || accepted.Status != "PENDING" {
		t.Errorf("accepted as %s", r.body)
	}
	e := h.broker.next(t)
	if e.ID() != jobevent.CreatedID(id) || e.Type() != jobevent.TypeCreated || e.Source() != "/jobweaver/gateway" ||
		e.TraceID() != trace {
		t.Errorf("got %s", e)
	}
	created, err := jobevent.Decode[jobevent.Created](e)
	if err != nil {
		t.Fatal(err)
	}
	if created.JobID != id || created.Queue != "mail" || created.Priority != 4 || created.MaxRetryCount != 7 ||
		created.TimeoutMs != 1234 || created.RetryPolicy.DelayMs != 5 || created.OwnerID != "acme" || created.CreatedAt.IsZero() {
		t.Errorf("got %+v", created)
	}
	var job map[string]any
	h.get("/api/jobs/" + id.String()).want(http.StatusOK).into(&job)
	for name, want := range map[string]any{
		"status": "PENDING", "queue": "mail", "ownerId": "acme", "version": 0.0, "attempt": 0.0, "runAt": nil,
		"nextRunAt": nil, "startedAt": nil, "output": nil, "lastError": nil, "progress": nil, "traceId": trace.String(),
	} {
		if job[name] != want {
			t.Errorf("%s is %v, want %v", name, job[name], want)
		}
	}
}

func TestJobForLaterIsScheduled(t *testing.T) {
	t.Parallel()
	h := open(t)
	runAt := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	for _, when := range []string{`"runAt": "` + runAt + `"`, `"delayMs": 3600000`} {
		r := h.post("/api/jobs", strings.Replace(plainJob, "{", "{"+when+",", 1)).want(http.StatusAccepted)
		var job struct {
			Status           string
			RunAt, NextRunAt *time.Time
			CreatedAt        time.Time
		}
		h.get("/api/jobs/" + r.jobID().String()).into(&job)
		if job.Status != "SCHEDULED" || job.RunAt == nil || job.NextRunAt == nil || job.RunAt.Before(job.CreatedAt.Add(59*time.Minute)) {
			t.Errorf("%s: %+v", when, job)
		}
	}
}

func TestRepeatedKeyGetsTheSameAnswer(t *testing.T) {
	t.Parallel()
	h := open(t)
	body := strings.Replace(plainJob, "{", `{"idempotencyKey": "k", `, 1)
	first := h.post("/api/jobs", body).want(http.StatusAccepted)
	again := h.post("/api/jobs", strings.ReplaceAll(body, " ", "  ")).want(http.StatusOK)
	if string(again.body) != string(first.body) || again.header.Get("Idempotent-Replayed") != "true" ||
		again.header.Get("Location") != first.header.Get("Location") {
		t.Errorf("again: %v %s", again.header, again.body)
	}
	if first.header.Get("Idempotent-Replayed") != "" {
		t.Error("the first response is marked as replayed")
	}
	other := h.post("/api/jobs", strings.Replace(body, "hi", "ho", 1))
	other.wantError(apierror.IdempotencyConflict)
	if id := other.error().JobID; id == nil || *id != first.jobID() {
		t.Errorf("the conflict is with job %v", id)
	}
	if n := h.rows(); n != 1 {
		t.Errorf("%d jobs", n)
	}
}

func TestBatchAcceptsTheValidJobs(t *testing.T) {
	t.Parallel()
	h := open(t)
	keyed := strings.Replace(plainJob, "{", `{"idempotencyKey": "k", `, 1)
	h.submit(strings.Replace(plainJob, "{", `{"idempotencyKey": "taken", `, 1))
	r := h.post("/api/jobs/batch", `{"jobs": [`+strings.Join([]string{
		plainJob, `{"jobType": "SIMULATION"}`, keyed, keyed, `7`,
		strings.Replace(keyed, "hi", "ho", 1), strings.Replace(plainJob, "{", `{"queue": "no", `, 1),
		`{"jobType": "MAIL", "payload": "` + strings.Repeat("x", 600<<10) + `"}`,
	}, ",")+`]}`).want(http.StatusOK)
	var body struct {
		Results []struct {
			Status int
			JobID  uuid.UUID
			Error  errorBody
		}
	}
	r.into(&body)
	var got []int
	for _, result := range body.Results {
		got = append(got, result.Status)
	}
	if want := []int{202, 400, 202, 200, 400, 409, 400, 413}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("got %v, want %v: %s", got, want, r.body)
	}
	if body.Results[3].JobID != body.Results[2].JobID {
		t.Error("the same key in one batch is two jobs")
	}
	if d := body.Results[6].Error.Details; len(d) != 1 || d[0].Path != "queue" {
		t.Errorf("details %v", d)
	}
	if n := h.rows(); n != 3 {
		t.Errorf("%d jobs", n)
	}
	for range 3 {
		h.broker.next(t)
	}
	if len(h.broker.published) != 0 {
		t.Error("a job was published twice")
	}
}

func TestBatchOfAThousandJobsIsAccepted(t *testing.T) {
	t.Parallel()
	h := open(t)
	jobs := make([]string, 1000)
	for i := range jobs {
		jobs[i] = plainJob
	}
	h.post("/api/jobs/batch", `{"jobs": [`+strings.Join(jobs, ",")+`]}`).want(http.StatusOK)
	if n := h.rows(); n != 1000 {
		t.Errorf("%d jobs", n)
	}
	var transactions int
	if h.sql("select count(distinct xmin::text) from jobs", &transactions); transactions != 1 {
		t.Errorf("in %d transactions", transactions)
	}
}

func TestJobsAreAcceptedWhileTheBrokerIsAway(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.broker.set(errAway)
	h.submit(plainJob)
	var health struct {
		Status     string
		Components struct{ Kafka struct{ Status string } }
	}
	h.get("/api/health").want(http.StatusOK).into(&health)
	if health.Status != "DEGRADED" || health.Components.Kafka.Status != "DOWN" {
		t.Errorf("health %+v", health)
	}
	h.broker.set(nil)
	id := h.submit(plainJob)
	for h.broker.next(t).Subject() != id.String() {
		continue // the first job was published after all
	}
}

func TestJobAcceptedAtTheLastMomentIsPublished(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.submit(plainJob)
	h.stop()
	if e := h.broker.next(t); e.Subject() != id.String() {
		t.Errorf("got %s", e)
	}
}

func TestRequestsWhileTheStoreIsAwayAre503(t *testing.T) {
	t.Parallel()
	h := openCuttable(t, func(*gateway.Config) {})
	id := h.submit(plainJob)
	h.cut()
	// The database knows whether workers have run these types.
	unknown := `{"jobs": [{"jobType": "A", "payload": {}}, {"jobType": "B", "payload": {}}, {}]}`
	for _, r := range []*response{
		h.post("/api/jobs/batch", unknown),
		h.post("/api/jobs", plainJob), h.get("/api/jobs/" + id.String()), h.get("/api/jobs"),
		h.post("/api/jobs/"+id.String()+"/cancel", ""), h.post("/api/jobs/batch", `{"jobs": [`+plainJob+`]}`),
	} {
		if r.wantError(apierror.Unavailable); r.header.Get("Retry-After") == "" {
			t.Error("it does not say when to try again")
		}
	}
	var health map[string]json.RawMessage
	if h.get("/api/health").want(http.StatusServiceUnavailable).into(&health); string(health["status"]) != `"DOWN"` {
		t.Errorf("health %s", health)
	}
}
