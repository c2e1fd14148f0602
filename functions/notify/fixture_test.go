package notify

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/deliverystore"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apidb/statusstore"
	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/outbound"
	"github.com/jobweaver/jobweaver/shared/pgtest"
	"github.com/jobweaver/jobweaver/shared/secret"
	"github.com/jobweaver/jobweaver/shared/webhook"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var (
	oldSecret = "whsec_" + base64.StdEncoding.EncodeToString([]byte("the old one, of 32 bytes at least"))
	newSecret = "whsec_" + base64.StdEncoding.EncodeToString([]byte("the new one, of 32 bytes at least"))
	signing   = webhook.Config{Secrets: secret.AllOf(newSecret, oldSecret)}
)

// fixture is the API's database, in which jobs end.
type fixture struct {
	t     *testing.T
	store *apidbtest.Stores // for the changes that other functions make
	own   *apidbtest.Stores // with the function's own rights
	url   string
}

func open(t *testing.T) *fixture {
	t.Helper()
	h := &fixture{t: t, url: pgtest.Database(t, migrations.API)}
	h.store = apidbtest.Open(t, h.url)
	h.own = apidbtest.Open(t, pgtest.As(h.url, Name))
	return h
}

func (h *fixture) connect() *pgx.Conn {
	h.t.Helper()
	conn, err := pgx.Connect(h.t.Context(), h.url)
	if err != nil {
		h.t.Fatal(err)
	}
	return conn
}

func (h *fixture) exec(sql string, args ...any) {
	h.t.Helper()
	conn := h.connect()
	defer conn.Close(h.t.Context())
	if _, err := conn.Exec(h.t.Context(), sql, args...); err != nil {
		h.t.Fatal(err)
	}
}

// function returns a function that may call this machine, and whose pauses are short.
func (h *fixture) function() *Function {
	h.t.Helper()
	f, err := New(Config{
		Grace: 20 * time.Second, Webhook: signing,
		Outbound: outbound.Config{Allow: []string{"127.0.0.0/8", "::1/128"}},
	}, h.own.Store)
	if err != nil {
		h.t.Fatal(err)
	}
	f.delays = []time.Duration{time.Millisecond, time.Millisecond, time.Millisecond}
	return f
}

// run hosts a function until the test or stop ends it.
func (h *fixture) run(f *Function) (stop func()) {
	h.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(h.t.Context()))
	ended := make(chan error, 1)
	go func() {
		ended <- funchost.Run(ctx, funchost.Config{Sink: "http://127.0.0.1:9", NoListen: true, ShutdownGrace: f.grace}, f.Host())
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			h.t.Error(err)
		}
	})
	h.t.Cleanup(stop)
	return stop
}

// job submits a job with a callbackUrl.
func (h *fixture) job(url string) uuid.UUID {
	h.t.Helper()
	job := jobstore.NewJob{
		JobID: uuid.Must(uuid.NewV7()), TraceID: uuid.New(), Whose: apidb.Everyone, Request: jobspec.Request{
			JobType: "OWN", Payload: json.RawMessage(`{"secret": true}`), Queue: "default", Spec: jobevent.Spec{TimeoutMs: (time.Minute).Milliseconds(), MaxRetryCount: 3, Priority: 4},
			Tags: []string{"a", "ü"}, OwnerID: "acme", CallbackURL: url,
		},
	}
	if _, err := h.store.Jobs.InsertJobs(h.t.Context(), []jobstore.NewJob{job}); err != nil {
		h.t.Fatal(err)
	}
	return job.JobID
}

// report stores a status of the scheduler.
func (h *fixture) report(id uuid.UUID, version int64, status jobstate.Status, attempt int) {
	h.t.Helper()
	now := time.Now().UTC().Truncate(time.Microsecond)
	s := jobevent.Status{
		JobID: id, Version: version, Status: string(status), Attempt: attempt, UpdatedAt: now, FinishedAt: &now,
		Output: json.RawMessage(`{"n":17,"<":"\u0000"}`), History: []jobevent.Transition{{At: now, To: string(status), By: "test"}},
	}
	b, err := json.Marshal(s)
	if err != nil {
		h.t.Fatal(err)
	}
	if _, err := h.store.Statuses.ApplyStatuses(h.t.Context(), []statusstore.PublishedStatus{{Status: s, JSON: b}}); err != nil {
		h.t.Fatal(err)
	}
}

// ended inserts an ended job.
func (h *fixture) ended(url string) uuid.UUID {
	h.t.Helper()
	id := h.job(url)
	h.report(id, 2, jobstate.Completed, 1)
	return id
}

func (h *fixture) deliveries(id uuid.UUID) []deliverystore.Delivery {
	h.t.Helper()
	found, err := h.store.Deliveries.OfJob(h.t.Context(), apidb.Everyone, id, 100)
	if err != nil {
		h.t.Fatal(err)
	}
	return found
}

// until waits until the condition holds for a job's only delivery.
func (h *fixture) until(id uuid.UUID, what string, is func(deliverystore.Delivery) bool) deliverystore.Delivery {
	h.t.Helper()
	var last []deliverystore.Delivery
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); <-time.After(5 * time.Millisecond) {
		if last = h.deliveries(id); len(last) == 1 && is(last[0]) {
			return last[0]
		}
	}
	h.t.Fatalf("it never %s: %+v", what, last)
	return deliverystore.Delivery{}
}

func (h *fixture) untilStatus(id uuid.UUID, status deliverystore.Status) deliverystore.Delivery {
	h.t.Helper()
	return h.until(id, "is "+string(status), func(d deliverystore.Delivery) bool { return d.Status == status })
}

// receiver is an outside system that keeps the requests that it receives.
type receiver struct {
	*httptest.Server
	t   *testing.T
	got chan received
}

type received struct {
	header http.Header
	body   []byte
	at     time.Time
}

func (r received) id() string { return r.header.Get("Webhook-Id") }

// receive answers the n-th request, counted from 1, by the given handler; nil: by 200. Every request is signed.
func receive(t *testing.T, answer func(n int, w http.ResponseWriter, r *http.Request)) *receiver {
	t.Helper()
	r := &receiver{t: t, got: make(chan received, 100_000)}
	var mu sync.Mutex
	n := 0
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Error(err)
		}
		for _, secret := range endKeys(t, "acme") {
			verify(t, secret, req.Header, body)
		}
		mu.Lock()
		n++
		number := n
		mu.Unlock()
		r.got <- received{req.Header, body, time.Now()}
		if answer != nil {
			answer(number, w, req)
		}
	}))
	t.Cleanup(r.Close)
	return r
}

func endKeys(t *testing.T, owner string) []string {
	t.Helper()
	keys, err := webhook.NewOutgoing(signing, webhook.End)
	if err != nil {
		t.Fatal(err)
	}
	return keys.Secrets(owner)
}

func verify(t *testing.T, secret string, header http.Header, body []byte) {
	t.Helper()
	w, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Verify(body, header); err != nil {
		t.Errorf("signature %q: %v", header.Get("Webhook-Signature"), err)
	}
}

func (r *receiver) next() received {
	r.t.Helper()
	select {
	case got := <-r.got:
		return got
	case <-time.After(30 * time.Second):
		r.t.Fatal("nothing came")
		return received{}
	}
}

// nothingMore fails the test if another request has arrived. Call it when all expected requests have.
func (r *receiver) nothingMore() {
	r.t.Helper()
	select {
	case got := <-r.got:
		r.t.Errorf("%s came, too", got.id())
	default:
	}
}

func status(code int) func(int, http.ResponseWriter, *http.Request) {
	return func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func keys(header http.Header, prefix string) (names []string) {
	for name := range header {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
