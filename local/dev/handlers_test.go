package dev_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/local/dev"
	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/outbound"
)

// visit is one installation in which several tests check how results of handlers are shown.
type visit struct {
	t    *testing.T
	api  *client.Client
	open chan struct{} // closed: TALK continues

	mu         sync.Mutex
	starts     map[string][]time.Time // of handlers, by job
	reportedAt time.Time              // when TALK had reported everything
}

func TestReportsOfAHandlerAreShown(t *testing.T) {
	t.Parallel()
	v := &visit{t: t, open: make(chan struct{}), starts: map[string][]time.Time{}}
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(busy.Close)
	calls, err := outbound.New(outbound.Config{Allow: []string{"127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(calls.Close)
	o := options(t, newFolder(t))
	o.Handlers = map[string]handlers.Handler{
		"TALK": v.talk, "ANSWER": v.answer, "CALL": v.noting(handlers.NewSimulation(calls).Run),
	}
	err = dev.Run(t.Context(), o, func(ctx context.Context, url string) error {
		v.api = client.New(url, "")
		v.thatItWantsToWait(ctx, busy.URL) // first, because it also waits until the installation works
		v.whileItRuns(ctx)
		v.thatItIsOver(ctx)
		v.itsOutput(ctx)
		v.itsTime(ctx)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// soon bounds the delay until a handler's report is seen: 2 s, and more for a busy machine, but less than the 10 s to
// the next tick, which would also show it.
const soon = 8 * time.Second

// whileItRuns: progress and log lines are seen while the handler still works.
func (v *visit) whileItRuns(ctx context.Context) {
	id := v.submit(ctx, "TALK", `{}`, "")
	job := v.until(ctx, id, "its progress is shown", func(j *client.Job) bool { return j.Progress != nil })
	seen := time.Now()
	if p := *job.Progress; p.Percent != 42 || p.Message != "halfway" || job.Status != "RUNNING" {
		v.t.Errorf("shows %+v, %s", p, job.Status)
	}
	var lines []logLine
	v.until(ctx, id, "its lines are shown", func(*client.Job) bool { lines = v.logs(ctx, id, 1); return len(lines) == 200 })
	v.mu.Lock()
	late := seen.Sub(v.reportedAt)
	v.t.Logf("progress seen after %s, lines after %s", late, time.Since(v.reportedAt))
	v.mu.Unlock()
	if late > soon {
		v.t.Errorf("its progress was seen after %s", late)
	}
	if lines[0].Text != "line 0" || lines[198].Text != "line 198" || !strings.HasPrefix(lines[199].Text, "truncated: ") {
		v.t.Errorf("lines %+v … %+v", lines[0], lines[198:])
	}
	if got := v.logs(ctx, id, 2); len(got) != 0 {
		v.t.Errorf("lines of an attempt that there was not: %+v", got)
	}
	close(v.open)
	if job := v.end(ctx, id); job.Status != "COMPLETED" || string(job.Output) != `{"reported":"all"}` {
		v.t.Errorf("ended %s with %s", job.Status, job.Output)
	}
}

// talk uses all means of a handler to report, and waits.
func (v *visit) talk(ctx context.Context, a *handlers.Attempt) (handlers.Result, error) {
	for i := range 300 {
		a.Log(slog.LevelInfo, fmt.Sprintf("line %d", i))
	}
	a.Progress(42, "halfway")
	v.mu.Lock()
	v.reportedAt = time.Now()
	v.mu.Unlock()
	select {
	case <-v.open:
	case <-ctx.Done():
	}
	return handlers.Result{Output: json.RawMessage(`{"reported":"all"}`)}, nil
}

// thatItWantsToWait: a snooze counts no retry, a "retry after" does, and both are exact.
func (v *visit) thatItWantsToWait(ctx context.Context, busy string) {
	call := fmt.Sprintf(`{"steps": [{"type": "HTTP_CALL", "url": %q}]}`, busy)
	for _, c := range []struct {
		what, jobType, payload, state string
		wait                          time.Duration
		retries, attempts             int
	}{
		{"snoozes", "ANSWER", `{"snooze": 700}`, "SCHEDULED", 700 * time.Millisecond, 0, 2},
		{"asks to be tried later", "ANSWER", `{"retryAfter": 600}`, "RETRYING", 600 * time.Millisecond, 1, 2},
		{"called who is busy for a second", "CALL", call, "RETRYING", time.Second, 1, 2},
	} {
		id := v.submit(ctx, c.jobType, c.payload, `, "maxRetryCount": 1`)
		job := v.end(ctx, id)
		if job.RetryCount != c.retries || job.Attempt != c.attempts {
			v.t.Errorf("who %s: %s after %d retries and %d attempts", c.what, job.Status, job.RetryCount, job.Attempt)
		}
		moved := slices.IndexFunc(job.History, func(m client.Move) bool { return m.To == c.state && m.Attempt == 1 })
		if starts := v.startsOf(id); moved < 0 || len(starts) != 2 {
			v.t.Errorf("who %s: %d starts, history %+v", c.what, len(starts), job.History)
		} else if late := starts[1].Sub(starts[0]) - c.wait; late < 0 || late > soon {
			v.t.Errorf("who %s is tried again %s late", c.what, late)
		} else {
			v.t.Logf("who %s is tried again %s late", c.what, late)
		}
	}
}

// thatItIsOver: an attempt that fails for good is not retried.
func (v *visit) thatItIsOver(ctx context.Context) {
	gone := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) }))
	defer gone.Close()
	for what, c := range map[string]struct{ jobType, payload, code string }{
		"a handler":   {"ANSWER", `{"fail": true}`, "TEST.FAILED"},
		"a FAIL step": {"CALL", `{"steps": [{"type": "FAIL", "errorCode": "DEMO", "retryable": false}]}`, "DEMO"},
		"an HTTP_CALL": {
			"SIMULATION", fmt.Sprintf(`{"steps": [{"type": "HTTP_CALL", "url": %q}]}`, gone.URL), "WORKER.SIMULATION_FAILED",
		},
	} {
		job := v.end(ctx, v.submit(ctx, c.jobType, c.payload, `, "maxRetryCount": 5`))
		if job.Status != "FAILED" || job.Attempt != 1 || job.RetryCount != 0 || job.LastError.ErrorCode != c.code {
			v.t.Errorf("%s: %s at attempt %d with %+v", what, job.Status, job.Attempt, job.LastError)
		}
		if c.jobType == "SIMULATION" && !strings.Contains(job.LastError.Message, "answered 410") {
			v.t.Errorf("what listens beside the installation is not reached: %+v", job.LastError)
		}
	}
}

// itsOutput: an output is stored whole up to the limit; above it the attempt fails for good.
func (v *visit) itsOutput(ctx context.Context) {
	job := v.end(ctx, v.submit(ctx, "ANSWER", fmt.Sprintf(`{"output": %d}`, handlers.MaxOutput), ""))
	if job.Status != "COMPLETED" || len(job.Output) != handlers.MaxOutput {
		v.t.Errorf("the largest output: %s, %d bytes", job.Status, len(job.Output))
	}
	job = v.end(ctx, v.submit(ctx, "ANSWER", fmt.Sprintf(`{"output": %d}`, handlers.MaxOutput+1), `, "maxRetryCount": 5`))
	if job.Status != "FAILED" || job.Attempt != 1 || job.LastError.ErrorCode != "WORKER.OUTPUT_TOO_LARGE" ||
		!strings.Contains(job.LastError.Message, "262145") || job.Output != nil && string(job.Output) != "null" {
		v.t.Errorf("a larger output: %s at attempt %d with %+v", job.Status, job.Attempt, job.LastError)
	}
}

// itsTime: jobs for an instant start then, not at the next tick.
func (v *visit) itsTime(ctx context.Context) {
	at := time.Now().Add(3 * time.Second).UTC().Truncate(time.Millisecond)
	type instants struct{ due, accepted time.Time }
	submitted := map[string]instants{}
	for i := range 200 {
		at := at.Add(time.Duration(i) * 10 * time.Millisecond)
		id := v.submit(ctx, "ANSWER", `{}`, `, "runAt": "`+at.Format(time.RFC3339Nano)+`"`)
		submitted[id] = instants{at, time.Now()}
	}
	var late []time.Duration
	for id, job := range submitted {
		if got := v.end(ctx, id); got.Status != "COMPLETED" {
			v.t.Errorf("%s is %s", id, got.Status)
			continue
		}
		started := v.startsOf(id)[0]
		if started.Before(job.due) {
			v.t.Errorf("%s started %s early", id, job.due.Sub(started))
		}
		// A busy machine may accept a job when it is due already.
		late = append(late, min(started.Sub(job.due), started.Sub(job.accepted)))
	}
	slices.Sort(late)
	v.t.Logf("started late: p50 %s, p99 %s, most %s", late[len(late)/2], late[len(late)*99/100], late[len(late)-1])
	// The race detector slows a busy machine by more than the time between two ticks.
	if late[len(late)*99/100] > soon && !testing.Short() {
		v.t.Errorf("started up to %s late", late[len(late)-1])
	}
}

// answer does what its payload asks at the first attempt; times are in milliseconds.
func (v *visit) answer(ctx context.Context, a *handlers.Attempt) (handlers.Result, error) {
	return v.noting(func(_ context.Context, a *handlers.Attempt) (r handlers.Result, err error) {
		var p struct {
			Snooze, RetryAfter time.Duration
			Fail               bool
			Output             int
		}
		if err := json.Unmarshal(a.Payload, &p); err != nil {
			return r, err
		}
		if p.Fail || p.RetryAfter > 0 && a.Number == 1 {
			return r, &handlers.Failure{
				Code: "TEST.FAILED", Message: "as it should", Retryable: !p.Fail, RetryAfter: p.RetryAfter * time.Millisecond,
			}
		}
		if a.Number == 1 {
			r.Snooze = p.Snooze * time.Millisecond
		}
		if p.Output > 0 {
			r.Output = json.RawMessage(`"` + strings.Repeat("x", p.Output-2) + `"`)
		}
		return r, nil
	})(ctx, a)
}

// noting wraps a handler and records its starts.
func (v *visit) noting(h handlers.Handler) handlers.Handler {
	return func(ctx context.Context, a *handlers.Attempt) (handlers.Result, error) {
		v.mu.Lock()
		v.starts[a.JobID.String()] = append(v.starts[a.JobID.String()], time.Now())
		v.mu.Unlock()
		return h(ctx, a)
	}
}

func (v *visit) startsOf(id string) []time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.starts[id]
}

func (v *visit) submit(ctx context.Context, jobType, payload, more string) string {
	v.t.Helper()
	accepted, err := v.api.SubmitJSON(ctx, fmt.Appendf(nil, `{"jobType": %q, "payload": %s%s}`, jobType, payload, more))
	if err != nil {
		v.t.Error(err)
	}
	return accepted.JobID
}

// until reads a job until it has the wanted state, or the context ends.
func (v *visit) until(ctx context.Context, id, what string, wanted func(*client.Job) bool) *client.Job {
	v.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		job, err := v.api.Get(ctx, id, 20*time.Millisecond)
		if err != nil {
			v.t.Fatal(err)
		}
		if wanted(job) {
			return job
		}
		if time.Now().After(deadline) {
			v.t.Fatalf("waited in vain until %s: %s", what, job.Raw)
		}
	}
}

func (v *visit) end(ctx context.Context, id string) *client.Job {
	v.t.Helper()
	return v.until(ctx, id, "it has ended", (*client.Job).Terminal)
}

type logLine struct {
	Attempt int    `json:"attempt"`
	Text    string `json:"text"`
}

func (v *visit) logs(ctx context.Context, id string, attempt int) []logLine {
	v.t.Helper()
	var body struct{ Logs []logLine }
	path := fmt.Sprintf("/api/jobs/%s/logs?attempt=%d", id, attempt)
	if _, err := v.api.Do(ctx, http.MethodGet, path, "", nil, &body); err != nil {
		v.t.Fatal(err)
	}
	slices.SortStableFunc(body.Logs, func(a, b logLine) int { return cmp.Compare(a.Attempt, b.Attempt) })
	return body.Logs
}
