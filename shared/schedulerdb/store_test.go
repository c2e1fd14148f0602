package schedulerdb

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/pgtest"
	"github.com/jobweaver/jobweaver/shared/retrypolicy"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/emit"
)

// fixture is a scheduler's database with short forms of the store's methods.
type fixture struct {
	*testing.T
	*Store
}

func TestMain(m *testing.M) { pgtest.Main(m) }

func newFixture(t *testing.T) fixture {
	t.Helper()
	return openFixture(t, Config{Lease: 15 * time.Second, MaxLost: 3}, "")
}

// patient makes the transactions of a store wait longer for locks than in production. On a busy machine a lock timeout
// is no defect, and a function would try again. PostgreSQL ends a deadlock earlier.
const patient = "lock_timeout=60s&"

func openFixture(t *testing.T, cfg Config, parameters string) fixture {
	t.Helper()
	t.Parallel()
	store, err := Open(t.Context(), pgtest.Database(t, migrations.Scheduler)+"&"+parameters, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	return fixture{t, store}
}

func newJob() jobevent.Created {
	return jobevent.Created{
		JobID: uuid.Must(uuid.NewV7()), TraceID: uuid.New(), JobType: "SIMULATION", Queue: "default",
		Payload: json.RawMessage(`{"steps":[]}`), Spec: jobevent.Spec{MaxRetryCount: 3, TimeoutMs: 600_000}, CreatedAt: time.Now(),
	}
}

// newJobs returns jobs as one request brings them: those that wait together share rows.
func newJobs(n int) []jobevent.Created {
	jobs := make([]jobevent.Created, n)
	for i := range jobs {
		jobs[i] = newJob()
		if place := i % jobevent.BlockSize; place == 0 {
			jobs[i].JobID = jobevent.InBlock(jobs[i].JobID, 0)
		} else {
			jobs[i].JobID, jobs[i].CreatedAt = jobevent.InBlock(jobs[i-1].JobID, place), jobs[i-1].CreatedAt
		}
	}
	return jobs
}

func (h fixture) ingest(jobs ...jobevent.Created) emit.Effects {
	h.Helper()
	effects, err := h.Ingest(h.Context(), jobs)
	return h.must(effects, err)
}

func (h fixture) settle(outcomes ...Outcome) emit.Effects {
	h.Helper()
	effects, err := h.Settle(h.Context(), outcomes)
	return h.must(effects, err)
}

func (h fixture) order(job jobevent.Created, number int, command string) emit.Effects {
	h.Helper()
	effects, err := h.Command(h.Context(), []jobevent.Command{{JobID: job.JobID, Number: number, Command: command, By: "tester"}})
	return h.must(effects, err)
}

func (h fixture) heartbeat(worker string, slots int, partitions []int32, held ...jobevent.ListedAttempt) emit.Effects {
	h.Helper()
	effects, err := h.Heartbeat(h.Context(), []jobevent.Heartbeat{{
		WorkerID: worker, Slots: slots, Partitions: map[string][]int32{"default": partitions}, Attempts: held,
	}})
	return h.must(effects, err)
}

// must also builds the events: the effects of a store's method can always be published.
func (h fixture) must(effects emit.Effects, err error) emit.Effects {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
	if _, err := effects.Events("test"); err != nil {
		h.Fatal(err)
	}
	return effects
}

func (h fixture) exec(sql string, args ...any) {
	h.Helper()
	if _, err := h.pool.Exec(h.Context(), sql, args...); err != nil {
		h.Fatal(err)
	}
}

// tamper changes rows with plain SQL, and lets the watchdog's count correct the ledger.
func (h fixture) tamper(sql string, args ...any) {
	h.Helper()
	h.exec(sql, args...)
	h.askAgain(0)
}

func (h fixture) status(job jobevent.Created) jobevent.Status {
	h.Helper()
	var status jobevent.Status
	for _, e := range h.report(job, 0) {
		if e.Type() == jobevent.TypeStatus {
			status, _ = jobevent.Decode[jobevent.Status](e)
		}
	}
	return status
}

// report returns the answer to a report about a job whose version the API has seen.
func (h fixture) report(job jobevent.Created, version int64) []jobevent.Item {
	h.Helper()
	effects, err := h.Command(h.Context(), []jobevent.Command{{
		Command: jobevent.CommandReport, Reports: []jobevent.ReportJob{{JobID: job.JobID, Version: version}},
	}})
	if err != nil {
		h.Fatal(err)
	}
	events, err := effects.Events("test")
	if err != nil {
		h.Fatal(err)
	}
	return events
}

func (h fixture) wantStatus(job jobevent.Created, want jobstate.Status) jobevent.Status {
	h.Helper()
	got := h.status(job)
	if got.Status != string(want) {
		h.Fatalf("status %s, want %s; history %+v", got.Status, want, got.History)
	}
	return got
}

func completed(job jobevent.Created, attempt int) Outcome {
	now := time.Now()
	return Outcome{JobID: job.JobID, Attempt: attempt, Kind: jobstate.KindCompleted, WorkerID: "w", StartedAt: &now, FinishedAt: &now}
}

func ended(job jobevent.Created, attempt int, kind jobstate.Kind) Outcome {
	now := time.Now()
	o := Outcome{JobID: job.JobID, Attempt: attempt, Kind: kind, WorkerID: "w", StartedAt: &now, FinishedAt: &now}
	if kind == jobstate.KindFailed || kind == jobstate.KindLost {
		o.ErrorCode, o.Message, o.Retryable = "TEST.CODE", "it broke", true
	}
	return o
}

func TestAJobWithRoomIsInsertedAsQueuedAndCompletes(t *testing.T) {
	h := newFixture(t)
	job := newJob()
	effects := h.ingest(job)
	if len(effects.Runs) != 1 || len(effects.Jobs) != 0 || effects.Runs[0].Attempt != 1 {
		t.Fatalf("ingest returned %+v", effects)
	}
	effects = h.settle(completed(job, 1))
	if len(effects.Jobs) != 1 || effects.Jobs[0].Status != "COMPLETED" || effects.Jobs[0].Version != 2 {
		t.Fatalf("outcome returned %+v", effects)
	}
	status := h.wantStatus(job, jobstate.Completed)
	if len(status.History) != 2 || status.History[1].From != "QUEUED" || status.History[1].Outcome != "completed" || status.History[1].WorkerID != "w" {
		t.Errorf("history %+v", status.History)
	}
}

func TestARedeliveredBatchRepublishesTheCurrentState(t *testing.T) {
	h := newFixture(t)
	job := newJob()
	first := h.ingest(job, job)
	h.exec("UPDATE jobs SET lease_expires_at = now() - interval '1 ms'")
	again := h.ingest(job) // no run order: behind a slow broker each redelivery would add one
	if len(first.Runs) != 1 || len(again.Runs) != 0 || len(again.Jobs) != 1 {
		t.Fatalf("first %+v, again %+v", first.Runs, again)
	}
	if asked := h.askAgain(0); len(asked.Runs) != 1 || asked.Runs[0].Attempt != 1 {
		t.Fatalf("the watchdog repeats %+v", asked.Runs)
	}
	h.settle(completed(job, 1))
	repeated := h.settle(completed(job, 1))
	if len(repeated.Jobs) != 1 || repeated.Jobs[0].Version != 2 {
		t.Errorf("a repeated outcome returned %+v", repeated)
	}
	if effects := h.ingest(job); len(effects.Runs) != 0 || len(effects.Jobs) != 1 || effects.Jobs[0].Status != "COMPLETED" {
		t.Errorf("created again after its end returned %+v", effects)
	}
}

func TestRetriesFollowTheDefaultPolicy(t *testing.T) {
	h := newFixture(t)
	job := newJob()
	job.MaxRetryCount = 7
	h.ingest(job)
	for n, want := range []time.Duration{10, 20, 40, 80, 160, 300, 300} {
		effects := h.settle(ended(job, n+1, jobstate.KindFailed))
		got := effects.Jobs[0]
		if got.Status != "RETRYING" || got.RetryCount != int16(n+1) || got.DueAt.Sub(got.UpdatedAt) != want*time.Second {
			t.Fatalf("after failure %d: %s, due in %s", n+1, got.Status, got.DueAt.Sub(got.UpdatedAt))
		}
		h.tamper("UPDATE jobs SET due_at = now()")
		due, _, err := h.Due(t.Context(), time.Second)
		if err != nil || len(due.Runs) != 1 || int(due.Runs[0].Attempt) != n+2 {
			t.Fatalf("due returned %+v, %v", due, err)
		}
	}
	effects := h.settle(ended(job, 8, jobstate.KindFailed))
	events, _ := effects.Events("outcome")
	if len(events) != 2 || events[0].Type() != jobevent.TypeDeadLettered || events[1].Type() != jobevent.TypeStatus {
		t.Fatalf("the last failure returned %v", events)
	}
	dead, _ := jobevent.Decode[jobevent.DeadLettered](events[0])
	if dead.FinalRetryCount != 7 || dead.Reason != "TEST.CODE: it broke" || dead.FailedAt.IsZero() {
		t.Errorf("dead letter %+v", dead)
	}
	repeated, _ := h.settle(ended(job, 8, jobstate.KindFailed)).Events("outcome")
	if len(repeated) != 2 || repeated[0].ID() != events[0].ID() {
		t.Errorf("a repeated last failure returned %v", repeated)
	}
}

func TestAJobsPolicyAndAHandlersDelaySetTheRetry(t *testing.T) {
	h := newFixture(t)
	job := newJob()
	job.RetryPolicy = &retrypolicy.Policy{Type: retrypolicy.List, DelaysMs: []int64{300, 600}}
	h.ingest(job)
	got := h.settle(ended(job, 1, jobstate.KindFailed)).Jobs[0]
	if got.DueAt.Sub(got.UpdatedAt) != 300*time.Millisecond {
		t.Errorf("due in %s", got.DueAt.Sub(got.UpdatedAt))
	}
	h.tamper("UPDATE jobs SET due_at = now()")
	h.due()
	o := ended(job, 2, jobstate.KindFailed)
	o.RetryAfter = 7 * time.Second
	got = h.settle(o).Jobs[0]
	if got.DueAt.Sub(got.UpdatedAt) != 7*time.Second {
		t.Errorf("due in %s", got.DueAt.Sub(got.UpdatedAt))
	}
}

func (h fixture) due() emit.Effects {
	h.Helper()
	effects, _, err := h.Due(h.Context(), time.Second)
	return h.must(effects, err)
}

func TestAJobFailsWithoutRetriesOrWithANonRetryableError(t *testing.T) {
	h := newFixture(t)
	job, none := newJob(), newJob()
	none.MaxRetryCount = 0
	h.ingest(job, none)
	o := ended(job, 1, jobstate.KindFailed)
	o.Retryable = false
	h.settle(o, ended(none, 1, jobstate.KindFailed))
	if s := h.wantStatus(job, jobstate.Failed); s.LastError.ErrorCode != "TEST.CODE" || s.RetryCount != 0 {
		t.Errorf("%+v", s)
	}
	h.wantStatus(none, jobstate.Failed)
}

func TestAnErrorWithoutAMessageDoesNotKeepTheLastMessage(t *testing.T) {
	h := newFixture(t)
	job := newJob()
	h.ingest(job)
	h.settle(ended(job, 1, jobstate.KindFailed))
	h.tamper("UPDATE jobs SET due_at = now()")
	h.due()
	o := ended(job, 2, jobstate.KindFailed)
	o.ErrorCode, o.Message = "TEST.OTHER", ""
	h.settle(o)
	if s := h.status(job); *s.LastError != (jobevent.Error{ErrorCode: "TEST.OTHER"}) {
		t.Errorf("%+v", s.LastError)
	}
}

func TestAnOutcomeOfAnOldAttemptChangesNothing(t *testing.T) {
	h := newFixture(t)
	job := newJob()
	h.ingest(job)
	h.settle(ended(job, 1, jobstate.KindInterrupted))
	before := h.status(job)
	h.settle(completed(job, 1))
	h.settle(ended(job, 1, jobstate.KindFailed), ended(job, 1, jobstate.KindLost))
	after := h.status(job)
	if before.Version != after.Version || after.Status != "QUEUED" || after.Attempt != 2 {
		t.Errorf("before %+v, after %+v", before, after)
	}
}

func TestAFinalOutcomeWinsOverAWaitingOneInTheSameBatch(t *testing.T) {
	h := newFixture(t)
	a, b := newJob(), newJob()
	h.ingest(a, b)
	h.settle(waiting(a), completed(a, 1), completed(b, 1), waiting(b))
	h.wantStatus(a, jobstate.Completed)
	h.wantStatus(b, jobstate.Completed)
}

func TestTheAPIIsAskedAboutAnOverdueCallback(t *testing.T) {
	h := newFixture(t)
	job := newJob()
	h.ingest(job)
	h.settle(waiting(job))
	s := h.wantStatus(job, jobstate.Waiting)
	if s.CallbackDeadlineAt.Sub(s.UpdatedAt) != time.Minute || s.NextRunAt != nil {
		t.Errorf("%+v", s)
	}
	if effects := h.due(); len(effects.Jobs) > 0 {
		t.Errorf("before the deadline it returned %+v", effects.Jobs)
	}
	past := func(d time.Duration) {
		h.tamper("UPDATE jobs SET callback_deadline_at = now() - $1::interval, due_at = now()", d)
	}
	for age, next := range map[time.Duration]time.Duration{
		time.Second: 10 * time.Second, 40 * time.Second: 40 * time.Second, 24 * time.Hour: 5 * time.Minute,
	} {
		past(age)
		effects := h.due()
		if len(effects.Jobs) != 1 || effects.Jobs[0].Status != string(jobstate.Waiting) || effects.Jobs[0].Version != s.Version {
			t.Fatalf("%s past the deadline it returned %+v", age, effects.Jobs)
		}
		if again := h.due(); len(again.Jobs) > 0 {
			t.Errorf("%s past the deadline it asks twice", age)
		}
		var dueAt time.Time
		if err := h.pool.QueryRow(t.Context(), "SELECT due_at FROM jobs").Scan(&dueAt); err != nil {
			t.Fatal(err)
		}
		if off := time.Until(dueAt) - next; off < -5*time.Second || off > 5*time.Second {
			t.Errorf("%s past the deadline it asks again after %s, not %s", age, time.Until(dueAt), next)
		}
	}
	h.settle(calledBack(job, 1, jobstate.KindCompleted)) // the API accepted a callback a day ago
	h.wantStatus(job, jobstate.Completed)
}

func TestAnUnusableJobIsStoredAsFailedOnce(t *testing.T) {
	h := newFixture(t)
	id := uuid.Must(uuid.NewV7())
	for range 2 {
		effects, err := h.IngestUnusable(context.Background(), jobevent.Created{JobID: id, TraceID: uuid.New()}, "no\x00 good")
		h.must(effects, err)
		if len(effects.Jobs) != 1 || effects.Jobs[0].Status != "FAILED" || *effects.Jobs[0].ErrorCode != "SCHEDULER.INVALID_JOB" {
			t.Fatalf("returned %+v", effects)
		}
	}
}

// The scheduler's database may have been restored without the job.
func TestAReportAboutAnUnknownJobIsAnswered(t *testing.T) {
	h := newFixture(t)
	job := newJob()
	events := h.report(job, 3)
	if len(events) != 1 || events[0].Type() != jobevent.TypesStatus || events[0].ID() != jobevent.UnknownID(job.JobID, 3) {
		t.Fatalf("the answer is %v", events)
	}
	status, err := jobevent.Decode[jobevent.Status](events[0])
	if err != nil || status.JobID != job.JobID || status.Status != jobevent.StatusUnknown || status.Version != 3 || status.History == nil {
		t.Errorf("the answer is %+v, %v", status, err)
	}
	if events := h.report(job, 0); len(events) > 0 { // its event is on its way
		t.Errorf("a report about a job that has not arrived returned %v", events)
	}
}
