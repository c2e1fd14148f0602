package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/functions/gateway"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/secret"
	"github.com/jobweaver/jobweaver/shared/webhook"
)

// seldom is a rate at which a second request is always too early, however slow the machine is.
const seldom = 0.001

// behind returns a client of another gateway on the same database, with its own limits.
func (h *fixture) behind(limits edge.LimitsConfig) *client {
	h.t.Helper()
	f := mustNew(h.t, gateway.Config{
		Auth: gateway.AuthOff, Queues: []string{"default"}, JobTypes: []string{"MAIL"}, Limits: limits, Broker: h.broker.ask,
		Callbacks: webhook.CallbackConfig{Secrets: secret.AllOf(globalSecret)},
	}, h.store.Store)
	server := httptest.NewServer(f.Handler())
	h.t.Cleanup(server.Close)
	return &client{t: h.t, base: server.URL}
}

func (r *response) wantSlower() {
	r.t.Helper()
	r.wantError(apierror.RateLimited)
	if after, err := strconv.Atoi(r.header.Get("Retry-After")); err != nil || after < 1 {
		r.t.Errorf("Retry-After %q", r.header.Get("Retry-After"))
	}
}

func TestRequestsAboveTheRateGetRetryAfter(t *testing.T) {
	t.Parallel()
	c := open(t).behind(edge.LimitsConfig{RateLimit: seldom})
	first := c.get("/api/jobs").want(http.StatusOK)
	if got := first.header.Get("RateLimit-Policy"); got != `"requests";q=1;w=1000` {
		t.Errorf("RateLimit-Policy %s", got)
	}
	if got := first.header.Get("RateLimit"); !strings.HasPrefix(got, `"requests";r=0;t=`) {
		t.Errorf("RateLimit %s", got)
	}
	for _, again := range []*response{c.get("/api/jobs"), c.post("/api/jobs", plainJob), c.get("/"), c.get("/api/health"), c.get("/api/openapi.yaml")} {
		again.wantSlower()
	}
	if again := c.get("/api/jobs"); again.header.Get("RateLimit") != `"requests";r=0;t=`+again.header.Get("Retry-After") {
		t.Errorf("RateLimit %s, Retry-After %s", again.header.Get("RateLimit"), again.header.Get("Retry-After"))
	}
}

func TestEachOwnerHasItsOwnLimit(t *testing.T) {
	t.Parallel()
	h := openWith(t, func(cfg *gateway.Config) { cfg.Auth, cfg.Limits.RateLimit = gateway.AuthOn, seldom })
	acme, too, other, all := h.as("acme", "read"), h.as("acme", "admin"), h.as("beta", "read"), h.as("", "admin")
	acme.get("/api/jobs").want(http.StatusOK)
	too.get("/api/stats").wantSlower() // with any key of the owner
	acme.post("/api/jobs", plainJob).wantSlower()
	other.get("/api/jobs").want(http.StatusOK)
	all.get("/api/jobs").want(http.StatusOK)
	h.get("/").want(http.StatusOK) // without an owner, counted by address
	h.get("/").wantSlower()
	h.get("/api/jobs").wantError(apierror.Unauthorized)
}

func TestWithoutALimitThereAreNoRateLimitHeaders(t *testing.T) {
	t.Parallel()
	r := open(t).get("/api/jobs").want(http.StatusOK)
	if r.header.Get("RateLimit-Policy")+r.header.Get("RateLimit") != "" {
		t.Errorf("got %v", r.header)
	}
}

func TestBatchBeyondTheLimitIsAcceptedAndPaidBack(t *testing.T) {
	t.Parallel()
	h := open(t)
	c := h.behind(edge.LimitsConfig{RateLimitJobs: seldom})
	batch := `{"jobs": [` + plainJob + "," + plainJob + "," + plainJob + `]}`
	if r := c.post("/api/jobs/batch", batch).want(http.StatusOK); r.header.Get("RateLimit-Policy") != `"jobs";q=1;w=1000;jobweaver-unit="jobs"` {
		t.Errorf("RateLimit-Policy %s", r.header.Get("RateLimit-Policy"))
	}
	for _, c := range []*response{
		c.post("/api/jobs", plainJob), c.post("/api/jobs/batch", batch),
		c.post("/events", plainJob, "Ce-Specversion", "1.0", "Ce-Id", "1", "Ce-Source", "/t", "Ce-Type", submitType),
	} {
		c.wantSlower()
		if after, _ := strconv.Atoi(c.header.Get("Retry-After")); after < 2_000 {
			t.Errorf("Retry-After %d does not pay three jobs back", after)
		}
	}
	c.get("/api/jobs").want(http.StatusOK)
	c.post("/api/jobs", `{}`).wantError(bad) // an invalid job does not count
	if n := h.rows(); n != 3 {
		t.Errorf("%d jobs", n)
	}
}

func TestNumberOfHeldResponsesIsLimited(t *testing.T) {
	t.Parallel()
	h := open(t)
	c, id := h.behind(edge.LimitsConfig{WaitLimit: 1}), h.submit(plainJob)
	path := "/api/jobs/" + id.String()
	letGo := c.hold(path)
	c.get(path + "?wait=1ms").wantSlower()
	c.get(path).want(http.StatusOK)
	letGo()
	for c.get(path+"?wait=1ms").status != http.StatusOK {
		if t.Context().Err() != nil {
			t.Fatal("it is held for ever")
		}
	}
}

// hold holds a response about a job, the only one that WAIT_LIMIT allows, until letGo.
func (c *client) hold(path string) (letGo func()) {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	held := make(chan error, 1)
	go func() { held <- holdOn(ctx, c.base+path+"?wait=60s") }()
	for c.get(path+"?wait=1ms").status == http.StatusOK { // until the other one is held
		if len(held) > 0 {
			c.t.Fatal(<-held)
		}
	}
	return func() {
		c.t.Helper()
		cancel()
		if err := <-held; !errors.Is(err, context.Canceled) {
			c.t.Error(err)
		}
	}
}

// holdOn repeats the request until its response is held, and returns the error that ended it.
func holdOn(ctx context.Context, url string) error {
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		_ = res.Body.Close()
		if res.StatusCode != http.StatusTooManyRequests {
			return fmt.Errorf("answered %d", res.StatusCode)
		}
	}
}

func TestAddressWithManyFailuresIsSlowedDown(t *testing.T) {
	t.Parallel()
	h := open(t)
	c, id := h.behind(edge.LimitsConfig{AuthFailureLimit: 20}), h.submit(plainJob)
	body := fmt.Sprintf(`{"jobId": %q, "attempt": 1, "status": "COMPLETED", "output": 1}`, id)
	refused := 0
	for c.post("/api/jobs/callback", body, "X-Callback-Secret", "wrong").status == http.StatusUnauthorized {
		if refused++; refused > 1000 {
			t.Fatal("as often as they like")
		}
	}
	if refused < 20 {
		t.Errorf("only %d times refused", refused)
	}
	c.post("/api/jobs/callback", body, "X-Callback-Secret", globalSecret).want(http.StatusOK)
}

// A client that forgot the header must see that the key is missing, not that it is too fast.
func TestRequestWithoutAKeyIs401HoweverOftenItIsSent(t *testing.T) {
	t.Parallel()
	h := openWith(t, func(cfg *gateway.Config) { cfg.Auth, cfg.Limits.AuthFailureLimit = gateway.AuthOn, 1 })
	for range 50 {
		r := h.get("/api/jobs")
		if r.wantError(apierror.Unauthorized); !strings.Contains(r.error().Message, "is required; send the header 'Authorization: Bearer") {
			t.Fatalf("answered %s", r.body)
		}
		h.post("/api/jobs/callback", `{}`).wantError(apierror.Unauthorized)
	}
	h.get("/api/jobs", "Authorization", "Bearer wrong").wantError(apierror.Unauthorized)
	r := h.get("/api/jobs", "X-Api-Key", "wrong")
	if r.wantSlower(); !strings.HasPrefix(r.error().Message, "rate limit exceeded: 1 wrong keys or secrets a minute") {
		t.Errorf("answered %s", r.body)
	}
	h.get("/api/jobs").wantError(apierror.Unauthorized)
}

func TestErrorIsAProblemDocumentIfTheClientAcceptsIt(t *testing.T) {
	t.Parallel()
	h := open(t)
	for path, status := range map[string]int{"/api/jobs?limit=0": 400, "/api/jobs/none": 404, "/api/nothing": 404} {
		r := h.get(path, "Accept", "application/problem+json, application/json;q=0.5").want(status)
		var problem struct {
			Type, Title, Detail, Instance, Message, ErrorCode string
			Status                                            int
		}
		r.into(&problem)
		if r.header.Get("Content-Type") != "application/problem+json" || problem.Type != "about:blank" || problem.Title != http.StatusText(status) ||
			problem.Detail != problem.Message || problem.ErrorCode == "" || problem.Status != status ||
			problem.Instance != "urn:uuid:"+r.header.Get("X-Trace-Id") {
			t.Errorf("%s: %v %s", path, r.header, r.body)
		}
		if plain := h.get(path, "Accept", "application/json"); plain.header.Get("Content-Type") != "application/json; charset=utf-8" {
			t.Errorf("%s: %v", path, plain.header)
		}
	}
}

func TestA429NamesItsLimit(t *testing.T) {
	t.Parallel()
	h := open(t)
	for want, c := range map[string]*client{
		"rate limit exceeded: 1 requests in 1000 s; retry in ": h.behind(edge.LimitsConfig{RateLimit: seldom}),
		"rate limit exceeded: 1 jobs in 1000 s; retry in ":     h.behind(edge.LimitsConfig{RateLimitJobs: seldom}),
	} {
		c.post("/api/jobs", plainJob).want(http.StatusAccepted)
		if got := c.post("/api/jobs", plainJob).error().Message; !strings.HasPrefix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestProgressReportsOfAnAttemptAreLimited(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.submit(plainJob)
	report := func(c *client, attempt int, more string) *response {
		return c.post("/api/jobs/callback", fmt.Sprintf(`{"jobId": %q, "attempt": %d, %s}`, id, attempt, more), "X-Callback-Secret", globalSecret)
	}
	accepted := 0
	for percent := 0; ; percent++ {
		r := report(h.client, 1, fmt.Sprintf(`"status": "PROGRESS", "progress": {"percent": %d}`, percent%100))
		if r.status != http.StatusOK {
			r.wantSlower()
			break
		}
		if accepted++; accepted > 1000 {
			t.Fatal("as often as it likes")
		}
	}
	if accepted < 10 {
		t.Errorf("only %d times", accepted)
	}
	report(h.client, 1, `"status": "COMPLETED", "output": 1`).want(http.StatusOK)
}

func TestTrustedProxyNamesTheClientsAddress(t *testing.T) {
	t.Parallel()
	h := open(t)
	for name, c := range map[string]struct {
		trusted       []string
		first, second []string // X-Forwarded-For
		same          bool
	}{
		"no proxy is trusted":              {nil, []string{"192.0.2.1"}, []string{"192.0.2.2"}, true},
		"another one is trusted":           {[]string{"10.0.0.0/8"}, []string{"192.0.2.1"}, []string{"192.0.2.2"}, true},
		"two addresses":                    {[]string{"127.0.0.1"}, []string{"192.0.2.1"}, []string{"192.0.2.2"}, false},
		"the same address":                 {[]string{"127.0.0.0/8"}, []string{"192.0.2.1"}, []string{"192.0.2.1"}, true},
		"something made up before it":      {[]string{"127.0.0.1"}, []string{"1.1.1.1, 192.0.2.1"}, []string{"2.2.2.2, 192.0.2.1"}, true},
		"a header made up before it":       {[]string{"127.0.0.1"}, []string{"1.1.1.1", "192.0.2.1"}, []string{"2.2.2.2", "192.0.2.1"}, true},
		"two proxies on the way":           {[]string{"127.0.0.1", "10.0.0.0/8"}, []string{"192.0.2.1, 10.1.1.1"}, []string{"192.0.2.2, 10.1.1.1"}, false},
		"two hosts of one network of IPv6": {[]string{"127.0.0.1"}, []string{"2001:db8::1"}, []string{"2001:db8::ffff"}, true},
		"two networks of IPv6":             {[]string{"127.0.0.1"}, []string{"2001:db8::1"}, []string{"2001:db8:0:1::1"}, false},
		"nonsense":                         {[]string{"127.0.0.1"}, []string{"nobody"}, []string{"\"'--"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			at := h.behind(edge.LimitsConfig{RateLimit: seldom, TrustedProxies: c.trusted}) // one at a time: they share the limits of one store
			t.Parallel()
			if got := forwarded(t, at.base, c.first); got != http.StatusOK {
				t.Errorf("the first got %d", got)
			}
			want := http.StatusOK
			if c.same {
				want = http.StatusTooManyRequests
			}
			if got := forwarded(t, at.base, c.second); got != want {
				t.Errorf("the second got %d, want %d", got, want)
			}
		})
	}
}

func forwarded(t *testing.T, base string, addresses []string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/api/jobs", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header["X-Forwarded-For"] = addresses
	req.Header.Set("X-Real-Ip", addresses[0])
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	return res.StatusCode
}

func TestInvalidLimitPreventsTheStart(t *testing.T) {
	t.Parallel()
	for want, limits := range map[string]edge.LimitsConfig{
		"RATE_LIMIT: ":         {RateLimit: -1},
		"RATE_LIMIT_JOBS: ":    {RateLimitJobs: -0.5},
		"WAIT_LIMIT: ":         {WaitLimit: -1},
		"AUTH_FAILURE_LIMIT: ": {AuthFailureLimit: -1},
		"TRUSTED_PROXIES: ":    {TrustedProxies: []string{"anyone"}},
	} {
		if _, err := gateway.New(gateway.Config{Limits: limits}, &apidb.Store{}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%+v: %v", limits, err)
		}
	}
}

func TestWithoutAuthenticationOnlyLoopbackHostsAreAnswered(t *testing.T) {
	t.Parallel()
	c := open(t).behind(edge.LimitsConfig{})
	for host, status := range map[string]int{
		"localhost": 200, "localhost:8080": 200, "LOCALHOST": 200, "localhost.": 200, "jobs.localhost:1": 200,
		"127.0.0.1:8080": 200, "127.1.2.3": 200, "[::1]": 200, "[::1]:8080": 200, "[::ffff:127.0.0.1]": 200,
		"evil.example": 403, "evil.example:8080": 403, "localhost.evil.example": 403, "127.0.0.1.nip.io": 403, "evillocalhost": 403,
		"0.0.0.0:8080": 403, "192.168.0.1": 403, "[::]": 403, "10.0.0.1:8080": 403, "2130706433": 403, "[fe80::1]": 403,
	} {
		for _, path := range []string{"/api/jobs", "/", "/api/nothing", "/metrics", "/api/health"} {
			req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, c.base+path, nil)
			req.RequestURI, req.Host = "", host
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = res.Body.Close()
			want := status
			if status == 200 && path == "/api/nothing" {
				want = 404
			}
			if res.StatusCode != want {
				t.Errorf("%s on %s answered %d, want %d", path, host, res.StatusCode, want)
			}
		}
	}
}

func TestPageOfAnotherSiteCannotChangeAnything(t *testing.T) {
	t.Parallel()
	h := open(t)
	own := h.base
	id := h.submit(plainJob)
	for _, r := range []struct{ method, path, body string }{
		{"POST", "/api/jobs", plainJob}, {"POST", "/api/jobs/batch", `{"jobs": [` + plainJob + `]}`},
		{"POST", "/api/jobs/" + id.String() + "/cancel", ""}, {"DELETE", "/api/jobs/" + id.String(), ""},
		{"PUT", "/api/controls/queue/default", `{"paused": true}`}, {"POST", "/events", plainJob},
	} {
		for _, headers := range [][]string{
			{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.example"},
			{"Origin", "null"}, {"Sec-Fetch-Site", "cross-site", "Origin", own},
		} {
			h.do(r.method, r.path, r.body, append(headers, "Content-Type", "application/json")...).wantError(apierror.Forbidden)
		}
	}
	for _, headers := range [][]string{{"Origin", own}, {"Sec-Fetch-Site", "same-origin", "Origin", own}, {"Sec-Fetch-Site", "none"}} {
		h.post("/api/jobs", plainJob, headers...).want(http.StatusAccepted)
	}
	h.get("/api/jobs", "Sec-Fetch-Site", "cross-site").want(http.StatusOK) // it changes nothing, and no other site can read it
	if n := h.rows(); n != 4 {
		t.Errorf("%d jobs", n)
	}
}

func TestPageOfAnotherSiteCannotReadAnything(t *testing.T) {
	t.Parallel()
	h := open(t)
	for _, path := range []string{"/api/jobs", "/events", "/", "/api/nothing", "/api/openapi.yaml"} {
		for _, method := range []string{http.MethodOptions, http.MethodGet} {
			r := h.do(method, path, "", "Origin", "https://evil.example", "Access-Control-Request-Method", "GET",
				"Access-Control-Request-Headers", "authorization", "Access-Control-Request-Private-Network", "true")
			for name := range r.header {
				if strings.HasPrefix(name, "Access-Control-") {
					t.Errorf("%s %s: %s", method, path, name)
				}
			}
		}
	}
}

// A body without a length is counted as it arrives.
func TestBodyOfUnknownLengthHasTheSameLimit(t *testing.T) {
	t.Parallel()
	h := open(t)
	for name, c := range map[string]struct {
		path, contentType string
		bytes             int
	}{
		"a job":     {"/api/jobs", "application/json", 512<<10 + 1},
		"a batch":   {"/api/jobs/batch", "application/json", 16<<20 + 1},
		"an event":  {"/events", "application/cloudevents+json", 1 << 20},
		"events":    {"/events", "application/cloudevents-batch+json", 16<<20 + 1},
		"a command": {"/api/operations", "application/json", 1<<20 + 1},
	} {
		t.Run(name, func(t *testing.T) { // one at a time: together, the large bodies of one caller exceed its memory
			body := struct{ io.Reader }{io.LimitReader(unending(' '), int64(c.bytes))}
			res, err := http.Post(h.base+c.path, c.contentType, body)
			if err != nil {
				t.Fatal(err)
			}
			_ = res.Body.Close()
			if res.StatusCode != http.StatusRequestEntityTooLarge {
				t.Errorf("answered %d", res.StatusCode)
			}
		})
	}
	if n := h.rows(); n != 0 {
		t.Errorf("%d jobs", n)
	}
}

// unending returns one byte forever.
type unending byte

func (e unending) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(e)
	}
	return len(p), nil
}

func TestPageOfLargeJobsIsShorter(t *testing.T) {
	t.Parallel()
	h := open(t)
	large, err := json.Marshal(strings.Repeat("x", 250<<10))
	if err != nil {
		t.Fatal(err)
	}
	const jobs = 40
	for range jobs {
		h.scheduler(h.submit(plainJob), 1, jobstate.Completed, func(s *jobevent.Status) { s.Output = large })
	}
	seen, pages, cursor := 0, 0, ""
	for {
		r := h.get("/api/jobs?limit=200" + cursor).want(http.StatusOK)
		var page struct {
			Jobs       []struct{ JobID string }
			NextCursor *string
		}
		r.into(&page)
		seen, pages = seen+len(page.Jobs), pages+1
		if len(r.body) > 5<<19 {
			t.Errorf("a page of %d bytes", len(r.body))
		}
		if page.NextCursor == nil {
			break
		}
		cursor = "&cursor=" + *page.NextCursor
	}
	if seen != jobs || pages != 5 {
		t.Errorf("%d jobs on %d pages", seen, pages)
	}
}
