package dev_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/jobweaver/jobweaver/local/dev"
	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/secret"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// span is a span that a collector received.
type span struct {
	*otlp.Span
	service string
}

func (s span) id() string     { return hex.EncodeToString(s.SpanId) }
func (s span) parent() string { return hex.EncodeToString(s.ParentSpanId) }
func (s span) trace() string  { return hex.EncodeToString(s.TraceId) }

func (s span) String() string {
	if s.Span == nil {
		return "nothing"
	}
	return s.service + ": " + s.Name
}

// is reports whether a span has a name and a service, given as service: name.
func (s span) is(name string) bool {
	service, name, _ := strings.Cut(name, ": ")
	return s.Span != nil && s.Name == name && (service == anyService || s.service == service)
}

// anyService matches any service, because any function that makes room dispatches.
const anyService = "*"

func (s span) attr(key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return text(a.Value)
		}
	}
	return ""
}

func text(v *common.AnyValue) string {
	if s, ok := v.Value.(*common.AnyValue_StringValue); ok {
		return s.StringValue
	}
	return fmt.Sprint(v.Value)
}

// spanCatch is a collector.
type spanCatch struct {
	t      *testing.T
	server *httptest.Server

	mu    sync.Mutex
	spans []span
}

func newSpanCatch(t *testing.T) *spanCatch {
	t.Helper()
	c := &spanCatch{t: t}
	c.server = httptest.NewServer(http.HandlerFunc(c.take))
	t.Cleanup(c.server.Close)
	return c
}

func (c *spanCatch) config() telemetry.TraceConfig {
	return telemetry.TraceConfig{Endpoint: c.server.URL, Headers: secret.Of("x-api-key=canary%20header"), Compression: "gzip"}
}

func (c *spanCatch) take(_ http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" || r.Header.Get("X-Api-Key") != "canary header" {
		c.t.Errorf("the collector got %s with %v", r.URL, r.Header)
	}
	unzip, err := gzip.NewReader(r.Body)
	if err != nil {
		c.t.Errorf("read spans: %v", err)
		return
	}
	body, err := io.ReadAll(unzip)
	var request collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(body, &request)
	}
	if err != nil || len(request.ProtoReflect().GetUnknown()) > 0 {
		c.t.Errorf("read spans: %v", err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range request.ResourceSpans {
		service := ""
		for _, a := range resource.Resource.Attributes {
			if a.Key == "service.name" {
				service = text(a.Value)
			}
		}
		for _, scope := range resource.ScopeSpans {
			for _, s := range scope.Spans {
				c.spans = append(c.spans, span{s, service})
			}
		}
	}
}

// tree holds the spans of one trace.
type tree struct {
	t     *testing.T
	spans []span
	byID  map[string]span
}

// of returns a trace's spans. Each except those below from has its parent among them, and no two are the same.
func (c *spanCatch) of(trace uuid.UUID, from string) tree {
	c.t.Helper()
	got := tree{c.t, nil, map[string]span{}}
	for _, s := range c.spans {
		if s.trace() == hex.EncodeToString(trace[:]) {
			if before, twice := got.byID[s.id()]; twice {
				c.t.Errorf("%s and %s have the same id", before, s)
			}
			got.spans, got.byID[s.id()] = append(got.spans, s), s
		}
	}
	for _, s := range got.spans {
		if _, here := got.byID[s.parent()]; !here && s.parent() != from {
			c.t.Errorf("%s stands below %s, which is not there", s, s.parent())
		}
	}
	return got
}

// below returns the spans with a name and service whose ancestors are up, each as service: name.
func (tr tree) below(name string, up ...string) []span {
	tr.t.Helper()
	var found []span
	for _, s := range tr.spans {
		if !s.is(name) {
			continue
		}
		line := []span{}
		for at := s; at.Span != nil && len(line) < len(up); {
			at = tr.byID[at.parent()]
			line = append(line, at)
		}
		if slices.EqualFunc(line, up, span.is) {
			found = append(found, s)
		} else {
			tr.t.Logf("%s stands below %q", s, line)
		}
	}
	return found
}

func (tr tree) one(name string, up ...string) span {
	tr.t.Helper()
	found := tr.below(name, up...)
	if len(found) != 1 {
		tr.t.Fatalf("%d spans %s stand below %q", len(found), name, up)
	}
	return found[0]
}

// calls is a service that jobs call: it refuses the first call of each job.
type calls struct {
	server *httptest.Server
	mu     sync.Mutex
	came   map[string][]http.Header // by path
	more   sync.Cond
}

func newCalls(t *testing.T) *calls {
	t.Helper()
	c := &calls{came: map[string][]http.Header{}}
	c.more.L = &c.mu
	c.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.came[r.URL.Path] = append(c.came[r.URL.Path], r.Header)
		c.more.Broadcast()
		switch {
		case r.URL.Path == "/external":
			w.WriteHeader(http.StatusAccepted)
		case r.URL.Path != "/done" && len(c.came[r.URL.Path]) == 1:
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(c.server.Close)
	return c
}

func (c *calls) wait(t *testing.T, path string, n int) []http.Header {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !comes(&c.more, func() bool { return len(c.came[path]) >= n }) {
		t.Fatalf("of %d calls of %s there came %d", n, path, len(c.came[path]))
	}
	return c.came[path]
}

// comes waits up to a minute until holds returns true, and reports whether it does. The caller has locked.
func comes(more *sync.Cond, holds func() bool) bool {
	over := false
	timer := time.AfterFunc(time.Minute, func() {
		more.L.Lock()
		defer more.L.Unlock()
		over = true
		more.Broadcast()
	})
	defer timer.Stop()
	for !holds() && !over {
		more.Wait()
	}
	return holds()
}

// request returns a job of a type that calls a path of the service.
func (c *calls) request(jobType, path string) string {
	return fmt.Sprintf(`{"jobType": %q, "payload": {"url": "%s%s?token=canary-query", "data": {"name": "canary-payload"}},
		"retryPolicy": {"type": "fixed", "delayMs": 100}, "callbackUrl": "%s/done?token=canary-query"}`,
		jobType, c.server.URL, path, c.server.URL)
}

// post submits a job and returns the answer.
func post(ctx context.Context, t *testing.T, url, body string, headers ...string) (answer client.Accepted) {
	t.Helper()
	raw, err := client.New(url, "").Do(ctx, http.MethodPost, "/api/jobs", "application/json", []byte(body), &answer, headers...)
	if err != nil {
		t.Fatalf("submit: %v, %s", err, raw)
	}
	return answer
}

func ended(ctx context.Context, t *testing.T, url, id string) {
	t.Helper()
	job, err := client.Follow(ctx, client.New(url, ""), id, func(*client.Job) {})
	if err != nil || job.Status != "COMPLETED" {
		t.Fatalf("the job: %+v, %v", job, err)
	}
}

const caller = "00f067aa0ba902b7"

func TestAJobIsOneTrace(t *testing.T) {
	t.Parallel()
	catch, calls := newSpanCatch(t), newCalls(t)
	o := options(t, newFolder(t))
	o.Trace = catch.config()
	mine, quiet := uuid.New(), uuid.New()
	parent := func(id uuid.UUID, flags string) string {
		return "00-" + hex.EncodeToString(id[:]) + "-" + caller + "-" + flags
	}
	var external, together client.Accepted
	var job string
	err := dev.Run(t.Context(), o, func(ctx context.Context, url string) error {
		// While the installation starts, the broker may be too slow for the gateway: then projection would publish
		// the job.
		first := post(ctx, t, url, briefJob, "Traceparent", parent(uuid.New(), "00"))
		ended(ctx, t, url, first.JobID)
		accepted := post(ctx, t, url, calls.request("FUNCTION", "/function"), "Traceparent", parent(mine, "01"))
		if job = accepted.JobID; accepted.TraceID != mine.String() {
			t.Errorf("its trace is %s", accepted.TraceID)
		}
		unsampled := post(ctx, t, url, calls.request("FUNCTION", "/quiet"), "Traceparent", parent(quiet, "00"))
		external = post(ctx, t, url, calls.request("EXTERNAL", "/external"))
		order := calls.wait(t, "/external", 1)[0]
		back := fmt.Sprintf(`{"jobId": %q, "attempt": 1, "status": "COMPLETED", "output": {"name": "canary-output"}}`, external.JobID)
		if raw, err := client.New(url, "").Do(ctx, http.MethodPost, "/api/jobs/callback", "application/json", []byte(back), nil,
			"X-Callback-Secret", order.Get("X-Callback-Secret")); err != nil {
			t.Errorf("call back: %v, %s", err, raw)
		}
		if raw, err := client.New(url, "").Do(ctx, http.MethodPost, "/api/jobs/batch", "application/json", manyJobs(20), &together); err != nil {
			t.Errorf("submit a batch: %v, %s", err, raw)
		}
		for _, id := range []string{accepted.JobID, unsampled.JobID, external.JobID} {
			ended(ctx, t, url, id)
		}
		calls.wait(t, "/done", 3)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	checkJob(t, catch.of(mine, caller), job, calls)
	checkCallback(t, catch, external)
	if len(catch.of(quiet, caller).spans) > 0 {
		t.Error("a trace that was not to be kept has spans")
	}
	for _, header := range calls.wait(t, "/quiet", 2)[:1] {
		if got := header.Get("Traceparent"); !strings.HasPrefix(got, "00-"+hex.EncodeToString(quiet[:])) || !strings.HasSuffix(got, "-00") {
			t.Errorf("the called service received %s", got)
		}
	}
	checkBatches(t, catch)
	checkSecrets(t, catch)
}

const briefJob = `{"jobType": "SIMULATION", "payload": {"steps": [{"type": "LOG", "message": "canary-log"}]}}`

func manyJobs(n int) []byte {
	return []byte(`{"jobs": [` + strings.TrimSuffix(strings.Repeat(briefJob+",", n), ",") + `]}`)
}

// checkJob checks the trace of a job whose first attempt fails.
func checkJob(t *testing.T, got tree, job string, calls *calls) {
	t.Helper()
	root := []string{"gateway: send job-created", "gateway: POST /api/jobs"}
	server := got.one("gateway: POST /api/jobs")
	if server.parent() != caller || server.attr("http.response.status_code") == "" || server.Kind != otlp.Span_SPAN_KIND_SERVER {
		t.Errorf("the request's span is %v", server)
	}
	got.one("gateway: JobInsertMany", "gateway: POST /api/jobs")
	process := append([]string{"ingest: process job-created"}, root...)
	got.one(process[0], root...)
	runs := got.below("runjob: run FUNCTION")
	if len(runs) != 2 {
		t.Fatalf("there are %d attempts", len(runs))
	}
	slices.SortFunc(runs, func(a, b span) int { return cmp.Compare(a.StartTimeUnixNano, b.StartTimeUnixNano) })
	first, second := runs[0], runs[1]
	got.one("runjob: run FUNCTION", append([]string{"*: send run-job"}, root...)...) // the second
	if first.attr(telemetry.AttrAttempt) != "&{1}" || first.Status.Code != otlp.Status_STATUS_CODE_ERROR || len(first.Links) != 0 ||
		first.attr("error.type") == "" || first.attr(telemetry.AttrJobID) != job || first.attr("messaging.destination.name") != "run-job" {
		t.Errorf("the first attempt is %v", first)
	}
	if len(second.Links) != 1 || hex.EncodeToString(second.Links[0].SpanId) != first.id() || second.Status.Code == otlp.Status_STATUS_CODE_ERROR {
		t.Errorf("the second attempt is %v", second)
	}
	seen := calls.wait(t, "/function", 2)
	for i, attempt := range []span{first, second} {
		call := slices.IndexFunc(got.spans, func(s span) bool { return s.String() == "runjob: POST" && s.parent() == attempt.id() })
		if call < 0 {
			t.Fatalf("attempt %d has no call", i+1)
		}
		prefix := "00-" + attempt.trace() + "-"
		if h := seen[i]; h.Get("Traceparent") != prefix+got.spans[call].id()+"-01" || h.Get("Ce-Traceparent") != prefix+attempt.id()+"-01" {
			t.Errorf("the called service received %s and %s", h.Get("Traceparent"), h.Get("Ce-Traceparent"))
		}
	}
	ends := got.below("projection: process job-status", "outcome: send job-status", "outcome: process attempt-ended",
		"runjob: send attempt-ended", "runjob: run FUNCTION")
	if len(ends) != 2 { // one for each attempt
		t.Errorf("%d statuses stand below an attempt", len(ends))
	}
	statements := slices.ContainsFunc(got.spans, func(s span) bool {
		return s.is("outcome: COMMIT") && s.attr("db.system.name") == "postgresql" && s.attr("db.namespace") == "jobweaver_scheduler"
	})
	if !statements {
		t.Log("no transaction of outcome was for this job alone") // then a batch holds it
	}
	got.one("notify: POST", "notify: deliver job-status", root[0])
}

// checkCallback checks a job whose callback has a trace of its own.
func checkCallback(t *testing.T, catch *spanCatch, external client.Accepted) {
	t.Helper()
	got := catch.of(uuid.MustParse(external.TraceID), "")
	run := got.one("runjob: run EXTERNAL")
	got.one("outcome: process attempt-ended", "gateway: send attempt-ended", "runjob: run EXTERNAL")
	if id := jobevent.SpanID(jobevent.AttemptToken(uuid.MustParse(external.JobID), 1)); run.id() != hex.EncodeToString(id[:]) {
		t.Errorf("the attempt's span is %s", run.id())
	}
	at := slices.IndexFunc(catch.spans, func(s span) bool { return s.String() == "gateway: POST /api/jobs/callback" })
	if at < 0 || len(catch.spans[at].Links) != 1 || hex.EncodeToString(catch.spans[at].Links[0].SpanId) != run.id() {
		t.Errorf("the callback's span links to no attempt")
	}
}

// checkBatches: a span of work for many jobs is in none of their traces, and links to each.
func checkBatches(t *testing.T, catch *spanCatch) {
	t.Helper()
	byID := map[string]span{}
	for _, s := range catch.spans {
		byID[s.id()] = s
	}
	found := map[string]bool{}
	for _, s := range catch.spans {
		if s.Name != "process batch" && s.Name != "claim attempts" && s.Name != "settle attempts" {
			continue
		}
		found[s.String()] = true
		if len(s.ParentSpanId) > 0 || len(s.Links) < 2 {
			t.Errorf("%s stands below %q, and has %d links", s, s.parent(), len(s.Links))
		}
		for _, link := range s.Links {
			if to, known := byID[hex.EncodeToString(link.SpanId)]; !known || bytes.Equal(to.TraceId, s.TraceId) {
				t.Errorf("%s links to %v", s, link)
			}
		}
	}
	if !found["ingest: process batch"] {
		t.Errorf("of batches there are %v", found)
	}
}

// checkSecrets: no span contains data of a job, or a credential.
func checkSecrets(t *testing.T, catch *spanCatch) {
	t.Helper()
	for _, s := range catch.spans {
		all := s.String() + s.Span.String()
		for _, never := range []string{"canary", "whsec", "token=", "select", "insert into"} {
			if strings.Contains(all, never) {
				t.Errorf("%q is in %s", never, all)
			}
		}
		if s.EndTimeUnixNano < s.StartTimeUnixNano || time.Since(time.Unix(0, int64(s.StartTimeUnixNano))) > time.Hour {
			t.Errorf("%s was from %d to %d", s, s.StartTimeUnixNano, s.EndTimeUnixNano)
		}
	}
}
