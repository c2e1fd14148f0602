package projection_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/functions/projection"
	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/pgtest"
	"github.com/jobweaver/jobweaver/shared/retrypolicy"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

type house struct {
	*projection.Function
	t     *testing.T
	store *apidb.Store
	conn  *pgx.Conn // round the store
}

func open(t *testing.T) *house {
	t.Helper()
	h := &house{t: t}
	url := pgtest.Database(t, migrations.API)
	var err error
	if h.store, err = apidb.Open(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.store.Close)
	if h.conn, err = pgx.Connect(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.conn.Close(context.Background()) })
	h.Function = projection.New(h.store)
	return h
}

func (h *house) exec(sql string, args ...any) {
	h.t.Helper()
	if _, err := h.conn.Exec(h.t.Context(), sql, args...); err != nil {
		h.t.Fatal(err)
	}
}

// accept takes a job in, and gives the event that the gateway says of it.
func (h *house) accept(change ...func(*jobspec.Request)) event.Event {
	h.t.Helper()
	job := apidb.NewJob{JobID: uuid.Must(uuid.NewV7()), TraceID: uuid.New(), Request: jobspec.Request{
		JobType: "EMAIL", Payload: json.RawMessage(`{"b": 1, "a": [1.50, "<ü>"]}`), Queue: "default",
		MaxRetryCount: 3, Timeout: time.Minute,
	}}
	for _, c := range change {
		c(&job.Request)
	}
	accepted, err := h.store.InsertJobs(h.t.Context(), []apidb.NewJob{job})
	if err != nil {
		h.t.Fatal(err)
	}
	e, err := apidb.CreatedEvent(accepted[0].Created(job))
	if err != nil {
		h.t.Fatal(err)
	}
	return e
}

// grow lets time pass: everything is that much older.
func (h *house) grow(age time.Duration) {
	h.t.Helper()
	h.Grow(age)
	h.exec("update jobs set created_at = created_at - $1::interval, updated_at = updated_at - $1::interval", age)
	h.exec("update commands set created_at = created_at - $1::interval", age)
}

// pass ticks until the next tick is due later.
func (h *house) pass() (said []event.Event) {
	h.t.Helper()
	for {
		say, next, err := h.Tick(h.t.Context())
		if err != nil {
			h.t.Fatal(err)
		}
		if said = append(said, say...); next > 0 {
			return said
		}
	}
}

func (h *house) hear(events ...event.Event) {
	h.t.Helper()
	if say, err := h.Handle(h.t.Context(), events); err != nil || len(say) > 0 {
		h.t.Fatal(say, err)
	}
}

func (h *house) job(id string) apidb.Job {
	h.t.Helper()
	job, err := h.store.Job(h.t.Context(), uuid.MustParse(id))
	if err != nil {
		h.t.Fatal(err)
	}
	return job
}

func said(t *testing.T, typ, function, id string, jobID uuid.UUID, data any) event.Event {
	t.Helper()
	e, err := jobevent.New(typ, jobevent.Meta{Function: function, ID: id, JobID: jobID}, data)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func status(t *testing.T, jobID string, version int64, status jobstate.Status, change ...func(*jobevent.Status)) event.Event {
	t.Helper()
	id := uuid.MustParse(jobID)
	s := jobevent.Status{JobID: id, Version: version, Status: string(status), UpdatedAt: time.Now(),
		History: []jobevent.Move{{At: time.Now(), To: string(status), By: "test"}}}
	for _, c := range change {
		c(&s)
	}
	return said(t, jobevent.TypeStatus, "outcome", jobevent.StatusID(id, version), id, s)
}

// A whole life of some jobs, each event twice, in any order and in batches of any size, ends the same.
func TestRedeliveryInAnyOrderEndsTheSame(t *testing.T) {
	t.Parallel()
	h := open(t)
	var ids []string
	var events []event.Event
	for range 5 {
		jobID := h.accept().Subject()
		id := uuid.MustParse(jobID)
		ids = append(ids, jobID)
		attempt := func(n int) func(*jobevent.Status) { return func(s *jobevent.Status) { s.Attempt = n } }
		events = append(events,
			status(t, jobID, 1, jobstate.Queued, attempt(1)), status(t, jobID, 2, jobstate.Running, attempt(1)),
			status(t, jobID, 3, jobstate.Retrying, attempt(1)), status(t, jobID, 4, jobstate.Queued, attempt(2)),
			status(t, jobID, 5, jobstate.Completed, attempt(2), func(s *jobevent.Status) { s.Output = json.RawMessage(`{"n": 1}`) }),
			said(t, jobevent.TypeAttemptLog, "runjob", jobevent.AttemptLogID(id, 1, 0), id, jobevent.AttemptLog{
				JobID: id, Attempt: 1, Lines: []jobevent.LogLine{{Level: "INFO", Text: "hi"}}}),
			said(t, jobevent.TypeHeartbeat, "runjob", uuid.NewString(), uuid.Nil, jobevent.Heartbeat{WorkerID: "w",
				Slots: 3, Free: 2, Attempts: []jobevent.HeldAttempt{{JobID: id, Attempt: 1, Progress: &jobevent.Progress{Percent: 5}}}}),
		)
	}
	events = append(events, events...)
	rand.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
	for len(events) > 0 {
		n := min(1+rand.IntN(9), len(events))
		h.hear(events[:n]...)
		events = events[n:]
	}
	for _, id := range ids {
		job := h.job(id)
		lines, err := h.store.Logs(t.Context(), job.JobID, 0)
		if err != nil {
			t.Fatal(err)
		}
		if job.Status != jobstate.Completed || job.Version != 5 || job.Attempt != 2 || string(job.Snapshot.Output) != `{"n":1}` ||
			job.Progress != nil || len(lines) != 1 {
			t.Errorf("job %+v, log %v", job, lines)
		}
	}
}

func TestWhatIsNoEventOfOursIsInvalid(t *testing.T) {
	t.Parallel()
	h := open(t)
	broken := status(t, h.accept().Subject(), 1, jobstate.Running)
	broken.DataEncoded = []byte(`{"jobId": 7}`)
	for name, e := range map[string]event.Event{
		"another type":  said(t, jobevent.TypeCreated, "gateway", "1", uuid.New(), struct{}{}),
		"broken data":   broken,
		"no job":        said(t, jobevent.TypeStatus, "outcome", "1", uuid.New(), jobevent.Status{Version: 1, Status: "PENDING"}),
		"no version":    status(t, h.accept().Subject(), 0, jobstate.Pending),
		"no worker":     said(t, jobevent.TypeHeartbeat, "runjob", "1", uuid.Nil, jobevent.Heartbeat{}),
		"a log of none": said(t, jobevent.TypeAttemptLog, "runjob", "1", uuid.New(), jobevent.AttemptLog{Attempt: 1}),
		"a wrong state": status(t, h.accept().Subject(), 1, "HAPPY"),
	} {
		if _, err := h.Handle(t.Context(), []event.Event{e}); !errors.Is(err, jobevent.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAJobNotHeardOfIsSaidAgainAtGrowingAges(t *testing.T) {
	t.Parallel()
	h := open(t)
	at := time.Now().Add(time.Hour).Truncate(time.Microsecond).UTC()
	first := h.accept(func(r *jobspec.Request) {
		r.RunAt, r.Priority, r.OwnerID = &at, 4, "acme"
		r.RetryPolicy = &retrypolicy.Policy{Type: retrypolicy.Fixed, DelayMs: 7}
	})
	if got := h.pass(); len(got) != 0 {
		t.Fatalf("a young job is said again: %v", got)
	}
	ages := []time.Duration{10, 20, 40, 80, 160, 300, 600, 900}
	for step := 5 * time.Second; len(ages) > 0; {
		h.grow(step)
		for _, e := range h.next() {
			var age time.Duration
			if err := h.conn.QueryRow(t.Context(), "select now() - created_at from jobs").Scan(&age); err != nil {
				t.Fatal(err)
			}
			if due := ages[0] * time.Second; age < due || age > due+2*step {
				t.Fatalf("said at the age of %s, due at %s", age, due)
			}
			ages = ages[1:]
			if e.ID() != first.ID() || e.Source() != first.Source() || e.Type() != first.Type() || e.Subject() != first.Subject() ||
				fmt.Sprint(e.Extensions()) != fmt.Sprint(first.Extensions()) {
				t.Fatalf("said %s\nfirst %s", e, first)
			}
		}
	}
}

// next has the next pass come at once, whatever the time.
func (h *house) next() []event.Event {
	h.Rewind()
	return h.pass()
}

func TestTheSameEventByteForByte(t *testing.T) {
	t.Parallel()
	h := open(t)
	first := h.accept(func(r *jobspec.Request) { r.Delay = time.Hour })
	h.exec("update jobs set created_at = created_at - interval '10 s'")
	again := h.pass()
	if len(again) != 1 {
		t.Fatalf("said %v", again)
	}
	var want, got map[string]any
	if err := json.Unmarshal(first.Data(), &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(again[0].Data(), &got); err != nil {
		t.Fatal(err)
	}
	delete(want, "createdAt")
	delete(got, "createdAt")
	if fmt.Sprint(want) != fmt.Sprint(got) {
		t.Errorf("said  %v\nfirst %v", got, want)
	}
}

func TestAfterAStartEverythingOlderThanTenSecondsIsSaid(t *testing.T) {
	t.Parallel()
	h := open(t)
	for range 3 {
		h.accept()
	}
	h.grow(10 * time.Second)
	h.grow(5 * time.Second) // between two ages
	h.accept()
	if got := h.pass(); len(got) != 3 {
		t.Errorf("said %d", len(got))
	}
	if got := h.next(); len(got) != 0 {
		t.Errorf("and %d again", len(got))
	}
}

func TestAJobThatWasHeardOfIsNotSaidAgain(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.accept().Subject()
	h.hear(status(t, id, 1, jobstate.Completed))
	h.grow(time.Minute)
	if got := h.pass(); len(got) != 0 {
		t.Errorf("said %v", got)
	}
}

func TestACommandIsSaidAgainUntilItIsAnswered(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.accept().Subject()
	h.hear(status(t, id, 1, jobstate.Completed), status(t, id, 2, jobstate.Failed))
	kept, err := h.store.KeepCommand(t.Context(), uuid.MustParse(id), jobevent.CommandRetry, "me")
	if err != nil {
		t.Fatal(err)
	}
	first, err := kept.Event()
	if err != nil {
		t.Fatal(err)
	}
	h.pass()
	for _, age := range []time.Duration{10 * time.Second, 10 * time.Second, 20 * time.Second} {
		h.grow(age)
		got := h.next()
		if len(got) != 1 || got[0].ID() != first.ID() || string(got[0].Data()) != string(first.Data()) ||
			fmt.Sprint(got[0].Extensions()) != fmt.Sprint(first.Extensions()) {
			t.Fatalf("said %v\nfirst %s", got, first)
		}
	}
	h.hear(status(t, id, 3, jobstate.Pending, func(s *jobevent.Status) {
		s.LastCommand = &jobevent.CommandResult{Number: 1, Command: "retry", Applied: true}
	}))
	h.grow(40 * time.Second)
	for _, e := range h.next() {
		if e.ID() == first.ID() {
			t.Error("a command that was answered is said again")
		}
	}
}

func TestJobsInFlightAreAskedAboutEachMinute(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.accept().Subject()
	h.hear(status(t, id, 7, jobstate.Running))
	if got := h.pass(); len(got) != 0 {
		t.Fatalf("said %v", got)
	}
	seen := map[string]bool{}
	for range 3 {
		h.grow(time.Minute)
		got := h.next()
		if len(got) != 1 || seen[got[0].ID()] {
			t.Fatalf("said %v", got)
		}
		seen[got[0].ID()] = true
		command, err := jobevent.Decode[jobevent.Command](got[0])
		if err != nil || command.Command != jobevent.CommandReport || len(command.Reports) != 1 ||
			command.Reports[0] != (jobevent.ReportJob{JobID: uuid.MustParse(id), Version: 7}) {
			t.Errorf("said %+v, %v", command, err)
		}
		if topic, err := jobevent.TopicOf(got[0]); topic != jobevent.TopicCommand || err != nil {
			t.Error(topic, err)
		}
		if got := h.next(); len(got) != 0 {
			t.Errorf("and again %v", got)
		}
	}
}

func TestWaitingJobsAreWalkedInReportsOfAThousand(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.exec(`insert into jobs (job_id, job_type, queue, payload, priority, max_retry_count, timeout_ms, trace_id, status, version, snapshot)
		select gen_random_uuid(), 'X', 'default', '{}', 0, 3, 1000, gen_random_uuid(), 'PENDING', 1, '{}' from generate_series(1, 10500)`)
	count := func(events []event.Event) (jobs int) {
		for _, e := range events {
			command, err := jobevent.Decode[jobevent.Command](e)
			if err != nil || len(command.Reports) > jobevent.MaxReportJobs {
				t.Fatal(len(command.Reports), err)
			}
			jobs += len(command.Reports)
		}
		return jobs
	}
	for i, want := range []int{10_000, 500, 0} {
		if got := count(h.next()); got != want {
			t.Errorf("pass %d asks about %d jobs, want %d", i, got, want)
		}
	}
}

func TestAPassIsBoundedAndGoesOn(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.exec(`insert into jobs (job_id, job_type, queue, payload, priority, max_retry_count, timeout_ms, trace_id, status, created_at)
		select gen_random_uuid(), 'X', 'default', '{}', 0, 3, 1000, gen_random_uuid(), 'PENDING', now() - interval '1 minute'
		from generate_series(1, 12000)`)
	all := map[string]bool{}
	for i, want := range []int{10_000, 2_000, 0} {
		got := h.next()
		for _, e := range got {
			all[e.ID()] = true
		}
		if len(got) != want {
			t.Errorf("pass %d says %d jobs, want %d", i, len(got), want)
		}
	}
	if len(all) != 12_000 {
		t.Errorf("%d jobs were said", len(all))
	}
}

func TestLargePayloadsComeInPieces(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.exec(`insert into jobs (job_id, job_type, queue, payload, priority, max_retry_count, timeout_ms, trace_id, status, created_at)
		select gen_random_uuid(), 'X', 'default', ('"' || repeat('x', $1) || '"')::json, 0, 3, 1000, gen_random_uuid(), 'PENDING',
		now() - interval '1 minute' from generate_series(1, 3)`, apidb.MaxPageBytes/2+1)
	for i, want := range []int{2, 1, 0} {
		say, next, err := h.Tick(t.Context())
		if err != nil || len(say) != want || (next == 0) != (want > 0) {
			t.Errorf("piece %d: %d jobs, next in %v, %v", i, len(say), next, err)
		}
	}
}

func TestAPassThatFailedIsDoneAgain(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.accept()
	h.grow(time.Minute)
	h.exec("alter table commands rename to away")
	if _, _, err := h.Tick(t.Context()); err == nil {
		t.Fatal("a pass without its table is fine")
	}
	h.exec("alter table away rename to commands")
	if got := h.pass(); len(got) != 1 {
		t.Errorf("said %d", len(got))
	}
}
