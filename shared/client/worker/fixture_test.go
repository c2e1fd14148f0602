package worker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/client/jobrun"
	"github.com/jobweaver/jobweaver/shared/client/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// result is a result in a settle request.
type result struct {
	Token, Status, ErrorCode, Message string
	Output                            json.RawMessage
	Retryable                         *bool
	RetryAfterMs, DelayMs             int64
	CallbackTimeoutMs                 int64
}

type answer struct {
	Token  string        `json:"token"`
	Status int           `json:"status"`
	Error  *client.Error `json:"error,omitempty"`
}

// gateway answers a worker like a real gateway, by the clock of a synctest bubble.
type gateway struct {
	t     *testing.T
	give  chan client.WorkAttempt
	start func() // the worker, once

	mu         sync.Mutex
	claims     []client.WorkClaim
	heartbeats []client.WorkHeartbeat
	results    []result
	described  []string                                                         // type and definition
	describe   func(asked int) (status int)                                     // nil: takes it
	claim      func(ctx context.Context, slots int) (int, []client.WorkAttempt) // nil: hands out the attempts in give
	heartbeat  func(client.WorkHeartbeat) (int, client.WorkHeartbeatAnswer)     // nil: 200 without changes
	saves      []client.WorkCheckpoint
	save       func(client.WorkCheckpoint) int // nil: 200
	steps      []savedStep
	step       func(tries int) int // of a save of a step; nil: 200
	reads      []stepsRead
	read       func(stepsRead) (int, any) // nil: no steps
	settle     func(result) int           // nil: 200
	broken     func(path string) bool     // reports whether the answer is lost on its way; nil: none is
}

// claimed returns how many claims there were.
func (g *gateway) claimed() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.claims)
}

// saved returns the steps that were saved.
func (g *gateway) saved() []savedStep {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.steps)
}

func (g *gateway) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var status int
	var reply any
	switch path := strings.TrimPrefix(r.URL.Path, "/api/workers/"); path {
	case "claim":
		status, reply = g.onClaim(r.Context(), body)
	case "heartbeat":
		status, reply = g.onHeartbeat(body)
	case "checkpoint":
		status, reply = g.onCheckpoint(body)
	case "steps":
		status, reply = g.onStep(body)
	case "steps/read":
		status, reply = g.onStepsRead(body)
	case "settle":
		status, reply = g.onSettle(body)
	default:
		status = g.onDescribe(strings.TrimPrefix(path, "/api/job-types/"), body)
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	if g.broken != nil && g.broken(r.URL.Path) {
		return nil, errors.New("the connection broke")
	}
	text, err := json.Marshal(reply)
	if err != nil {
		return nil, err
	}
	if reply == nil {
		text = nil
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(text)), Request: r}, nil
}

func decoded[T any](t *testing.T, body []byte) (v T) {
	t.Helper()
	if err := json.Unmarshal(body, &v); err != nil {
		t.Errorf("%s: %v", body, err)
	}
	return v
}

func (g *gateway) onClaim(ctx context.Context, body []byte) (int, any) {
	asked := decoded[client.WorkClaim](g.t, body)
	g.mu.Lock()
	g.claims = append(g.claims, asked)
	g.mu.Unlock()
	var got []client.WorkAttempt
	if g.claim != nil {
		status, attempts := g.claim(ctx, asked.Slots)
		if status != http.StatusOK {
			return status, nil
		}
		got = attempts
	} else {
		select {
		case a := <-g.give:
			got = append(got, a)
			for len(got) < asked.Slots && len(g.give) > 0 {
				got = append(got, <-g.give)
			}
		case <-time.After(30 * time.Second):
		case <-ctx.Done():
		}
	}
	if len(got) == 0 {
		return http.StatusNoContent, nil
	}
	return http.StatusOK, map[string]any{"attempts": got}
}

func (g *gateway) onDescribe(jobType string, body []byte) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.described = append(g.described, jobType+" "+string(body))
	if g.describe != nil {
		return g.describe(len(g.described))
	}
	return http.StatusNoContent
}

func (g *gateway) onHeartbeat(body []byte) (int, any) {
	b := decoded[client.WorkHeartbeat](g.t, body)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.heartbeats = append(g.heartbeats, b)
	if g.heartbeat == nil {
		return http.StatusOK, client.WorkHeartbeatAnswer{}
	}
	return g.heartbeat(b)
}

func (g *gateway) onCheckpoint(body []byte) (int, any) {
	s := decoded[struct{ Checkpoints []client.WorkCheckpoint }](g.t, body)
	g.mu.Lock()
	defer g.mu.Unlock()
	one := answer{Token: s.Checkpoints[0].Token, Status: http.StatusOK}
	g.saves = append(g.saves, s.Checkpoints...)
	if g.save != nil {
		one.Status = g.save(s.Checkpoints[0])
	}
	if one.Status != http.StatusOK {
		one.Error = &client.Error{ErrorCode: "API.X", Message: "no"}
	}
	return http.StatusOK, map[string]any{"results": []answer{one}}
}

// savedStep is a request that saves a step.
type savedStep struct {
	Worker, Token, Name string
	Result              json.RawMessage
	Until               *time.Time
	TookMs              *int64
}

// stepsRead is a request that reads steps.
type stepsRead struct{ Worker, Token, After string }

func (g *gateway) onStep(body []byte) (int, any) {
	s := decoded[savedStep](g.t, body)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.steps = append(g.steps, s)
	if g.step != nil {
		if status := g.step(len(g.steps)); status != http.StatusOK {
			return status, stepError(status)
		}
	}
	for _, before := range g.steps {
		if before.Token == s.Token && before.Name == s.Name { // the first save counts
			return http.StatusOK, map[string]any{
				"name": s.Name, "result": before.Result, "until": before.Until, "attempt": 1, "tookMs": nil, "savedAt": time.Now(),
			}
		}
	}
	return http.StatusInternalServerError, nil
}

func stepError(status int) any {
	code := "API.INVALID_JOB_REQUEST"
	switch status {
	case http.StatusConflict:
		code = "API.ATTEMPT_OVER"
	case http.StatusServiceUnavailable:
		code = "API.UNAVAILABLE"
	}
	return &client.Error{Status: status, ErrorCode: code, Message: "no"}
}

func (g *gateway) onStepsRead(body []byte) (int, any) {
	r := decoded[stepsRead](g.t, body)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reads = append(g.reads, r)
	if g.read == nil {
		return http.StatusOK, map[string]any{"steps": []any{}, "next": nil}
	}
	return g.read(r)
}

func (g *gateway) onSettle(body []byte) (int, any) {
	s := decoded[struct{ Results []result }](g.t, body)
	g.mu.Lock()
	defer g.mu.Unlock()
	var answers []answer
	for _, r := range s.Results {
		g.results = append(g.results, r)
		one := answer{Token: r.Token, Status: http.StatusOK}
		if g.settle != nil {
			one.Status = g.settle(r)
		}
		if one.Status != http.StatusOK {
			one.Error = &client.Error{ErrorCode: "API.X", Message: "no"}
		}
		answers = append(answers, one)
	}
	return http.StatusOK, map[string]any{"results": answers}
}

// waiting puts attempts with these tokens into the gateway, and starts the worker. Set the gateway's functions before.
func (g *gateway) waiting(tokens ...string) {
	defer g.start()
	for _, token := range tokens {
		g.give <- attempt(token)
	}
}

func attempt(token string) client.WorkAttempt {
	return client.WorkAttempt{
		Info:  jobrun.Info{JobID: "job-" + token, Attempt: 1, JobType: "T", Queue: "pull"},
		Token: token, Payload: json.RawMessage(`{"n": 7}`), Deadline: time.Now().Add(10 * time.Minute),
	}
}

// resultsOf returns the statuses that were sent for a token.
func (g *gateway) resultsOf(token string) (all []result) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range g.results {
		if r.Token == token {
			all = append(all, r)
		}
	}
	return all
}

// one returns the only result that was sent for a token.
func (g *gateway) one(token string) result {
	g.t.Helper()
	all := g.resultsOf(token)
	if len(all) != 1 {
		g.t.Fatalf("%d results were sent for %s: %+v", len(all), token, all)
	}
	return all[0]
}

type handle = func(ctx context.Context, a *worker.Attempt, in payload) (any, error)

type payload struct{ N int }

// work makes a worker with a handler and calls do, which starts the worker. When do has returned, work stops the worker
// and waits for its end.
func work(t *testing.T, o worker.Options, run handle, do func(g *gateway)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		g := &gateway{t: t, give: make(chan client.WorkAttempt, 100)}
		ctx, cancel := context.WithCancel(t.Context())
		w := newWorker(g, o, run)
		stopped := make(chan struct{})
		g.start = sync.OnceFunc(func() {
			go func() {
				defer close(stopped)
				if err := w.Run(ctx); err != nil {
					t.Errorf("it ended with %v", err)
				}
			}()
		})
		do(g)
		cancel()
		<-stopped
	})
}

func newWorker(g *gateway, o worker.Options, run handle) *worker.Worker {
	o.Name = "w"
	w := worker.New(client.New("http://gateway", "", client.WithTransport(g)), o)
	worker.Handle(w, "T", run)
	return w
}

// after lets time pass.
func after(d time.Duration) {
	<-time.After(d) // of the bubble's clock
	synctest.Wait()
}

// resultIn returns the first result in a settle request, as it was sent.
func resultIn(r *http.Request) string {
	var s struct{ Results []json.RawMessage }
	if err := json.NewDecoder(r.Body).Decode(&s); err != nil || len(s.Results) == 0 {
		return fmt.Sprint(err)
	}
	return string(s.Results[0])
}
