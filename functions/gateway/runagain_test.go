package gateway_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/sealing"
)

type linkedJob struct {
	JobType, Queue, Status                string
	Priority, MaxRetryCount               int
	Payload                               json.RawMessage
	Tags                                  []string
	OwnerID, OrderingKey, CallbackURL     *string
	RunAt, ExpiresAt, OnDependencyFailure *string
	After                                 []uuid.UUID
	RunAgainOf, RunAgainAs                *uuid.UUID
}

func (c *client) linked(id uuid.UUID) (job linkedJob) {
	c.t.Helper()
	c.get("/api/jobs/" + id.String()).want(http.StatusOK).into(&job)
	return job
}

func runAgainPath(id uuid.UUID) string { return "/api/jobs/" + id.String() + "/run-again" }

func TestJobRunsAgainUnchangedOrChanged(t *testing.T) {
	t.Parallel()
	h := open(t)
	first := h.submit(strings.Replace(plainJob, "{", `{"ownerId": "acme", `, 1))
	h.broker.next(t)
	old := h.submit(`{"jobType": "MAIL", "payload": {"to": "a@example.org", "n": 1.50}, "queue": "mail", "priority": 3, "maxRetryCount": 7,
		"tags": ["x"], "ownerId": "acme", "orderingKey": "k", "callbackUrl": "https://example.org/done", "idempotencyKey": "once",
		"delayMs": 60000, "expiresAt": "2036-01-01T00:00:00Z", "timeoutMs": 5000, "retryPolicy": {"type": "fixed", "delayMs": 9}}`)
	h.broker.next(t)
	if job := h.linked(old); job.RunAgainOf != nil || job.RunAgainAs != nil {
		t.Errorf("a job of its own is linked: %+v", job)
	}

	r := h.post(runAgainPath(old), "").want(http.StatusAccepted)
	again := r.jobID()
	if again == old || r.header.Get("Location") != "/api/jobs/"+again.String() {
		t.Errorf("answered %s %s", r.header.Get("Location"), r.body)
	}
	created, err := jobevent.Decode[jobevent.Created](h.broker.next(t))
	if err != nil || created.JobID != again || created.TimeoutMs != 5000 || created.MaxRetryCount != 7 || created.RetryPolicy.DelayMs != 9 ||
		created.RunAt != nil {
		t.Errorf("published %+v, %v", created, err)
	}
	job := h.linked(again)
	if job.JobType != "MAIL" || job.Queue != "mail" || job.Priority != 3 || job.MaxRetryCount != 7 || string(job.Payload) != `{"to":"a@example.org","n":1.50}` ||
		!slices.Equal(job.Tags, []string{"x"}) || *job.OwnerID != "acme" || *job.OrderingKey != "k" || *job.CallbackURL != "https://example.org/done" {
		t.Errorf("the new job is %+v", job)
	}
	if job.Status != "PENDING" || job.RunAt != nil || job.ExpiresAt != nil || job.RunAgainOf == nil || *job.RunAgainOf != old || job.RunAgainAs != nil {
		t.Errorf("the new job is %+v", job)
	}

	changed := h.post(runAgainPath(old), `{"payload": {"to": null, "n": 2}, "priority": null, "queue": "default", "orderingKey": null,
		"after": ["`+first.String()+`"], "onDependencyFailure": "run"}`).want(http.StatusAccepted).jobID()
	if job = h.linked(changed); string(job.Payload) != `{"n":2}` || job.Priority != 0 || job.Queue != "default" || job.OrderingKey != nil ||
		!slices.Equal(job.After, []uuid.UUID{first}) || *job.OnDependencyFailure != "run" || *job.RunAgainOf != old {
		t.Errorf("the changed job is %+v", job)
	}
	if job = h.linked(old); job.RunAgainAs == nil || *job.RunAgainAs != changed || job.RunAgainOf != nil {
		t.Errorf("the old job is %+v, want the newest, %s", job, changed)
	}
	// The third job runs the second one again, so it is linked to the second one and not to the first.
	third := h.post(runAgainPath(again), "{}").want(http.StatusAccepted).jobID()
	if job = h.linked(third); *job.RunAgainOf != again || *h.linked(old).RunAgainAs != changed || *h.linked(again).RunAgainAs != third {
		t.Errorf("the third is %+v", job)
	}
}

func TestAJobRunsAgainWhateverItsState(t *testing.T) {
	t.Parallel()
	h := open(t)
	for _, status := range jobstate.All() {
		id := h.submit(plainJob)
		h.scheduler(id, 1, status, nil)
		h.post(runAgainPath(id), "").want(http.StatusAccepted)
	}
}

func TestRunAgainIsCheckedLikeASubmit(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.submit(plainJob)
	for body, path := range map[string]string{
		`{"x": 1}`: "x", `{"payload": {"steps": []}}`: "payload.steps", `{"queue": "nowhere"}`: "queue", `{"jobType": "NONE"}`: "jobType",
		`{"payload": null}`: "payload", `{"expiresAt": "2020-01-01T00:00:00Z"}`: "expiresAt", `[]`: "", `{"after": ["` + uuid.NewString() + `"]}`: "after[0]",
		`{"callbackUrl": "ftp://example.org/"}`: "callbackUrl",
	} {
		h.post(runAgainPath(id), body).wantError(apierror.InvalidJobRequest, path)
	}
	h.do(http.MethodPost, runAgainPath(id), `{}`, "Content-Type", "text/plain").wantError(apierror.UnsupportedMediaType)
	h.post(runAgainPath(id)+"?wait=1s", "").wantError(apierror.InvalidJobRequest, "wait")
	h.post(runAgainPath(uuid.New()), "").wantError(apierror.JobNotFound)
	h.post("/api/jobs/none/run-again", "").wantError(apierror.JobNotFound)
	if n := h.rows(); n != 1 {
		t.Errorf("%d jobs", n)
	}
}

func TestIdempotencyKeyRunsAJobAgainOnce(t *testing.T) {
	t.Parallel()
	h := open(t)
	id, other := h.submit(plainJob), h.submit(plainJob)
	const header = "Idempotency-Key"
	first := h.post(runAgainPath(id), `{"priority": 1}`, header, "again").want(http.StatusAccepted)
	second := h.post(runAgainPath(id), `{"priority": 1.0, "idempotencyKey": "again"}`, header, "again").want(http.StatusOK)
	if second.jobID() != first.jobID() || second.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("again: %s", second.body)
	}
	h.post(runAgainPath(id), "", header, "again").wantError(apierror.IdempotencyConflict)
	h.post(runAgainPath(other), `{"priority": 1}`, header, "again").wantError(apierror.IdempotencyConflict) // the same request, for another job
	h.post(runAgainPath(id), `{"idempotencyKey": "x"}`, header, "y").wantError(apierror.InvalidJobRequest, header)
}

func TestSealedPayloadStaysSealedWhenRunAgain(t *testing.T) {
	t.Parallel()
	h, sealer, ways := openSealed(t)
	id := h.submit(strings.Replace(plainJob, "hi", sealedCanary, 1))
	h.broker.next(t)
	again := h.post(runAgainPath(id), `{"priority": 1}`).want(http.StatusAccepted).jobID()
	created, err := jobevent.Decode[jobevent.Created](h.broker.next(t))
	if err != nil || created.JobID != again || bytes.Contains(created.Payload, []byte(sealedCanary)) {
		t.Fatalf("published %s, %v", created.Payload, err)
	}
	if plain, err := sealer.Open(sealing.OfJob(again, sealing.Payload), created.Payload); err != nil || !bytes.Contains(plain, []byte(sealedCanary)) {
		t.Errorf("it opens as %s, %v", plain, err)
	}
	if n := h.sqlInt("select count(*) from jobs where payload::text like '%' || $1 || '%'", sealedCanary); n != 0 {
		t.Error("it is kept in plain")
	}
	for _, seal := range ways {
		h.sql("update jobs set payload = to_json($1::text) where job_id = $2", nil, seal(sealing.OfJob(id, sealing.Payload)), id)
		r := h.post(runAgainPath(id), "")
		if r.wantError(apierror.Sealed); bytes.Contains(r.body, []byte(sealedCanary)) {
			t.Errorf("answered %s", r.body)
		}
	}
}

func TestRunAgainNeedsTheRoleReadAndIsAudited(t *testing.T) {
	t.Parallel()
	h := openWith(t, func(cfg *gateway.Config) { cfg.Auth = gateway.AuthOn })
	acme := h.as("acme", "admin")
	id := acme.submitted()
	h.as("acme", "submit").post(runAgainPath(id), "").wantError(apierror.Forbidden)
	h.as("acme", "read").post(runAgainPath(id), "").wantError(apierror.Forbidden)
	h.as("other", "admin").post(runAgainPath(id), "").wantError(apierror.JobNotFound)
	again := h.as("acme", "submit", "read").post(runAgainPath(id), `{"ownerId": "other", "priority": 4, "payload": {"steps": [{"type": "LOG", "message": "secret"}]}}`).
		want(http.StatusAccepted).jobID()
	if job := acme.linked(again); *job.OwnerID != "acme" {
		t.Errorf("it is %s's", *job.OwnerID)
	}
	log := acme.log("action=job.run-again")
	if len(log) != 1 || !slices.Equal(log[0].JobIDs, []uuid.UUID{id, again}) || string(log[0].Details) != `{"ownerId":"other","priority":4}` {
		t.Errorf("the log has %+v", log)
	}
	if len(acme.log("jobId="+again.String())) != 1 {
		t.Error("the new job has no entry")
	}
}

func TestRunAgainCountsAgainstTheRateLimit(t *testing.T) {
	t.Parallel()
	h := openWith(t, func(cfg *gateway.Config) { cfg.Limits.RateLimitJobs = 1 })
	id := h.submit(plainJob)
	h.post(runAgainPath(id), "").wantError(apierror.RateLimited)
}
