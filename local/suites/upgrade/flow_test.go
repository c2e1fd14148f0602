package upgrade

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/client"
)

// outside is called by jobs and receives the deliveries of their ends.
type outside struct {
	server *httptest.Server

	mu        sync.Mutex
	called    map[string]int // how often its step ran, by a job's key
	delivered map[string]int // deliveries of its end, by a job's key
}

func newOutside() *outside {
	o := &outside{called: map[string]int{}, delivered: map[string]int{}}
	o.server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		key := r.URL.Query().Get("key")
		o.mu.Lock()
		defer o.mu.Unlock()
		if r.URL.Path == "/delivered" {
			o.delivered[key]++
		} else {
			o.called[key]++
		}
	}))
	return o
}

// order is an accepted job, with the expected end.
type order struct {
	key, id string
	shape   *shape
}

// shape is a sort of job.
type shape struct {
	name     string
	fields   string // of its request, besides its steps
	steps    string // after the counted one
	end      string
	calls    int // how often the counted step runs
	delivers bool
	cancel   bool
}

var shapes = []*shape{
	{name: "plain", end: "COMPLETED", calls: 1},
	{name: "delivered", end: "COMPLETED", calls: 1, delivers: true},
	{name: "ordered", fields: `"orderingKey": "one",`, end: "COMPLETED", calls: 1},
	{name: "later", fields: `"delayMs": 700,`, end: "COMPLETED", calls: 1},
	{
		name: "flaky", fields: `"maxRetryCount": 2, "retryPolicy": {"type": "fixed", "delayMs": 300},`,
		steps: `, {"type": "FAIL", "message": "no", "errorCode": "DEMO", "retryable": true, "failAttempts": 1}`,
		end:   "COMPLETED", calls: 2,
	},
	{
		name: "dead", fields: `"maxRetryCount": 0,`,
		steps: `, {"type": "FAIL", "message": "no", "errorCode": "DEMO"}`, end: "FAILED", calls: 1,
	},
	{name: "cancelled", fields: `"delayMs": 3600000,`, end: "CANCELLED", cancel: true},
	{name: "swept", fields: `"delayMs": 3600000, "tags": ["swept"],`, end: "CANCELLED"},
}

// flow submits jobs all the time, through the gateway that runs at that time.
type flow struct {
	fixture *fixture
	outside *outside
	orders  []order // used only by the goroutine of submit until end returns
	failed  error
	stop    context.CancelFunc
	done    chan struct{}
}

func (h *fixture) flow() *flow {
	ctx, cancel := context.WithCancel(h.t.Context())
	f := &flow{fixture: h, outside: newOutside(), stop: cancel, done: make(chan struct{})}
	h.t.Cleanup(func() { cancel(); <-f.done; f.outside.server.Close() })
	go func() {
		defer close(f.done)
		f.failed = f.submit(ctx)
	}()
	return f
}

// submit continues until ctx ends. A batch that a stopping gateway does not answer is repeated at the next one, with
// the same keys.
func (f *flow) submit(ctx context.Context) error {
	for number := 0; ctx.Err() == nil; number++ {
		batch := f.batch(number)
		if err := f.insist(func() error { return f.accept(batch) }); err != nil {
			return err
		}
		f.orders = append(f.orders, batch...)
		for _, o := range batch {
			if o.shape.cancel {
				if err := f.insist(func() error { return f.cancel(o.id) }); err != nil {
					return err
				}
			}
		}
		if number%8 == 7 {
			if err := f.insist(f.sweep); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
	return nil
}

func (f *flow) batch(number int) []order {
	batch := make([]order, len(shapes))
	for i, s := range shapes {
		batch[i] = order{key: fmt.Sprintf("%s-%d", s.name, number), shape: s}
	}
	return batch
}

func (f *flow) api() *client.Client { return client.New(f.fixture.gateway(), "") }

// insist tries until do succeeds, since gateways are replaced.
func (f *flow) insist(do func() error) error {
	var err error
	for began := time.Now(); time.Since(began) < readyWithin; {
		if err = do(); err == nil {
			return nil
		}
		<-time.After(20 * time.Millisecond)
	}
	return err
}

func (f *flow) accept(batch []order) error {
	requests := make([]string, len(batch))
	for i, o := range batch {
		fields := o.shape.fields
		if o.shape.delivers {
			fields += fmt.Sprintf(`"callbackUrl": "%s/delivered?key=%s",`, f.outside.server.URL, o.key)
		}
		requests[i] = fmt.Sprintf(`{"jobType": "SIMULATION", %s "idempotencyKey": %q, "payload": {"steps": [
			{"type": "HTTP_CALL", "method": "POST", "url": "%s/called?key=%s"}%s]}}`,
			fields, o.key, f.outside.server.URL, o.key, o.shape.steps)
	}
	var answer struct {
		Results []struct {
			Status int             `json:"status"`
			JobID  string          `json:"jobId"`
			Error  json.RawMessage `json:"error"`
		} `json:"results"`
	}
	ctx, cancel := context.WithTimeout(f.fixture.t.Context(), 10*time.Second)
	defer cancel()
	body := []byte(`{"jobs": [` + strings.Join(requests, ",") + `]}`)
	if _, err := f.api().Do(ctx, http.MethodPost, "/api/jobs/batch", "application/json", body, &answer); err != nil {
		return err
	}
	for i, result := range answer.Results {
		if batch[i].id = result.JobID; result.JobID == "" {
			return fmt.Errorf("%s was answered %d %s", batch[i].key, result.Status, result.Error)
		}
	}
	return nil
}

func (f *flow) cancel(id string) error {
	_, err := f.api().Command(f.fixture.t.Context(), id, "cancel")
	if refusal, ok := err.(*client.Error); ok && refusal.Status == http.StatusConflict { //nolint:errorlint // as it is
		return nil // it was accepted, and its answer lost
	}
	return err
}

// sweep cancels all jobs with the tag.
func (f *flow) sweep() error {
	body := []byte(`{"command": "cancel", "filter": {"tag": "swept", "status": ["SCHEDULED"]}}`)
	_, err := f.api().Do(f.fixture.t.Context(), http.MethodPost, "/api/operations", "application/json", body, nil)
	return err
}

// askedAgain is slightly less than the lease after which the watchdog asks about an attempt.
const askedAgain = 14 * time.Second

// end stops the submitting, waits for all jobs to end, and compares. It returns whether more than a few jobs ended late.
func (f *flow) end() (late bool) {
	t := f.fixture.t
	t.Helper()
	f.stop()
	<-f.done
	if f.failed != nil {
		t.Fatal(f.failed)
	}
	if err := f.insist(f.sweep); err != nil {
		t.Fatal(err)
	}
	counts, asked := map[string]int{}, 0
	for _, o := range f.orders {
		job, err := f.ended(o)
		if err != nil {
			t.Fatalf("%s: %v", o.key, err)
		}
		counts[o.shape.name]++
		f.compare(o, job)
		if o.shape.end == "COMPLETED" && o.shape.name != "ordered" && job.UpdatedAt.Sub(job.CreatedAt) > askedAgain {
			asked++
		}
	}
	t.Logf("jobs that ended as they should: %v; %d ended only when what became of them was asked for again", counts, asked)
	return asked*20 > len(f.orders)
}

func (f *flow) ended(o order) (*client.Job, error) {
	for began := time.Now(); ; {
		job, err := f.api().Get(f.fixture.t.Context(), o.id, 5*time.Second)
		if err == nil && job.Terminal() {
			return job, nil
		}
		if time.Since(began) > readyWithin {
			return nil, fmt.Errorf("it has not ended: %w %s", err, job.Raw)
		}
	}
}

func (f *flow) compare(o order, job *client.Job) {
	t := f.fixture.t
	t.Helper()
	if job.Status != o.shape.end {
		t.Errorf("%s ended as %s, not %s: %s", o.key, job.Status, o.shape.end, job.Raw)
	}
	f.outside.mu.Lock()
	called := f.outside.called[o.key]
	f.outside.mu.Unlock()
	calls := o.shape.calls
	if o.shape.name == "flaky" && gaveBackUnstarted(t, job) {
		calls-- // its step fails in attempt 1 only, which a stopping worker gave back
	}
	if called != calls {
		t.Errorf("%s ran %d times, not %d: %s", o.key, called, calls, job.Raw)
	}
	if o.shape.delivers && f.insist(func() error { return f.outside.wasDelivered(o.key) }) != nil {
		t.Errorf("the end of %s was not delivered", o.key)
	}
}

// gaveBackUnstarted reports whether the first attempt of a job ended before its handler began.
func gaveBackUnstarted(t *testing.T, job *client.Job) bool {
	t.Helper()
	var shown struct {
		Attempts []struct {
			StartedAt *time.Time `json:"startedAt"`
			Outcome   string     `json:"outcome"`
		} `json:"attempts"`
	}
	if err := json.Unmarshal(job.Raw, &shown); err != nil || len(shown.Attempts) == 0 {
		t.Fatalf("read the attempts of %s: %v", job.Raw, err)
	}
	first := shown.Attempts[0]
	return first.Outcome == "interrupted" && first.StartedAt == nil
}

func (o *outside) wasDelivered(key string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.delivered[key] == 0 {
		return fmt.Errorf("%s was not delivered", key)
	}
	return nil
}

// names returns the names of the shapes, to find one that never occurred.
func (f *flow) names() []string {
	var names []string
	for _, o := range f.orders {
		if !slices.Contains(names, o.shape.name) {
			names = append(names, o.shape.name)
		}
	}
	return names
}
