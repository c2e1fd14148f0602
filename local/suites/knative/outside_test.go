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
)

// outside is called by jobs and told of their ends. It counts, so that what ran twice or was never told is seen by
// somebody who is none of us.
type outside struct {
	url  string
	hook *standardwebhooks.Webhook

	mu    sync.Mutex
	calls map[string]int               // by attempt
	order []string                     // jobs, as they were called
	told  map[string]map[string]string // statuses by job and webhook-id
}

func newOutside(t *testing.T, secret string) *outside {
	t.Helper()
	hook, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	o := &outside{hook: hook, calls: map[string]int{}, told: map[string]map[string]string{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /task/{fails}", o.work)
	mux.HandleFunc("POST /ended", o.ended)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	o.url = server.URL
	return o
}

// work is a function that fails as often as the path says: by the attempt, for it knows nothing else.
func (o *outside) work(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || o.hook.Verify(body, r.Header) != nil {
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
	_, _ = w.Write(body) // to a worker that has gone
}

func (o *outside) ended(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var job struct{ JobID, Status string }
	if err != nil || o.hook.Verify(body, r.Header) != nil || json.Unmarshal(body, &job) != nil {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.told[job.JobID] == nil {
		o.told[job.JobID] = map[string]string{}
	}
	o.told[job.JobID][r.Header.Get("Webhook-Id")] = job.Status
}

// check reports whether each attempt of a job called once, and the end of it, and nothing else, was told.
func (o *outside) check(ctx context.Context, jobID, status string, attempts int) error {
	told := o.tellings(ctx, jobID)
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
	if len(told) != 1 {
		return fmt.Errorf("%d ends of %s were told: %v", len(told), jobID, told)
	}
	for _, got := range told {
		if got != status {
			return fmt.Errorf("of %s was told that it is %s, not %s", jobID, got, status)
		}
	}
	return nil
}

// tellings waits until something is told of a job.
func (o *outside) tellings(ctx context.Context, jobID string) map[string]string {
	for {
		o.mu.Lock()
		told := o.told[jobID]
		o.mu.Unlock()
		if len(told) > 0 || !pause(ctx, 20*time.Millisecond) {
			return told
		}
	}
}

// turns are the jobs given, in the order in which they called.
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
