package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/shared/client"
)

// doneAfter is how long the outside system works, so that its job is seen in the state WAITING.
const doneAfter = 700 * time.Millisecond

// receiver gets the requests of the demo's jobs, and the deliveries of their ends: it is an outside system, a function
// and a webhook. It accepts only requests signed with the key for their purpose.
type receiver struct {
	url    string
	server *http.Server
	calls  errgroup.Group // callbacks under way
	closed chan struct{}

	mu      sync.Mutex
	ended   map[string]string // status by job id, from deliveries
	changed sync.Cond
}

func newReceiver(ctx context.Context, c *client.Client) (*receiver, error) {
	r := &receiver{ended: map[string]string{}, closed: make(chan struct{})}
	r.changed.L = &r.mu
	var keys struct{ End, Call []string }
	if _, err := c.Do(ctx, http.MethodGet, "/api/webhook-secrets", "", nil, &keys); err != nil {
		return nil, fmt.Errorf("ask for the webhook secrets: %w", err)
	}
	ends, err := hooks(keys.End)
	if err != nil {
		return nil, err
	}
	calls, err := hooks(keys.Call)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open the demo's receiver: %w", err)
	}
	r.url = "http://" + listener.Addr().String()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /outside", signed(calls, r.outside))
	mux.HandleFunc("POST /function", signed(calls, function))
	mux.HandleFunc("POST /alert", signed(calls, func(http.ResponseWriter, *http.Request, []byte) {}))
	mux.HandleFunc("POST /ended", signed(ends, r.end))
	r.server = &http.Server{Handler: mux, ReadHeaderTimeout: time.Second}
	go func() { _ = r.server.Serve(listener) }()
	return r, nil
}

func (r *receiver) close() error {
	_ = r.server.Close()
	close(r.closed)
	return r.calls.Wait()
}

func hooks(keys []string) (hooks []*standardwebhooks.Webhook, err error) {
	for _, key := range keys {
		hook, err := standardwebhooks.NewWebhook(key)
		if err != nil {
			return nil, fmt.Errorf("read webhook secret: %w", err)
		}
		hooks = append(hooks, hook)
	}
	return hooks, nil
}

func signed(by []*standardwebhooks.Webhook, handle func(http.ResponseWriter, *http.Request, []byte)) http.HandlerFunc {
	return func(w http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		if err != nil {
			return
		}
		for _, hook := range by {
			if hook.Verify(body, request.Header) == nil {
				handle(w, request, body)
				return
			}
		}
		w.WriteHeader(http.StatusUnauthorized)
	}
}

// outside accepts an order and calls back a moment later, as a third party would.
func (r *receiver) outside(w http.ResponseWriter, _ *http.Request, body []byte) {
	var order struct {
		JobID    string `json:"jobId"`
		Attempt  int    `json:"attempt"`
		Callback struct {
			URL    string `json:"url"`
			Secret string `json:"secret"`
		} `json:"callback"`
	}
	if err := json.Unmarshal(body, &order); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusAccepted)
	r.calls.Go(func() error {
		select {
		case <-time.After(doneAfter):
		case <-r.closed:
			return nil
		}
		callback := fmt.Sprintf(`{"jobId": %q, "attempt": %d, "status": "COMPLETED", "output": {"order": "shipped"}}`,
			order.JobID, order.Attempt)
		// Not the context of the order: its request has ended.
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, order.Callback.URL, strings.NewReader(callback))
		if err != nil {
			return fmt.Errorf("call back: %w", err)
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("X-Callback-Secret", order.Callback.Secret)
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return fmt.Errorf("call back: %w", err)
		}
		defer func() { _ = answer.Body.Close() }()
		if answer.StatusCode != http.StatusOK {
			return fmt.Errorf("call back: answered %s", answer.Status)
		}
		return nil
	})
}

// function counts the words of the event's data.
func function(w http.ResponseWriter, _ *http.Request, body []byte) {
	var data struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(body, &data); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"words": %d}`, len(strings.Fields(data.Text)))
}

// end receives the delivery of a job's end.
func (r *receiver) end(w http.ResponseWriter, _ *http.Request, body []byte) {
	var job struct {
		JobID  string `json:"jobId"`
		Status string `json:"status"`
	}
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(&job); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	r.ended[job.JobID] = job.Status
	r.changed.Broadcast()
	r.mu.Unlock()
	w.WriteHeader(http.StatusNoContent)
}

// endOf waits for the delivery of a job's end.
func (r *receiver) endOf(ctx context.Context, jobID string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.changed.Broadcast()
	})
	defer stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.ended[jobID] == "" {
		if ctx.Err() != nil {
			return "", fmt.Errorf("wait for the end of %s: %w", jobID, ctx.Err())
		}
		r.changed.Wait()
	}
	return r.ended[jobID], nil
}
