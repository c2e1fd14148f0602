package pull

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/jobweaver/jobweaver/functions/runjob"
	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
	"github.com/jobweaver/jobweaver/shared/kafkatest"
	"github.com/jobweaver/jobweaver/shared/pgtest"
	"github.com/jobweaver/jobweaver/shared/pullwire"
	"github.com/jobweaver/jobweaver/shared/secret"
	"github.com/jobweaver/jobweaver/shared/webhook"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

func TestMain(m *testing.M) {
	slog.SetLogLoggerLevel(slog.LevelError) // tests provoke the warnings
	pgtest.Main(m, kafkatest.IgnoreSarama())
}

const (
	patience = 30 * time.Second // for what must come; a test that waits for it has failed
	testKey  = "whsec_c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0"
)

// fixture is a database and a topic, with a witness of what was published.
type fixture struct {
	t        *testing.T
	url      string
	kafka    kafkaevent.Config
	producer *kafkaevent.Producer
	queue    string
	ids      []uuid.UUID // of all jobs

	repeating sync.WaitGroup // requests to cancel

	mu        sync.Mutex
	cond      sync.Cond
	published []jobevent.Item

	fresh   func() bool // of the instances; nil: what they find
	witness sync.Map    // attempts that were handed out, by jobId.attempt
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	t.Parallel()
	x := &fixture{
		t: t, url: pgtest.Database(t, migrations.Worker), queue: kafkatest.Prefix() + "q",
		kafka: kafkaevent.Config{Brokers: kafkatest.Brokers(t)},
	}
	x.cond.L = &x.mu
	if err := kafkaevent.CreateTopics(t.Context(), x.kafka, jobevent.Topics([]string{x.queue})); err != nil {
		t.Fatal(err)
	}
	var err error
	if x.producer, err = kafkaevent.NewProducer(x.kafka); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		x.repeating.Wait() // the test's context has ended
		x.producer.Close()
	})
	return x
}

// instance is a running Function with its HTTP.
type instance struct {
	*Function
	x    *fixture
	site *httptest.Server
	stop func() // and wait until it has left
}

func (x *fixture) start(change func(*Config, *timing)) *instance {
	x.t.Helper()
	store, err := workerdb.Open(x.t.Context(), pgtest.As(x.url, Name))
	if err != nil {
		x.t.Fatal(err)
	}
	cfg := Config{
		Slots: 50, Grace: 5 * time.Second, CallbackURL: "https://gateway.example/api/jobs/callback", Queues: []string{x.queue},
		Kafka: x.kafka, Pull: runjob.PullQueues{Names: []string{x.queue}},
		Callbacks: webhook.CallbackConfig{Secrets: secret.AllOf(testKey)},
	}
	times := defaultTiming
	if change != nil {
		change(&cfg, &times)
	}
	f, err := New(cfg, store, prometheus.NewRegistry())
	if err != nil {
		x.t.Fatal(err)
	}
	f.timing = times
	if x.fresh != nil {
		f.fresh = x.fresh
	}
	i := &instance{Function: f, x: x, site: httptest.NewServer(f.Host().HTTP)}
	ctx, cancel := context.WithCancel(context.WithoutCancel(x.t.Context()))
	left := make(chan error, 1)
	go func() { left <- f.Host().Run(ctx, x.publish) }()
	i.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-left; err != nil {
			x.t.Errorf("Run: %v", err)
		}
		i.site.Close()
		store.Close()
	})
	x.t.Cleanup(i.stop)
	return i
}

func (x *fixture) publish(ctx context.Context, events []jobevent.Item) error {
	made, _ := jobevent.Pack(events)
	if err := x.producer.Publish(ctx, made); err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.published = append(x.published, events...)
	x.cond.Broadcast()
	return nil
}

// run makes the order of an attempt and publishes it.
func (x *fixture) run(jobType, owner string, change func(*jobevent.Run)) jobevent.Run {
	x.t.Helper()
	run := jobevent.Run{
		JobID: uuid.Must(uuid.NewV7()), Attempt: 1, JobType: jobType, Payload: json.RawMessage(`{"n": 1}`), OwnerID: owner,
		Spec: jobevent.Spec{TimeoutMs: 600_000}, Rank: time.Now(),
	}
	if change != nil {
		change(&run)
	}
	x.order(run)
	return run
}

func (x *fixture) order(runs ...jobevent.Run) {
	x.t.Helper()
	events := make([]event.Event, len(runs))
	for i, run := range runs {
		x.ids = append(x.ids, run.JobID)
		e, err := jobevent.New(jobevent.TypeRun, jobevent.Meta{
			Function: "dispatch", ID: jobevent.RunID(run.JobID, run.Attempt), JobID: run.JobID,
			Key: jobevent.RoutingKey(int32(i % jobevent.RunPartitions)), TraceID: uuid.New(), Queue: x.queue,
		}, run)
		if err != nil {
			x.t.Fatal(err)
		}
		events[i] = e.Alone()
	}
	if err := x.producer.Publish(x.t.Context(), events); err != nil {
		x.t.Fatal(err)
	}
}

// until waits for an event that was published.
func (x *fixture) until(what string, is func(jobevent.Item) bool) jobevent.Item {
	x.t.Helper()
	late := false
	timer := time.AfterFunc(patience, func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		late = true
		x.cond.Broadcast()
	})
	defer timer.Stop()
	x.mu.Lock()
	defer x.mu.Unlock()
	for {
		for _, e := range x.published {
			if is(e) {
				return e
			}
		}
		if late {
			x.t.Fatalf("waited in vain until %s", what)
		}
		x.cond.Wait()
	}
}

// outcome waits for what is published of an attempt, and returns its kind: completed, waiting or a Failed's.
func (x *fixture) outcome(run jobevent.Run) (kind string, failed jobevent.Failed) {
	x.t.Helper()
	e := x.until("an outcome is published", func(e jobevent.Item) bool {
		return strings.HasPrefix(e.ID(), jobevent.AttemptToken(run.JobID, run.Attempt)+".") &&
			(e.Type() == jobevent.TypeCompleted || e.Type() == jobevent.TypeFailed || e.Type() == jobevent.TypeWaiting)
	})
	var err error
	switch e.Type() {
	case jobevent.TypeCompleted:
		var completed jobevent.Completed
		completed, err = jobevent.Decode[jobevent.Completed](e)
		kind, failed.RanBy = "completed", completed.RanBy
	case jobevent.TypeWaiting:
		var waiting jobevent.Waiting
		waiting, err = jobevent.Decode[jobevent.Waiting](e)
		kind, failed.RanBy = "waiting", waiting.RanBy
	default:
		failed, err = jobevent.Decode[jobevent.Failed](e)
	}
	if err != nil {
		x.t.Fatal(err)
	}
	if kind != "" {
		return kind, failed
	}
	return string(failed.Kind), failed
}

func (x *fixture) cancel(run jobevent.Run) {
	x.t.Helper()
	e, err := jobevent.New(jobevent.TypeAttemptCancel, jobevent.Meta{
		Function: "command", ID: "cancel-" + run.JobID.String(), JobID: run.JobID, TraceID: uuid.New(),
	}, jobevent.AttemptCancel{JobID: run.JobID, Attempt: run.Attempt})
	if err != nil {
		x.t.Fatal(err)
	}
	publish := func() error { return x.producer.Publish(x.t.Context(), []event.Event{e.Alone()}) }
	if err := publish(); err != nil {
		x.t.Fatal(err)
	}
	x.repeating.Go(func() { // as the scheduler does: a worker reads requests from the moment it has connected
		for again := time.NewTicker(100 * time.Millisecond); publish() == nil; {
			select {
			case <-again.C:
			case <-x.t.Context().Done():
				return
			}
		}
	})
}

// post sends what a gateway sends, and reads the answer into out.
func (i *instance) post(path string, in, out any) int {
	i.x.t.Helper()
	var body bytes.Buffer
	if err := pullwire.Write(&body, in); err != nil {
		i.x.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(i.x.t.Context(), http.MethodPost, i.site.URL+path, &body)
	if err != nil {
		i.x.t.Fatal(err)
	}
	req.Header.Set(pullwire.SecretHeader, pullwire.Secret(i.keys))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		i.x.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode == http.StatusOK {
		if err := json.NewDecoder(res.Body).Decode(out); err != nil {
			i.x.t.Fatal(err)
		}
	}
	return res.StatusCode
}

var everyone = pullwire.Caller{Everyone: true}

// claim asks for attempts of a type. It counts each one that it is handed.
func (i *instance) claim(caller pullwire.Caller, worker, jobType string, slots int, wait time.Duration) []pullwire.Attempt {
	i.x.t.Helper()
	var got pullwire.Attempts
	i.post(pullwire.ClaimPath, pullwire.Claim{Caller: caller, Instance: "i", WorkClaim: apibody.WorkClaim{
		Worker: worker, Types: []string{jobType}, Slots: slots, Wait: wait,
	}}, &got)
	for _, a := range got.Attempts {
		if _, twice := i.x.witness.LoadOrStore(fmt.Sprint(a.JobID, a.Attempt), worker); twice {
			i.x.t.Errorf("attempt %d of %s was handed out twice", a.Attempt, a.JobID)
		}
	}
	if len(got.Attempts) > slots {
		i.x.t.Errorf("%d attempts for %d slots", len(got.Attempts), slots)
	}
	return got.Attempts
}

// one claims until it has an attempt.
func (i *instance) one(jobType string) pullwire.Attempt {
	i.x.t.Helper()
	got := i.claim(everyone, "w", jobType, 1, patience)
	if len(got) != 1 {
		i.x.t.Fatalf("%d attempts came", len(got))
	}
	return got[0]
}

func (i *instance) heartbeatFor(caller pullwire.Caller, attempts ...apibody.WorkAttempt) pullwire.HeartbeatAnswer {
	i.x.t.Helper()
	var got pullwire.HeartbeatAnswer
	i.post(pullwire.HeartbeatPath, pullwire.Heartbeat{
		Caller: caller, WorkHeartbeat: apibody.WorkHeartbeat{Worker: "w", Attempts: attempts},
	}, &got)
	return got
}

func (i *instance) settleFor(caller pullwire.Caller, results ...apibody.WorkResult) []pullwire.Answer {
	i.x.t.Helper()
	var got pullwire.Settled
	i.post(pullwire.SettlePath, pullwire.Settle{
		Caller: caller, WorkSettle: apibody.WorkSettle{Worker: "w", Results: results},
	}, &got)
	return got.Results
}

// wantSettled settles an attempt and expects a status.
func (i *instance) wantSettled(status int, result apibody.WorkResult) {
	i.x.t.Helper()
	if got := i.settleFor(everyone, result); len(got) != 1 || got[0].Status != status {
		i.x.t.Errorf("answered %+v, want %d", got, status)
	}
}
