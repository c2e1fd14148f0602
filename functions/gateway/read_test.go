package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/functions/gateway"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/statusstore"
	"github.com/jobweaver/jobweaver/shared/apidb/workerstore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

func TestJobShowsItsHistory(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.submit(plainJob)
	at := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	later := func(s int) *time.Time { t := at.Add(time.Duration(s) * time.Second); return &t }
	h.scheduler(id, 6, jobstate.Running, func(s *jobevent.Status) {
		s.Attempt, s.RetryCount, s.StartedAt = 3, 1, later(30)
		s.LastError = &jobevent.Error{ErrorCode: "DEMO", Message: "no"}
		s.History = []jobevent.Transition{
			{At: at, To: "PENDING", By: "ingest"},
			{At: at, From: "PENDING", To: "QUEUED", Attempt: 1, By: "ingest"},
			{At: *later(2), From: "QUEUED", To: "RETRYING", Attempt: 1, By: "outcome", Outcome: "failed", WorkerID: "w1",
				StartedAt: later(1), FinishedAt: later(2), ErrorCode: "DEMO", Message: "no"},
			{At: *later(9), From: "RETRYING", To: "QUEUED", Attempt: 2, By: "dispatch"},
			{At: *later(20), From: "QUEUED", To: "PENDING", Attempt: 2, By: "outcome", Outcome: "lost", WorkerID: "w2",
				FinishedAt: later(20), Reason: "its worker was silent"},
			{At: *later(21), From: "PENDING", To: "QUEUED", Attempt: 3, By: "dispatch"},
			{At: *later(30), From: "QUEUED", To: "RUNNING", Attempt: 3, By: "watchdog", WorkerID: "w3"},
		}
	})
	log := jobevent.AttemptLog{JobID: id, Attempt: 1, Lines: []jobevent.LogLine{{At: at, Level: "INFO", Text: "hi"}}}
	second := jobevent.AttemptLog{JobID: id, Attempt: 3, Lines: []jobevent.LogLine{{At: at, Level: "WARN", Text: "ho"}}}
	if err := h.store.Logs.Add(t.Context(), []jobevent.AttemptLog{second, log}); err != nil {
		t.Fatal(err)
	}
	var job struct {
		Status    string
		StartedAt time.Time
		LastError jobevent.Error
		History   []struct{ From *string }
		Attempts  []struct {
			Attempt                                 int
			WorkerID, Outcome, ErrorCode, StartedAt string
		}
		Logs []struct {
			Attempt int
			Text    string
		}
	}
	h.get("/api/jobs/" + id.String()).want(http.StatusOK).into(&job)
	if job.Status != "RUNNING" || job.LastError.ErrorCode != "DEMO" || len(job.History) != 7 || job.History[0].From != nil {
		t.Errorf("job %+v", job)
	}
	if got := fmt.Sprint(job.Attempts); got != "[{1 w1 failed DEMO 2026-11-21T08:00:01Z} {2 w2 lost  } "+
		"{3 w3   2026-11-21T08:00:30Z}]" {
		t.Errorf("attempts %s", got)
	}
	if got := fmt.Sprint(job.Logs); got != "[{1 hi} {3 ho}]" {
		t.Errorf("logs %s", got)
	}
	var logs struct {
		JobID uuid.UUID
		Logs  []struct{ Text string }
	}
	h.get("/api/jobs/" + id.String() + "/logs?attempt=3").want(http.StatusOK).into(&logs)
	if len(logs.Logs) != 1 || logs.Logs[0].Text != "ho" || logs.JobID != id {
		t.Errorf("logs %+v", logs)
	}
}

func TestListHasPages(t *testing.T) {
	t.Parallel()
	h := open(t)
	var ids []uuid.UUID
	for i := range 7 {
		ids = append(ids, h.submit(with(fmt.Sprintf(`"tags": ["t%d"], "queue": "%s", "ownerId": "%s"`, i%2, []string{"default", "mail"}[i%2], []string{"umbrella", "acme"}[i/6]))))
	}
	h.scheduler(ids[3], 1, jobstate.Failed, func(s *jobevent.Status) { s.LastError = &jobevent.Error{ErrorCode: "DEMO", Message: "no"} })
	slices.Reverse(ids) // newest first
	page := func(query string) (got []uuid.UUID, next string) {
		t.Helper()
		var body struct {
			Jobs       []struct{ JobID uuid.UUID }
			NextCursor *string
		}
		h.get("/api/jobs" + query).want(http.StatusOK).into(&body)
		for _, job := range body.Jobs {
			got = append(got, job.JobID)
		}
		if body.NextCursor != nil {
			next = "&cursor=" + *body.NextCursor
		}
		return got, next
	}
	var all []uuid.UUID
	for got, next := page("?limit=3"); ; got, next = page("?limit=3" + next) {
		if all = append(all, got...); next == "" {
			break
		}
	}
	if !slices.Equal(all, ids) {
		t.Errorf("pages %v\nwant  %v", all, ids)
	}
	now := time.Now()
	for query, want := range map[string]int{
		"": 7, "?limit=7": 7, "?queue=mail": 3, "?tag=t0": 4, "?tag=t0&queue=mail": 0, "?status=FAILED": 1, "?status=PENDING": 6,
		"?status=FAILED&status=PENDING": 7, "?status=FAILED&status=RUNNING": 1,
		"?traceId=" + ids[0].String(): 0, "?idempotencyKey=none": 0, "?errorCode=DEMO": 1, "?errorCode=OTHER": 0, "?errorCode=DEMO&status=PENDING": 0,
		"?ownerId=none": 0, "?ownerId=acme": 1,
		"?type=SIMULATION": 7, "?type=MAIL": 0, "?status=RUNNING": 0, "?status=RETRYING": 0,
		"?since=" + url.QueryEscape(now.Add(-time.Minute).Format(time.RFC3339)):      7,
		"?since=" + url.QueryEscape(now.Add(time.Minute).Format(time.RFC3339)):       0,
		"?until=" + url.QueryEscape(now.Add(-time.Minute).Format(time.RFC3339)):      0,
		"?until=" + now.Add(time.Minute).UTC().Format(time.RFC3339):                  7,
		"?since=1970-01-01T00:00:00Z&until=9999-01-01T00:00:00Z":                     7,
		"?endedSince=1970-01-01T00:00:00Z&endedUntil=9999-01-01T00:00:00Z":           1,
		"?endedSince=1970-01-01T00:00:00Z&status=PENDING":                            0,
		"?endedSince=1970-01-01T00:00:00Z&status=FAILED&tag=t1":                      1,
		"?endedUntil=" + url.QueryEscape(now.Add(-time.Minute).Format(time.RFC3339)): 0,
	} {
		if got, _ := page(query); len(got) != want {
			t.Errorf("%s: %d jobs, want %d", query, len(got), want)
		}
	}
}

func TestWaitForAJobEndsWhenItIsDeleted(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.submit(plainJob)
	answer := make(chan *response)
	go func() { answer <- h.get("/api/jobs/" + id.String() + "?wait=60s") }()
	h.scheduler(id, 1, jobstate.Running, func(s *jobevent.Status) { s.Attempt = 1 })
	if _, err := h.store.Statuses.ForgetJobs(t.Context(), []statusstore.Gone{{JobID: id, Version: 9}}); err != nil {
		t.Fatal(err)
	}
	select {
	case r := <-answer:
		r.wantError(apierror.JobNotFound)
	case <-time.After(20 * time.Second):
		t.Fatal("still waits")
	}
}

func TestWaitHoldsTheResponseUntilTheEnd(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.submit(plainJob)
	answers := make(chan *response)
	var g errgroup.Group
	for range 20 {
		g.Go(func() error { answers <- h.get("/api/jobs/" + id.String() + "?wait=30s"); return nil })
	}
	h.scheduler(id, 1, jobstate.Running, func(s *jobevent.Status) { s.Attempt = 1 })
	var before struct{ Status string }
	if h.get("/api/jobs/" + id.String() + "?wait=20ms").into(&before); before.Status != "RUNNING" {
		t.Errorf("after a wait in vain it is %s", before.Status)
	}
	select {
	case r := <-answers:
		t.Fatalf("answered before the end: %s", r.body)
	default:
	}
	h.scheduler(id, 2, jobstate.Completed, func(s *jobevent.Status) { s.Attempt = 1 })
	for range 20 {
		var job struct{ Status string }
		if (<-answers).want(http.StatusOK).into(&job); job.Status != "COMPLETED" {
			t.Errorf("answered %s", job.Status)
		}
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
}

func TestStopEndsWaitingRequests(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.submit(plainJob)
	answer := make(chan *response, 1)
	go func() { answer <- h.get("/api/jobs/" + id.String() + "?wait=60s") }()
	h.stop()
	select {
	case r := <-answer:
		r.want(http.StatusOK)
	case <-time.After(20 * time.Second):
		t.Error("still waiting")
	}
}

func TestHealthHasCounts(t *testing.T) {
	t.Parallel()
	h := open(t)
	failed := h.submit(plainJob)
	h.submit(plainJob)
	h.submit(with(`"delayMs": 60000`))
	h.scheduler(failed, 1, jobstate.Failed, nil)
	heartbeat := workerstore.Heartbeat{Heartbeat: jobevent.Heartbeat{WorkerID: "w", Slots: 12, Free: 5}, JSON: []byte(`{"slots": 12, "free": 5}`)}
	if err := h.store.Workers.See(t.Context(), []workerstore.Heartbeat{heartbeat}); err != nil {
		t.Fatal(err)
	}
	var health struct {
		Status     string
		Components struct {
			Job struct{ Details map[string]int }
		}
	}
	h.get("/api/health").want(http.StatusOK).into(&health)
	if got := fmt.Sprint(health.Components.Job.Details); health.Status != "UP" ||
		got != "map[activeThreads:7 deadJobs:1 jobTypesWithoutWorker:0 pendingJobs:2 poolSize:12]" {
		t.Errorf("%s %s", health.Status, got)
	}
}

func TestTraceIsTakenOverAndReturned(t *testing.T) {
	t.Parallel()
	h := open(t)
	const id, parent = "0af76519-16cd-43dd-8448-eb211c80319c", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	const other = "b7ad6b71-6920-4331-8448-eb211c80319c"
	for name, c := range map[string]struct {
		trace, parent string
		kept          bool
	}{
		"a UUID":                         {id, "", true},
		"a UUID in big letters":          {strings.ToUpper(id), "", true},
		"a traceparent":                  {"", parent, true},
		"a traceparent over a UUID":      {other, parent, true},
		"a UUID over a bad traceparent":  {id, strings.Replace(parent, "00-", "ff-", 1), true},
		"a traceparent without a span":   {id, "00-" + strings.Repeat("1", 32) + "-0000000000000000-01", true},
		"a traceparent without a trace":  {id, "00-" + strings.Repeat("0", 32) + "-b7ad6b7169203331-01", true},
		"a traceparent with a tail":      {id, "00-" + strings.Repeat("1", 32) + "-b7ad6b7169203331-01-x", true},
		"a traceparent of a later day":   {"", strings.Replace(parent, "00-", "01-", 1) + "-more", true},
		"what is no UUID":                {"x", "", false},
		"a UUID without its hyphens":     {strings.ReplaceAll(id, "-", ""), "", false},
		"a UUID of zeros":                {uuid.Nil.String(), "", false},
		"a traceparent in big letters":   {"", strings.ToUpper(parent), false},
		"a script instead of everything": {"<script>", "<script>", false},
	} {
		for _, path := range []string{"/api/jobs", "/api/nothing"} {
			r := h.get(path, "X-Trace-Id", c.trace, "Traceparent", c.parent)
			if got := r.header.Get("X-Trace-Id"); (got == id) != c.kept {
				t.Errorf("%s: answered %s", name, got)
			}
			if refused := c.trace != "" && !c.kept; refused {
				r.wantError(bad, "X-Trace-Id")
			} else if r.status == http.StatusBadRequest {
				t.Errorf("%s: answered %s", name, r.body)
			}
		}
	}
}

func TestStaticPagesAreServed(t *testing.T) {
	t.Parallel()
	h := open(t)
	if r := h.get("/").want(http.StatusOK); !strings.Contains(string(r.body), `<div id="root">`) {
		t.Errorf("page %s", r.body)
	}
	if r := h.get("/api/openapi.yaml").want(http.StatusOK); !strings.HasPrefix(string(r.body), "openapi: 3.1") {
		t.Errorf("contract %.40s", r.body)
	}
}

func TestPanicIs500WithItsTrace(t *testing.T) {
	t.Parallel()
	broken := httptest.NewServer(mustNew(t, gateway.Config{Auth: gateway.AuthOff}, &apidb.Store{}).Handler()) // a store that was never opened
	t.Cleanup(broken.Close)
	for range 2 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, broken.URL+"/api/jobs", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Trace-Id", uuid.NewString()) // the store would panic while making an id
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		var e errorBody
		if err := json.NewDecoder(res.Body).Decode(&e); err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != http.StatusInternalServerError || e.ErrorCode != apierror.Internal ||
			e.TraceID.String() != req.Header.Get("X-Trace-Id") || e.TraceID.String() != res.Header.Get("X-Trace-Id") {
			t.Errorf("answered %d %+v", res.StatusCode, e)
		}
	}
}

// The router and the contract have the same endpoints, except for those of the host, which only the contract has.
func TestRouterAndContractHaveTheSameEndpoints(t *testing.T) {
	t.Parallel()
	h := openLocked(t)
	hosts := []string{"GET /health/liveness", "GET /health/readiness"}
	var want, got []string
	for path, item := range loadContract(t).Paths.Map() {
		for method := range item.Operations() {
			if endpoint := method + " " + path; !slices.Contains(hosts, endpoint) {
				want = append(want, endpoint)
			}
		}
	}
	engine, ok := mustNew(t, gateway.Config{Auth: gateway.AuthOff}, &apidb.Store{}).Handler().(*gin.Engine)
	if !ok {
		t.Fatal("the handler shows no routes")
	}
	param := regexp.MustCompile(`:(\w+)`)
	for _, r := range engine.Routes() {
		if r.Method == http.MethodHead { // like GET: TestHeadIsRoutedLikeGet
			continue
		}
		if h.raw(r.Method, r.Path).status == http.StatusMethodNotAllowed { // the route exists only to refuse the method
			continue
		}
		got = append(got, r.Method+" "+param.ReplaceAllString(r.Path, "{$1}"))
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("the router has  %v\nthe contract has %v", got, want)
	}
}

func TestListCanBeSearched(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.submit(plainJob)
	id := h.submit(strings.Replace(plainJob, "{", `{"idempotencyKey": "order-17", "tags": ["billing"], `, 1))
	for _, text := range []string{"order-17", "billing", id.String()} {
		var page struct{ Jobs []struct{ JobID uuid.UUID } }
		h.get("/api/jobs?q=" + url.QueryEscape(text)).want(http.StatusOK).into(&page)
		if len(page.Jobs) != 1 || page.Jobs[0].JobID != id {
			t.Errorf("%s finds %v", text, page.Jobs)
		}
	}
	for _, wrong := range []string{"q=", "q=a&q=b", "q=" + strings.Repeat("x", 256), "q=%00", "q=%ff"} {
		h.get("/api/jobs?"+wrong).wantError(apierror.InvalidJobRequest, "q")
	}
	var op struct {
		OperationID uuid.UUID
		Filter      map[string]string
	}
	h.post("/api/operations", `{"command": "cancel", "filter": {"q": "order-17"}}`).want(http.StatusAccepted).into(&op)
	if len(op.Filter) != 1 || op.Filter["q"] != "order-17" {
		t.Errorf("the operation shows its filter as %v", op.Filter)
	}
	h.post("/api/operations", `{"command": "cancel", "filter": {"q": ""}}`).wantError(apierror.InvalidJobRequest, "filter.q")
}

func TestListOfDependentJobs(t *testing.T) {
	t.Parallel()
	h := open(t)
	first := h.submit(plainJob)
	h.submit(plainJob)
	next := h.submit(strings.Replace(plainJob, "{", `{"after": ["`+first.String()+`"], `, 1))
	for path, want := range map[string]int{
		"after=" + first.String(): 1, "after=" + next.String(): 0, "after=" + uuid.NewString(): 0, "noErrorCode=true": 3,
		"status=FAILED&noErrorCode=true": 0,
	} {
		var page struct{ Jobs []struct{ JobID uuid.UUID } }
		h.get("/api/jobs?" + path).want(http.StatusOK).into(&page)
		if len(page.Jobs) != want || want == 1 && page.Jobs[0].JobID != next {
			t.Errorf("%s finds %v", path, page.Jobs)
		}
	}
	for wrong, of := range map[string]string{
		"after=x": "after", "noErrorCode=false": "noErrorCode", "noErrorCode=true&errorCode=X": "noErrorCode",
	} {
		h.get("/api/jobs?"+wrong).wantError(apierror.InvalidJobRequest, of)
	}
	h.get("/api/stream?after=x").wantError(apierror.InvalidJobRequest, "after")
	for wrong, of := range map[string]string{
		`{"noErrorCode": false}`: "filter.noErrorCode", `{"noErrorCode": true, "errorCode": "X"}`: "filter.noErrorCode",
		`{"after": "x"}`: "filter.after",
	} {
		h.post("/api/operations", `{"command": "retry", "filter": `+wrong+`}`).wantError(apierror.InvalidJobRequest, of)
	}
}

func TestAFilterByTheNameOfAMemberIsRefusedWithTheNameOfTheFilter(t *testing.T) {
	t.Parallel()
	h := open(t)
	operation := func(filter string) *response {
		return h.post("/api/operations", `{"command": "cancel", "filter": {`+filter+`}}`)
	}
	for _, c := range []struct {
		refused    *response
		path, want string
	}{
		{h.get("/api/jobs?jobType=MAIL"), "jobType", "it is type here"},
		{h.get("/api/jobs?tags=a"), "tags", "it is tag here"},
		{h.get("/api/jobs/dead?jobType=MAIL"), "jobType", "it is type here"},
		{h.get("/api/stats?jobType=MAIL"), "jobType", "it is type here"},
		{h.get("/api/stream?jobType=MAIL"), "jobType", "it is type here"},
		{h.get("/api/schedules?jobType=MAIL"), "jobType", "is not a known parameter"},
		{operation(`"jobType": "MAIL"`), "filter.jobType", "it is type here"},
		{operation(`"tags": ["a"]`), "filter.tags", "it is tag here"},
		{h.post("/api/jobs", `{"type": "MAIL", "payload": 1}`), "type", "it is jobType here"},
		{h.post("/api/jobs", with(`"tag": "a"`)), "tag", "it is tags here"},
		{h.post("/api/jobs", with(`"tagged": "a"`)), "tagged", "is not a known field"},
		{h.post("/events?jobType=MAIL&tag=a", `{}`, "Ce-Specversion", "1.0", "Ce-Id", "1", "Ce-Source", "/t", "Ce-Type", "x"), "tag", "it is tags here"},
	} {
		found := slices.ContainsFunc(c.refused.error().Details, func(d apierror.Detail) bool {
			return d.Path == c.path && strings.HasSuffix(d.Message, c.want)
		})
		if !found || c.refused.status != http.StatusBadRequest {
			t.Errorf("%d %s does not name %s", c.refused.status, c.refused.body, c.want)
		}
	}
}
