package handlers_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/outbound"
)

// witness keeps an attempt's log lines and progress.
type witness struct {
	lines    []string
	progress []int
}

func (w *witness) attempt(number int, steps string) *handlers.Attempt {
	run := jobevent.Run{JobID: uuid.New(), Attempt: number, Payload: json.RawMessage(`{"steps": [` + steps + `]}`)}
	return handlers.NewAttempt(run, uuid.New(),
		func(_ slog.Level, text string) { w.lines = append(w.lines, text) },
		func(p jobevent.Progress) { w.progress = append(w.progress, p.Percent) })
}

// simulation returns the handler, whose calls reach public addresses and the given ones.
func simulation(t *testing.T, allow ...string) *handlers.Simulation {
	t.Helper()
	client, err := outbound.New(outbound.Config{Allow: allow})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return handlers.NewSimulation(client)
}

func TestStepsRunOneAfterAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		began := time.Now()
		result, err := simulation(t).Run(t.Context(), w.attempt(1, `
			{"type": "LOG", "message": "a"}, {"type": "SLEEP", "durationMs": 3000}, {"type": "COMPUTE", "iterations": 10},
			{"type": "HTTP_CALL", "latencyMs": 1000}, {"type": "LOG", "message": "b"}`))
		if err != nil || string(result.Output) != `{"steps":5}` {
			t.Errorf("%s, %v", result.Output, err)
		}
		if d := time.Since(began); d != 4*time.Second {
			t.Errorf("took %v", d)
		}
		if got := fmt.Sprint(w.lines, w.progress); got != "[a b] [20 40 60 80]" {
			t.Error(got)
		}
	})
}

func TestStepsEndWithTheContext(t *testing.T) {
	t.Parallel()
	why := errors.New("because")
	for _, step := range []string{
		`{"type": "SLEEP", "durationMs": 86400000}`,
		`{"type": "COMPUTE", "iterations": 10000000000}`,
		`{"type": "HTTP_CALL", "latencyMs": 86400000}`,
		`{"type": "LOG", "message": "a"}, {"type": "FAIL"}`,
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(why)
		if _, err := simulation(t).Run(ctx, new(witness).attempt(1, step)); !errors.Is(err, why) {
			t.Errorf("%s: %v", step, err)
		}
	}
}

func TestFailFailsTheFirstAttempts(t *testing.T) {
	t.Parallel()
	step := `{"type": "FAIL", "message": "no", "errorCode": "DEMO", "retryable": false, "failAttempts": 2}`
	for number, fails := range map[int]bool{1: true, 2: true, 3: false} {
		_, err := simulation(t).Run(t.Context(), new(witness).attempt(number, step))
		var failure *handlers.Failure
		if errors.As(err, &failure) != fails {
			t.Errorf("attempt %d: %v", number, err)
		}
		if fails && *failure != (handlers.Failure{Code: "DEMO", Message: "no"}) {
			t.Errorf("attempt %d: %+v", number, failure)
		}
	}
}

func TestHTTPCall(t *testing.T) {
	t.Parallel()
	var methods []string
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(_ http.ResponseWriter, r *http.Request) { methods = append(methods, r.Method+" "+r.URL.Path) })
	mux.HandleFunc("/away", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	mux.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/followed", http.StatusFound) })
	mux.HandleFunc("/endless", func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			_, _ = w.Write(make([]byte, 64<<10))
		}
	})
	mux.HandleFunc("/hangs", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	call := func(ctx context.Context, path, method string) error {
		step := fmt.Sprintf(`{"type": "HTTP_CALL", "url": %q, "method": %q}`, server.URL+path, method)
		_, err := simulation(t, "127.0.0.0/8").Run(ctx, new(witness).attempt(1, step))
		return err
	}
	for _, path := range []string{"/ok", "/moved", "/endless"} {
		if err := call(t.Context(), path, "POST"); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	if got := fmt.Sprint(methods); got != "[POST /ok]" {
		t.Error(got)
	}
	var failure *handlers.Failure
	if err := call(t.Context(), "/away", "GET"); !errors.As(err, &failure) || !failure.Retryable ||
		failure.Code != "WORKER.SIMULATION_FAILED" || !strings.Contains(failure.Message, "503") {
		t.Errorf("503: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := call(ctx, "/hangs", "GET"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a call that hangs: %v", err)
	}
}

func TestHTTPCallReachesNoPrivateAddress(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://192.0.2.1:1") // not asked: it would connect for us
	called := false
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called = true }))
	t.Cleanup(server.Close)
	port := server.URL[strings.LastIndex(server.URL, ":"):]
	for _, host := range []string{"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "10.0.0.1", "169.254.169.254", "2130706433"} {
		step := fmt.Sprintf(`{"type": "HTTP_CALL", "url": "http://%s%s/"}`, host, port)
		_, err := simulation(t).Run(t.Context(), new(witness).attempt(1, step))
		var failure *handlers.Failure
		if !errors.As(err, &failure) {
			t.Errorf("%s: %v", host, err)
		} else if failure.Retryable || !strings.Contains(failure.Message, "allowed to be called") {
			t.Errorf("%s: %+v", host, failure)
		}
	}
	if called {
		t.Error("a private address was reached")
	}
}
