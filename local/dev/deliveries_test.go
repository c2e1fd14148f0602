package dev_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/jobweaver/jobweaver/local/dev"
	"github.com/jobweaver/jobweaver/shared/client"
	secrets "github.com/jobweaver/jobweaver/shared/secret"
	"github.com/jobweaver/jobweaver/shared/webhook"
)

// inbox is a receiver that refuses the first request to each path.
type inbox struct {
	mu    sync.Mutex
	seen  map[string]bool
	cards chan card
}

type card struct {
	path   string
	header http.Header
	body   []byte
}

func (in *inbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	in.mu.Lock()
	again := in.seen[r.URL.Path]
	in.seen[r.URL.Path] = true
	in.mu.Unlock()
	in.cards <- card{r.URL.Path, r.Header, body}
	if !again && r.URL.Path == "/failed" {
		w.WriteHeader(http.StatusGone)
	}
}

// next returns the next request to a path, signed with the key for the ends of jobs without an owner.
func (in *inbox) next(t *testing.T, dir, path string) card {
	t.Helper()
	for {
		select {
		case got := <-in.cards:
			secret, err := os.ReadFile(filepath.Join(dir, "webhook.secret"))
			if err != nil {
				t.Fatal(err)
			}
			keys, err := webhook.NewOutgoing(webhook.Config{Secrets: secrets.AllOf(strings.TrimSpace(string(secret)))}, webhook.End)
			if err != nil {
				t.Fatal(err)
			}
			hook, err := standardwebhooks.NewWebhook(keys.Secrets("")[0])
			if err != nil {
				t.Fatal(err)
			}
			if err := hook.Verify(got.body, got.header); err != nil {
				t.Error(err)
			}
			if got.path == path {
				return got
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("nothing came to %s", path)
		}
	}
}

// The end of a job with a callbackUrl is delivered, however it was submitted: by a request, a CloudEvent or a
// schedule. A job that failed, ran again and completed has two deliveries, and a delivery can be repeated by a
// request.
func TestTheEndsOfJobsAreDelivered(t *testing.T) {
	t.Parallel()
	in := &inbox{seen: map[string]bool{}, cards: make(chan card, 1000)}
	receiver := httptest.NewServer(in)
	t.Cleanup(receiver.Close)
	dir := newFolder(t)
	err := dev.Run(t.Context(), options(t, dir), func(ctx context.Context, at string) error {
		v := &mailman{t: t, c: client.New(at, ""), dir: dir, in: in, url: receiver.URL}
		v.submitted(ctx)
		v.failed(ctx)
		v.ofAnEvent(ctx)
		v.ofASchedule(ctx)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

type mailman struct {
	t        *testing.T
	c        *client.Client
	dir, url string
	in       *inbox
}

func (v *mailman) do(ctx context.Context, method, path, contentType, body string, into any) {
	v.t.Helper()
	if _, err := v.c.Do(ctx, method, path, contentType, []byte(body), into); err != nil {
		v.t.Fatal(err)
	}
}

func (v *mailman) submit(ctx context.Context, path, steps, more string) (id string) {
	v.t.Helper()
	var accepted struct{ JobID string }
	v.do(ctx, http.MethodPost, "/api/jobs", "application/json", fmt.Sprintf(
		`{"jobType": "SIMULATION", "payload": {"steps": [%s]}, "callbackUrl": "%s%s"%s}`, steps, v.url, path, more), &accepted)
	return accepted.JobID
}

// job returns the job that was delivered to a path.
func (v *mailman) job(path string) (id string, job client.Job) {
	v.t.Helper()
	got := v.in.next(v.t, v.dir, path)
	if err := json.Unmarshal(got.body, &job); err != nil {
		v.t.Fatal(err)
	}
	return got.header.Get("Webhook-Id"), job
}

type shownDelivery struct {
	ID, JobID, JobStatus, Status string
	Version                      int64
	Tries                        int
}

// until waits until a job's deliveries have these statuses.
func (v *mailman) until(ctx context.Context, id string, want ...string) (found []shownDelivery) {
	v.t.Helper()
	for end := time.Now().Add(30 * time.Second); ; <-time.After(20 * time.Millisecond) {
		var page struct{ Deliveries []shownDelivery }
		v.do(ctx, http.MethodGet, "/api/jobs/"+id+"/deliveries", "", "", &page)
		var got []string
		for _, d := range page.Deliveries {
			got = append(got, d.JobStatus+" "+d.Status)
		}
		if slices.Equal(got, want) {
			return page.Deliveries
		}
		if time.Now().After(end) {
			v.t.Fatalf("the deliveries are %v, not %v", got, want)
		}
	}
}

func (v *mailman) submitted(ctx context.Context) {
	id := v.submit(ctx, "/one", `{"type": "LOG", "message": "hi"}`, "")
	webhookID, job := v.job("/one")
	if job.JobID != id || job.Status != "COMPLETED" || !strings.HasPrefix(webhookID, id+".v") {
		v.t.Errorf("%s: %+v", webhookID, job)
	}
	d := v.until(ctx, id, "COMPLETED DELIVERED")[0]
	v.do(ctx, http.MethodPost, fmt.Sprintf("/api/jobs/%s/deliveries/%d/retry", id, d.Version), "", "", &d)
	if again, _ := v.job("/one"); again != webhookID || d.ID != webhookID {
		v.t.Errorf("%s, not %s", again, webhookID)
	}
	v.until(ctx, id, "COMPLETED DELIVERED")
	plain := v.submit(ctx, "/plain", `{"type": "LOG", "message": "hi"}`, `, "orderingKey": "k", "idempotencyKey": "i"`)
	v.job("/plain")
	v.until(ctx, plain, "COMPLETED DELIVERED")
}

// failed: the receiver refuses the first end for good, and accepts the second.
func (v *mailman) failed(ctx context.Context) {
	id := v.submit(ctx, "/failed", `{"type": "FAIL", "retryable": false, "failAttempts": 1}`, "")
	if _, job := v.job("/failed"); job.Status != "FAILED" || job.LastError == nil {
		v.t.Errorf("got %+v", job)
	}
	v.until(ctx, id, "FAILED FAILED")
	v.do(ctx, http.MethodPost, "/api/jobs/"+id+"/retry", "", "", nil)
	if _, job := v.job("/failed"); job.Status != "COMPLETED" || job.Attempt != 2 {
		v.t.Errorf("got %+v", job)
	}
	v.until(ctx, id, "COMPLETED DELIVERED", "FAILED FAILED")
	var page struct{ Deliveries []shownDelivery }
	v.do(ctx, http.MethodGet, "/api/deliveries?status=FAILED", "", "", &page)
	if len(page.Deliveries) != 1 || page.Deliveries[0].JobID != id || page.Deliveries[0].Tries != 1 {
		v.t.Errorf("got %+v", page)
	}
}

func (v *mailman) ofAnEvent(ctx context.Context) {
	v.do(ctx, http.MethodPost, "/events?jobType=SIMULATION&callbackUrl="+v.url+"/event", "application/cloudevents+json",
		`{"specversion": "1.0", "id": "1", "source": "/shop", "type": "order", "data": {"steps": [{"type": "LOG", "message": "hi"}]}}`, nil)
	if _, job := v.job("/event"); job.Status != "COMPLETED" {
		v.t.Errorf("got %+v", job)
	}
}

func (v *mailman) ofASchedule(ctx context.Context) {
	v.do(ctx, http.MethodPost, "/api/schedules", "application/json", fmt.Sprintf(`{"name": "often", "cron": "@every 1s", "job":
		{"jobType": "SIMULATION", "payload": {"steps": [{"type": "LOG", "message": "hi"}]}, "callbackUrl": "%s/tick"}}`, v.url), nil)
	if _, job := v.job("/tick"); job.Status != "COMPLETED" {
		v.t.Errorf("got %+v", job)
	}
}
