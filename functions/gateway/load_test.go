package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/functions/gateway"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/testwait"
)

// announce begins a request whose body is announced with a size. It sends only the beginning, once the gateway reads.
func (c *client) announce(path string, size int, beginning string, headers ...string) net.Conn {
	c.t.Helper()
	conn, err := new(net.Dialer).DialContext(c.t.Context(), "tcp", strings.TrimPrefix(c.base, "http://"))
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = conn.Close() })
	head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"+
		"Expect: 100-continue\r\nContent-Length: %d\r\n", path, size)
	for i := 0; i < len(headers); i += 2 {
		head += headers[i] + ": " + headers[i+1] + "\r\n"
	}
	const goOn = "HTTP/1.1 100 Continue\r\n\r\n"
	answer := make([]byte, len(goOn))
	_, err1 := io.WriteString(conn, head+"\r\n")
	_, err2 := io.ReadFull(conn, answer)
	_, err3 := io.WriteString(conn, beginning)
	if err := errors.Join(err1, err2, err3); err != nil || string(answer) != goOn {
		c.t.Fatalf("%q, %v", answer, err)
	}
	return conn
}

// One owner with many large bodies must not take all the memory.
func TestBodiesOfAnOwnerGetHalfOfTheFreeMemory(t *testing.T) {
	t.Parallel()
	h := openLocked(t)
	greedy, other := h.as("greedy", "submit"), h.as("other", "submit")
	small := `{"jobs": [` + plainJob + `]}`
	batch := func(c *client, size int) *response {
		return c.post("/api/jobs/batch", small+strings.Repeat(" ", size-len(small)))
	}
	const large = 16 << 20
	var conns []net.Conn
	for _, size := range []int{large, large / 2} {
		conns = append(conns, greedy.announce("/api/jobs/batch", size, "{", "X-Api-Key", greedy.key))
	}
	batch(greedy, 1<<10).want(http.StatusTooManyRequests)
	r := greedy.post("/api/jobs", plainJob)
	if r.want(http.StatusTooManyRequests); r.header.Get("Retry-After") == "" {
		t.Error("the response has no Retry-After")
	}
	batch(other, 11<<20).want(http.StatusOK)
	other.post("/api/jobs", plainJob).want(http.StatusAccepted)
	for _, conn := range conns {
		_ = conn.Close()
	}
	testwait.Until(t, "a 200", func() bool { return batch(greedy, large).status == http.StatusOK })
}

func TestBodyWithoutALengthIsCountedAsItArrives(t *testing.T) {
	t.Parallel()
	h := openLocked(t)
	greedy := h.as("greedy", "submit")
	conn := greedy.announce("/api/jobs/batch", 16<<20, "{", "X-Api-Key", greedy.key)
	_ = greedy.announce("/api/jobs/batch", 7<<20, "{", "X-Api-Key", greedy.key)
	chunked := func() int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.base+"/api/jobs/batch",
			io.MultiReader(strings.NewReader(strings.Repeat(" ", 2<<20)), strings.NewReader(`{"jobs": []}`)))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("X-Api-Key", greedy.key)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return 0
		}
		_ = res.Body.Close()
		return res.StatusCode
	}
	if got := chunked(); got != http.StatusTooManyRequests {
		t.Errorf("answered %d", got)
	}
	_ = conn.Close()
	testwait.Until(t, "a 400 for a body without jobs", func() bool { return chunked() == http.StatusBadRequest })
}

// A client with a valid secret is served even if other clients of its address send wrong ones.
func TestValidSecretIsAcceptedFromAnAddressWithManyFailures(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.submit(plainJob)
	c := h.behind(edge.LimitsConfig{AuthFailureLimit: 1})
	report := func(c *client, secret string, progress int, more string) *response {
		return c.post("/api/jobs/callback", fmt.Sprintf(
			`{"jobId": %q, "attempt": 1, "status": "PROGRESS", "progress": {"percent": %d}%s}`, id, progress, more),
			"X-Callback-Secret", secret)
	}
	report(c, "wrong", 1, "").want(http.StatusUnauthorized)
	report(c, "wrong", 1, "").want(http.StatusTooManyRequests)
	for range 20 { // long bodies that never arrive
		c.announce("/api/jobs/callback", 512<<10, strings.Repeat(" ", 5<<10), "X-Callback-Secret", "wrong")
	}
	report(c, globalSecret, 2, "").want(http.StatusOK)
	c = h.behind(edge.LimitsConfig{AuthFailureLimit: 1})
	for range 2 {
		report(c, "wrong", 1, "")
	}
	var all errgroup.Group
	for n := range 8 { // they arrive one after the other, and none is refused
		all.Go(func() error {
			if r := report(c, globalSecret, 10+n, strings.Repeat(" ", 100<<10)); r.status != http.StatusOK {
				t.Errorf("a long body with the right secret: %d %s", r.status, r.body)
			}
			return nil
		})
	}
	_ = all.Wait()
}

// Many health requests must not open as many connections to the broker.
func TestHealthChecksTheBrokerOnceASecond(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	h := openWith(t, func(cfg *gateway.Config) {
		ask := cfg.Broker
		cfg.Broker = func(ctx context.Context) error { asked.Add(1); return ask(ctx) }
	})
	began := time.Now()
	var all errgroup.Group
	for range 20 {
		all.Go(func() error {
			for range 10 {
				h.get("/api/health").want(http.StatusOK)
			}
			return nil
		})
	}
	_ = all.Wait()
	if n, most := asked.Load(), int32(time.Since(began)/time.Second)+1; n < 1 || n > most {
		t.Errorf("200 requests asked it %d times, %d is the most", n, most)
	}
}

// The health endpoint must not let a client guess keys without a limit.
func TestWrongKeysAreCountedAtHealthToo(t *testing.T) {
	t.Parallel()
	c := openWith(t, func(cfg *gateway.Config) { cfg.Auth, cfg.Limits.AuthFailureLimit = gateway.AuthOn, 20 })
	for range 30 {
		c.get("/api/health").want(http.StatusOK) // without a key there is no failure
	}
	refused := 0
	for c.get("/api/health", "X-Api-Key", "jw_wrong").status == http.StatusOK {
		if refused++; refused > 1000 {
			t.Fatal("as often as they like")
		}
	}
	if refused < 19 {
		t.Errorf("only %d times", refused)
	}
	if body := string(c.as("", "admin").get("/api/health").want(http.StatusOK).body); !strings.Contains(body, "pendingJobs") {
		t.Errorf("a right key is shown %s", body)
	}
}

// A few large requests for schedules and logs must not exhaust memory.
func TestLargeSchedulesAndLogsArePaged(t *testing.T) {
	t.Parallel()
	h := open(t)
	const schedules, attempts = 12, 40
	large := strings.Repeat("x", 400<<10)
	for n := range schedules {
		h.post("/api/schedules", fmt.Sprintf(
			`{"name": "s%02d", "cron": "@daily", "paused": true, "job": {"jobType": "MAIL", "payload": %q}}`, n, large)).want(http.StatusCreated)
	}
	seen := 0
	for cursor := ""; ; {
		var page struct {
			Schedules  []struct{ Name string }
			NextCursor *string
		}
		h.get("/api/schedules?limit=200" + cursor).want(http.StatusOK).into(&page)
		for _, s := range page.Schedules {
			if want := fmt.Sprintf("s%02d", seen); s.Name != want {
				t.Errorf("%s comes where %s should", s.Name, want)
			}
			seen++
		}
		if len(page.Schedules) > 6 {
			t.Errorf("%d schedules of 400 KiB on a page", len(page.Schedules))
		}
		if page.NextCursor == nil {
			break
		}
		cursor = "&cursor=" + url.QueryEscape(*page.NextCursor)
	}
	if seen != schedules {
		t.Errorf("%d schedules", seen)
	}
	id := h.submit(plainJob)
	h.sql(`insert into attempt_logs (job_id, attempt, first_line, lines)
		select $1, attempt, 0, (select json_agg(json_build_object('at', '2026-11-22T08:00:00Z', 'level', 'info', 'text', repeat('x', 1000)))
			from generate_series(1, 60)) from generate_series(1, $2::int) as attempt`, nil, id, attempts)
	lines, path := 0, "/api/jobs/"+id.String()
	for cursor, last := "", attempts; ; {
		var page struct {
			Logs       []struct{ Attempt int }
			NextCursor *string
		}
		r := h.get(path + "/logs" + cursor).want(http.StatusOK)
		r.into(&page)
		if len(r.body) > 3<<19 {
			t.Errorf("a page of %d bytes", len(r.body))
		}
		if n := len(page.Logs); n > 0 {
			if page.Logs[n-1].Attempt != last {
				t.Errorf("a page ends with attempt %d, want %d", page.Logs[n-1].Attempt, last)
			}
			lines, last = lines+n, page.Logs[0].Attempt-1
		}
		if page.NextCursor == nil {
			break
		}
		cursor = "?cursor=" + *page.NextCursor
	}
	if lines != attempts*60 {
		t.Errorf("%d lines on all pages", lines)
	}
	if r := h.get(path).want(http.StatusOK); len(r.body) > 512<<10 || !strings.Contains(string(r.body), `"attempt":40`) {
		t.Errorf("the job shows %d bytes", len(r.body))
	}
	h.get(path+"/logs?cursor=x").wantError(apierror.InvalidJobRequest, "cursor")
}
