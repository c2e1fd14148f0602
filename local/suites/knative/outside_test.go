package knative

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/jobweaver/jobweaver/shared/retry"
	"github.com/jobweaver/jobweaver/shared/secret"
	"github.com/jobweaver/jobweaver/shared/webhook"
)

// outside is called by jobs and receives the deliveries of their ends. It counts, so that an attempt that ran twice
// or an undelivered end is seen outside of JobWeaver.
type outside struct {
	url       string
	call, end *standardwebhooks.Webhook // verify calls, and the ends of jobs

	mu        sync.Mutex
	calls     map[string]int               // by attempt
	order     []string                     // jobs, as they were called
	delivered map[string]map[string]string // statuses by job and webhook-id
}

func newOutside(t *testing.T, signing string) *outside {
	t.Helper()
	verifier := func(purpose webhook.Purpose) *standardwebhooks.Webhook {
		keys, err := webhook.NewOutgoing(webhook.Config{Secrets: secret.AllOf(signing)}, purpose)
		if err != nil {
			t.Fatal(err)
		}
		w, err := standardwebhooks.NewWebhook(keys.Secrets("")[0]) // the jobs have no owner
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	o := &outside{call: verifier(webhook.Call), end: verifier(webhook.End), calls: map[string]int{}, delivered: map[string]map[string]string{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /task/{fails}", o.work)
	mux.HandleFunc("POST /ended", o.ended)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	o.url = server.URL
	return o
}

// work is a function that fails as often as the path requests. It decides by the number of the attempt, since it has no
// other state.
func (o *outside) work(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || o.call.Verify(body, r.Header) != nil {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	token := r.Header.Get("Webhook-Id")
	job, attempt, _ := strings.Cut(token, ".")
	fails, _ := strconv.Atoi(r.PathValue("fails"))
	o.mu.Lock()
	o.calls[token]++
	o.order = append(o.order, job)
	o.mu.Unlock()
	if n, err := strconv.Atoi(attempt); err != nil || n <= fails {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) // an error means that the worker has ended
}

func (o *outside) ended(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var job struct{ JobID, Status string }
	if err != nil || o.end.Verify(body, r.Header) != nil || json.Unmarshal(body, &job) != nil {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.delivered[job.JobID] == nil {
		o.delivered[job.JobID] = map[string]string{}
	}
	o.delivered[job.JobID][r.Header.Get("Webhook-Id")] = job.Status
}

// check checks that each attempt of a job called once, and that its end, and nothing else, was delivered.
func (o *outside) check(ctx context.Context, jobID, status string, attempts int) error {
	delivered := o.deliveries(ctx, jobID)
	o.mu.Lock()
	defer o.mu.Unlock()
	for n := 1; n <= attempts+1; n++ {
		want := 1
		if n > attempts {
			want = 0
		}
		if got := o.calls[jobID+"."+strconv.Itoa(n)]; got != want {
			return fmt.Errorf("attempt %d of %s ran %d times, not %d", n, jobID, got, want)
		}
	}
	if len(delivered) != 1 {
		return fmt.Errorf("%d ends of %s were delivered: %v", len(delivered), jobID, delivered)
	}
	for _, got := range delivered {
		if got != status {
			return fmt.Errorf("the delivered end of %s is %s, not %s", jobID, got, status)
		}
	}
	return nil
}

// deliveries waits for the first delivery of a job.
func (o *outside) deliveries(ctx context.Context, jobID string) map[string]string {
	for {
		o.mu.Lock()
		delivered := o.delivered[jobID]
		o.mu.Unlock()
		if len(delivered) > 0 || !retry.Pause(ctx, 20*time.Millisecond) {
			return delivered
		}
	}
}

// turns returns the given jobs, in the order of their calls.
func (o *outside) turns(jobs []string) (order []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, called := range o.order {
		for _, job := range jobs {
			if job == called {
				order = append(order, job)
			}
		}
	}
	return order
}
