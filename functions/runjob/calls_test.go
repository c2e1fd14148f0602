package runjob

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/secret"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// external returns a real EXTERNAL handler that may call this machine.
func external(t *testing.T) handlers.Handler {
	t.Helper()
	var cfg handlers.Config
	cfg.Outbound.Allow = []string{"127.0.0.0/8"}
	cfg.Callback.Secrets = secret.AllOf("whsec_Q2FsbGJhY2sgc2VjcmV0IG9mIDI0IGJ5dGVz")
	cfg.Calls.CallbackURL = "https://jobs.example.org/api/jobs/callback"
	registry, err := handlers.Builtin(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(registry.Close)
	return registry.Find("EXTERNAL")
}

// The watchdog asks about the attempt, and a restarted worker reads the record again: the outcome is the same, and the
// outside system is called once.
func TestAWaitingAttemptIsNotCalledAgain(t *testing.T) {
	h := newFixture(t)
	var calls atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls.Add(1) }))
	t.Cleanup(server.Close)
	h.more = map[string]handlers.Handler{"EXTERNAL": external(t)}
	w := h.start(nil)
	run := h.run("EXTERNAL", fmt.Sprintf(`{"url": %q, "callbackTimeoutMs": 60000}`, server.URL))
	h.order(run)
	h.outcome(run)
	h.order(run)
	h.outcomes(run, 2)
	w.stop()
	h.start(nil)
	h.order(run)
	outcomes := h.outcomes(run, 3)
	first, err := jobevent.DecodeAs[jobevent.Waiting](outcomes[0], jobevent.TypeWaiting)
	if err != nil || first.CallbackTimeoutMs > 60_000 || first.CallbackTimeoutMs < 50_000 {
		t.Errorf("published %v, %v", outcomes[0], err)
	}
	for _, e := range outcomes {
		again, err := jobevent.DecodeAs[jobevent.Waiting](e, jobevent.TypeWaiting)
		if err != nil || e.ID() != outcomes[0].ID() || again.CallbackTimeoutMs != first.CallbackTimeoutMs {
			t.Errorf("published %v, %v", e, err)
		}
	}
	if n := calls.Load(); n != 1 {
		t.Errorf("called %d times", n)
	}
}

// The job's timeout bounds only the call.
func TestTheCallOfAnExternalJobTimesOut(t *testing.T) {
	h := newFixture(t)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // otherwise the server does not notice that the client has gone
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	h.more = map[string]handlers.Handler{"EXTERNAL": external(t)}
	h.start(nil)
	run := h.run("EXTERNAL", fmt.Sprintf(`{"url": %q}`, server.URL))
	run.TimeoutMs = 100
	h.order(run)
	if got := h.failed(run); got.ErrorCode != "WORKER.TIMEOUT" || !got.Retryable {
		t.Errorf("failed with %+v", got)
	}
	run = h.run("EXTERNAL", fmt.Sprintf(`{"url": %q}`, server.URL))
	h.order(run)
	h.untilStarted(run)
	h.wantCancel(run)
	if got := h.failed(run); got.Kind != jobevent.KindCancelled {
		t.Errorf("failed with %+v", got)
	}
}

// If a worker stops or is reaped during a call, the next attempt calls again with its own number.
func TestTheNextAttemptCallsAgainUnderItsOwnNumber(t *testing.T) {
	t.Parallel()
	for kind, end := range map[jobevent.Kind]func(*fixture, *worker){
		jobevent.KindInterrupted: func(_ *fixture, w *worker) { w.stop() },
		jobevent.KindLost: func(h *fixture, _ *worker) {
			h.loseAll()
		},
	} {
		t.Run(string(kind), func(t *testing.T) { callsAgain(t, kind, end) })
	}
}

func callsAgain(t *testing.T, kind jobevent.Kind, end func(*fixture, *worker)) {
	t.Helper()
	h := newFixture(t)
	secrets := map[string]string{} // by token
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		token := r.Header.Get("webhook-id")
		h.update(func() { secrets[token] = r.Header.Get("X-Callback-Secret") })
		if strings.HasSuffix(token, ".1") {
			<-r.Context().Done()
		}
	}))
	t.Cleanup(server.Close)
	h.more = map[string]handlers.Handler{"EXTERNAL": external(t)}
	w := h.start(func(c *Config, _ *timing) { c.Grace = 0 })
	run := h.run("EXTERNAL", fmt.Sprintf(`{"url": %q}`, server.URL))
	h.order(run)
	h.until("the first call is there", func() bool { return len(secrets) == 1 })
	end(h, w)
	if got := h.failed(run); got.Kind != kind {
		t.Fatalf("failed with %+v", got)
	}
	w.stop()
	h.start(nil)
	next := run
	next.Attempt = 2
	h.order(run, next)
	if e := h.outcome(next); e.Type() != jobevent.TypeWaiting {
		t.Errorf("published %v", e)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	first, second := secrets[jobevent.AttemptToken(run.JobID, 1)], secrets[jobevent.AttemptToken(run.JobID, 2)]
	if len(secrets) != 2 || first == "" || second == "" || first == second {
		t.Errorf("called with %d tokens", len(secrets))
	}
}

// The text of an outside system's answer is for the job's owner, not for the worker's log.
func TestTheTextOfAnAnswerIsNotLogged(t *testing.T) {
	var log bytes.Buffer
	var mu sync.Mutex
	before := slog.Default()
	telemetry.SetDefault(slog.New(slog.NewTextHandler(lockedWriter{&mu, &log}, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	h := newFixtureAlone(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "the patient has a cold", http.StatusBadRequest)
	}))
	t.Cleanup(server.Close)
	h.more = map[string]handlers.Handler{"EXTERNAL": external(t), "PLAIN": func(context.Context, *handlers.Attempt) (handlers.Result, error) {
		return handlers.Result{}, &handlers.Failure{
			Code: "TEST.PLAIN", Message: "returned by the handler", Cause: errors.New("dial tcp 10.0.3.7:587"),
		}
	}}
	w := h.start(nil)
	run, plain := h.run("EXTERNAL", fmt.Sprintf(`{"url": %q}`, server.URL)), h.run("PLAIN", "")
	h.order(run, plain)
	if got := h.failed(run); !strings.HasSuffix(got.Message, ": the patient has a cold") || got.Retryable {
		t.Errorf("failed with %+v", got)
	}
	if got := h.failed(plain); got.Message != "returned by the handler" {
		t.Errorf("failed with %+v", got)
	}
	w.stop()
	mu.Lock()
	defer mu.Unlock()
	if text := log.String(); strings.Contains(text, "patient") || !strings.Contains(text, "WORKER.CALL_FAILED") ||
		!strings.Contains(text, "returned by the handler") {
		t.Errorf("logged %s", text)
	}
	// The cause, which the owner does not see, is in the log with the trace id.
	cause := regexp.MustCompile(`(?m)^.*dial tcp 10\.0\.3\.7:587.*$`).FindString(log.String())
	if !strings.Contains(cause, plain.JobID.String()) || !strings.Contains(cause, "traceId=") {
		t.Errorf("logged the cause as %q", cause)
	}
}

type lockedWriter struct {
	mu *sync.Mutex
	to io.Writer
}

func (w lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(p)
}

// A thousand jobs call one slow outside system.
func TestAThousandExternalJobsAtOnce(t *testing.T) {
	h := newFixture(t)
	var calls, atOnce, most atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		now := atOnce.Add(1)
		for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); seen = most.Load() {
		}
		<-time.After(5 * time.Millisecond)
		atOnce.Add(-1)
		calls.Add(1)
	}))
	t.Cleanup(server.Close)
	h.more = map[string]handlers.Handler{"EXTERNAL": external(t)}
	h.start(nil)
	runs := make([]jobevent.Run, 1000)
	for i := range runs {
		runs[i] = h.run("EXTERNAL", fmt.Sprintf(`{"url": %q, "data": %d}`, server.URL, i))
	}
	began := time.Now()
	h.order(runs...)
	h.until("all wait", func() bool { return h.kinds[jobevent.TypeWaiting] == len(runs) })
	t.Logf("%d calls in %s, %d at once", calls.Load(), time.Since(began), most.Load())
	if calls.Load() != int64(len(runs)) || most.Load() > 12 {
		t.Errorf("%d calls, %d at once", calls.Load(), most.Load())
	}
}
