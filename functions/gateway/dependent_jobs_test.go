package gateway_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// shown has the members of a job whose values depend on other jobs.
type shown struct {
	JobID               uuid.UUID
	Status              string
	ExpiresAt           *time.Time
	OrderingKey         *string
	After               []uuid.UUID
	OnDependencyFailure *string
	BlockedBy           []jobevent.Block
}

func (h *fixture) show(id uuid.UUID) (job shown) {
	h.t.Helper()
	h.get("/api/jobs/" + id.String()).want(http.StatusOK).into(&job)
	return job
}

func TestJobShowsItsDependenciesAndOrder(t *testing.T) {
	t.Parallel()
	h := open(t)
	first := h.submit(with(`"orderingKey": "k"`))
	if job := h.show(first); job.OrderingKey == nil || *job.OrderingKey != "k" || job.ExpiresAt != nil || job.After == nil ||
		len(job.After) != 0 || job.OnDependencyFailure != nil || len(job.BlockedBy) != 0 {
		t.Errorf("the first shows %+v", job)
	}
	h.broker.next(t)
	expiresAt := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	tied := h.submit(with(fmt.Sprintf(`"orderingKey": "k", "after": [%q], "onDependencyFailure": "run", "expiresAt": %q`,
		first, expiresAt.Format(time.RFC3339))))
	created, err := jobevent.Decode[jobevent.Created](h.broker.next(t))
	if err != nil || created.OrderingKey != "k" || created.OrderAfter == nil || *created.OrderAfter != first || created.OrderNumber == 0 ||
		!slices.Equal(created.After, []uuid.UUID{first}) || !created.RunAnyway || !created.ExpiresAt.Equal(expiresAt) {
		t.Errorf("got %+v, %v", created, err)
	}
	blocks := []jobevent.Block{{Kind: "dependency", ID: first.String()}, {Kind: "order", ID: "k"}}
	job := h.show(tied)
	if job.Status != "PENDING" || !slices.Equal(job.After, created.After) || *job.OnDependencyFailure != "run" ||
		!job.ExpiresAt.Equal(expiresAt) || !slices.Equal(job.BlockedBy, blocks) {
		t.Errorf("shows %+v", job)
	}
	cancels := h.submit(with(fmt.Sprintf(`"after": [%q]`, first)))
	if job := h.show(cancels); *job.OnDependencyFailure != "cancel" || job.OrderingKey != nil {
		t.Errorf("by default shows %+v", job)
	}
	h.submit(plainJob)
	var page struct{ Jobs []shown }
	h.get("/api/jobs?orderingKey=k").want(http.StatusOK).into(&page)
	if len(page.Jobs) != 2 || page.Jobs[0].JobID != tied || !slices.Equal(page.Jobs[0].BlockedBy, blocks) ||
		*page.Jobs[1].OrderingKey != "k" || len(page.Jobs[1].BlockedBy) != 0 {
		t.Errorf("in a list: %+v", page)
	}
	h.scheduler(first, 1, jobstate.Failed, nil)
	if job := h.show(tied); len(job.BlockedBy) != 0 {
		t.Errorf("still waits for %v", job.BlockedBy)
	}
}

func TestOnlyTheJobWithAMissingDependencyIsRefused(t *testing.T) {
	t.Parallel()
	h := open(t)
	known := h.submit(plainJob)
	theirs := h.submit(with(`"ownerId": "acme"`))
	bad := with(fmt.Sprintf(`"after": [%q, %q, %q]`, known, uuid.Must(uuid.NewV7()), theirs))
	h.post("/api/jobs", bad).wantError(apierror.InvalidJobRequest, "after[1]", "after[2]")
	h.post("/api/jobs", with(fmt.Sprintf(`"orderingKey": "k", "after": [%q]`, theirs))).wantError(apierror.InvalidJobRequest, "after[0]")
	var body struct {
		Results []struct {
			Status int
			Error  errorBody
		}
	}
	good := with(fmt.Sprintf(`"orderingKey": "k", "after": [%q]`, known))
	h.post("/api/jobs/batch", `{"jobs": [`+strings.Join([]string{good, bad, plainJob, good}, ",")+`]}`).want(http.StatusOK).into(&body)
	var got []int
	for _, result := range body.Results {
		got = append(got, result.Status)
	}
	if fmt.Sprint(got) != "[202 400 202 202]" {
		t.Fatalf("got %v", got)
	}
	if d := body.Results[1].Error.Details; len(d) != 2 || d[0] != (apierror.Detail{Path: "after[1]", Message: "there is no job with this id"}) {
		t.Errorf("details %v", d)
	}
	h.wantLine("k", 2)
	h.binary("/events", "1", bad).wantError(apierror.InvalidJobRequest, "after[1]", "after[2]")
	h.post("/events", "["+envelope("1", submitType, good)+","+envelope("2", submitType, bad)+"]", "Content-Type", batchType).
		wantError(apierror.InvalidJobRequest, "[1].data.after[1]")
	if n := h.rows(); n != 5 {
		t.Errorf("%d jobs", n)
	}
	for range 5 {
		h.broker.next(t)
	}
	if len(h.broker.published) != 0 {
		t.Error("a refused job was published")
	}
}

func TestRepeatAfterExpiryGetsTheFirstAnswer(t *testing.T) {
	t.Parallel()
	var h *fixture
	var at time.Time
	expires := func(members string) string {
		return with(members + fmt.Sprintf(`"expiresAt": %q`, at.Format(time.RFC3339Nano)))
	}
	var keyed, tied string
	var first, second, event *response
	for !time.Now().Before(at) { // all of them have to be answered before they expire
		h, at = open(t), time.Now().Add(5*time.Second).UTC()
		keyed, tied = expires(`"idempotencyKey": "k", `), expires(`"idempotencyKey": "t", "orderingKey": "o", `)
		first, second = h.post("/api/jobs", keyed), h.post("/api/jobs", tied)
		event = h.binary("/events", "1", expires(""))
	}
	for _, r := range []*response{first, second, event} {
		r.want(http.StatusAccepted)
	}
	<-time.After(time.Until(at) + time.Millisecond)
	for body, before := range map[string]*response{keyed: first, tied: second} {
		again := h.post("/api/jobs", body).want(http.StatusOK)
		if string(again.body) != string(before.body) || again.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("again: %s, before %s", again.body, before.body)
		}
	}
	if again := h.binary("/events", "1", expires(`"tags": ["other"], `)).want(http.StatusAccepted); again.jobID() != event.jobID() {
		t.Errorf("the event again: %s", again.body)
	}
	h.post("/api/jobs", expires(`"priority": 9, "idempotencyKey": "k", `)).wantError(apierror.IdempotencyConflict)
	for _, late := range []string{expires(""), expires(`"idempotencyKey": "new", `), expires(`"idempotencyKey": "new", "orderingKey": "o", `)} {
		h.post("/api/jobs", late).wantError(apierror.InvalidJobRequest, "expiresAt")
	}
	h.binary("/events", "2", expires("")).wantError(apierror.InvalidJobRequest, "expiresAt")
	h.post("/events", "["+envelope("3", submitType, plainJob)+","+envelope("4", submitType, expires(""))+"]", "Content-Type", batchType).
		wantError(apierror.InvalidJobRequest, "[1].data.expiresAt")
	var body struct{ Results []struct{ Status int } }
	h.post("/api/jobs/batch", `{"jobs": [`+strings.Join([]string{expires(`"idempotencyKey": "new", `), keyed, plainJob}, ",")+`]}`).
		want(http.StatusOK).into(&body)
	if got := fmt.Sprint(body.Results); got != "[{400} {200} {202}]" {
		t.Errorf("in a batch: %s", got)
	}
	if n := h.rows(); n != 4 {
		t.Errorf("%d jobs", n)
	}
}

func TestEventHasDependenciesAndOrderInTheURL(t *testing.T) {
	t.Parallel()
	h := open(t)
	first := h.submit(plainJob)
	expiresAt := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	r := h.do(http.MethodPost, "/events?jobType=MAIL&orderingKey=k&onDependencyFailure=run&expiresAt="+expiresAt.Format(time.RFC3339)+
		"&after="+first.String(), `{}`, "Content-Type", "application/json", "Ce-Specversion", "1.0", "Ce-Id", "1", "Ce-Source", "/t",
		"Ce-Type", "com.example.x")
	job := h.show(r.want(http.StatusAccepted).jobID())
	if *job.OrderingKey != "k" || !slices.Equal(job.After, []uuid.UUID{first}) || *job.OnDependencyFailure != "run" ||
		!job.ExpiresAt.Equal(expiresAt) {
		t.Errorf("shows %+v", job)
	}
}

func TestDefaultsOfAJobTypeAreFilledIn(t *testing.T) {
	t.Parallel()
	h := open(t)
	created := func(body string) jobevent.Created {
		h.submit(body)
		created, err := jobevent.Decode[jobevent.Created](h.broker.next(t))
		if err != nil {
			t.Fatal(err)
		}
		return created
	}
	slow := `{"jobType": "SLOW", "payload": {}}`
	if c := created(slow); c.MaxRetryCount != 9 || c.TimeoutMs != 1000 || c.RetryPolicy == nil || c.RetryPolicy.DelayMs != 7 {
		t.Errorf("silent: %+v", c)
	}
	if c := created(strings.Replace(slow, "{", `{"maxRetryCount": 3, "timeoutMs": 5, "retryPolicy": {"type": "exponential"}, `, 1)); c.MaxRetryCount != 3 ||
		c.TimeoutMs != 5 || c.RetryPolicy != nil {
		t.Errorf("created: %+v", c)
	}
	if c := created(plainJob); c.MaxRetryCount != 3 || c.RetryPolicy != nil || c.TimeoutMs != 600_000 {
		t.Errorf("another type: %+v", c)
	}
	// A gateway with other settings recognises the same request.
	keyed := strings.Replace(slow, "{", `{"idempotencyKey": "k", `, 1)
	id := h.submit(keyed)
	other := mustNew(t, gateway.Config{Auth: gateway.AuthOff, Queues: []string{"default"}, JobTypes: []string{"SLOW"}}, h.store.Store)
	server := httptest.NewServer(other.Handler())
	t.Cleanup(server.Close)
	again := (&client{t: t, base: server.URL}).post("/api/jobs", keyed).want(http.StatusOK)
	if again.jobID() != id {
		t.Errorf("another job: %s", again.body)
	}
}

func TestInvalidDefaultsOfAJobTypePreventTheStart(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"MAIL": {"timeoutMs": 0}}`: "RETRY_POLICIES: MAIL.timeoutMs must be",
		`5 times`:                    "RETRY_POLICIES: must be an object",
	} {
		if _, err := gateway.New(gateway.Config{RetryPolicies: text}, &apidb.Store{}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestInvalidTraceURLPreventsTheStart(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"https://jaeger.example.org/trace":        "TRACE_URL: has no {traceId}",
		"jaeger.example.org/trace/{traceId}":      "TRACE_URL: is not an http or https URL",
		"javascript:alert('{traceId}')":           "TRACE_URL: is not an http or https URL",
		"https://me:secret@example.org/{traceId}": "TRACE_URL: is not an http or https URL without a user",
	} {
		_, err := gateway.New(gateway.Config{TraceURL: text}, &apidb.Store{})
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
