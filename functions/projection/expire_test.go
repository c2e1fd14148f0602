package projection_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/projection"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

func deleted(t *testing.T, jobID string, version int64) jobevent.Item {
	t.Helper()
	e, err := jobevent.NewDeleted(jobevent.Meta{Function: "command", JobID: uuid.MustParse(jobID)}, version)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func (h *fixture) count(sql string, args ...any) (n int) {
	h.t.Helper()
	if err := h.conn.QueryRow(h.t.Context(), "select count(*) from "+sql, args...).Scan(&n); err != nil {
		h.t.Fatal(err)
	}
	return n
}

func logOf(t *testing.T, jobID string) jobevent.Item {
	t.Helper()
	id := uuid.MustParse(jobID)
	return event(t, jobevent.TypeAttemptLog, "runjob", jobevent.AttemptLogID(id, 1, 0), id, jobevent.AttemptLog{
		JobID: id, Attempt: 1, Lines: []jobevent.LogLine{{Level: "INFO", Text: "hi"}}})
}

func TestADeletedJobIsForgottenWithItsLogsAndCommands(t *testing.T) {
	t.Parallel()
	h := open(t)
	id, other := h.accept().Subject(), h.accept().Subject()
	last := status(t, id, 3, jobstate.Completed)
	h.handle(last, status(t, other, 3, jobstate.Completed), logOf(t, id), logOf(t, other))
	if _, err := h.store.Commands.KeepCommand(t.Context(), nil, apidb.Everyone, uuid.MustParse(id), jobevent.CommandDelete, "me"); err != nil {
		t.Fatal(err)
	}
	if h.job(id).Status != jobstate.Completed {
		t.Error("a job whose delete is not answered is not shown")
	}
	h.handle(deleted(t, other, 2)) // an older version
	h.handle(deleted(t, id, 4), last, deleted(t, id, 4))
	h.handle(last, status(t, id, 9, jobstate.Running))
	if jobs, logs, commands := h.count("jobs"), h.count("attempt_logs"), h.count("commands"); jobs != 1 || logs != 1 || commands != 0 {
		t.Errorf("left are %d jobs, %d logs, %d commands", jobs, logs, commands)
	}
	h.job(other)
}

func TestTheIdempotencyKeyOfADeletedJobIsFree(t *testing.T) {
	t.Parallel()
	h := open(t)
	keyed := func() string {
		job := jobstore.NewJob{JobID: uuid.Must(uuid.NewV7()), TraceID: uuid.New(), Whose: apidb.Everyone, RequestHash: []byte("x"), Request: jobspec.Request{
			JobType: "EMAIL", Payload: []byte(`1`), Queue: "default", Spec: jobevent.Spec{TimeoutMs: (time.Minute).Milliseconds()}, IdempotencyKey: "k",
		}}
		accepted, err := h.store.Jobs.InsertJobs(t.Context(), []jobstore.NewJob{job})
		if err != nil {
			t.Fatal(err)
		}
		return accepted[0].JobID.String()
	}
	first := keyed()
	if keyed() != first {
		t.Fatal("the same key made another job")
	}
	h.handle(deleted(t, first, 1))
	if keyed() == first {
		t.Error("the deleted job came back")
	}
}

func TestOldJobsAreDeletedADayAfterTheirRetention(t *testing.T) {
	t.Parallel()
	h := open(t)
	f, err := projection.New(projection.Config{Completed: 24 * time.Hour, Failed: 72 * time.Hour}, h.own.Store)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{} // by job id: whether the job must stay
	put := func(stays bool, state jobstate.Status, days float64) string {
		id := h.acceptBefore(time.Duration((days + 1) * float64(24*time.Hour)))
		h.handle(status(t, id, 1, state, func(s *jobevent.Status) {
			s.UpdatedAt = time.Now().Add(-time.Duration(days * float64(24*time.Hour)))
		}), logOf(t, id))
		want[id] = stays
		return id
	}
	put(false, jobstate.Completed, 2.1)
	put(true, jobstate.Completed, 1.9)
	put(false, jobstate.Failed, 4.1)
	put(true, jobstate.Failed, 3.9)
	put(true, jobstate.Cancelled, 400) // kept for ever
	put(true, jobstate.Running, 400)
	asked := put(true, jobstate.Failed, 5)
	if _, err := h.store.Commands.KeepCommand(t.Context(), nil, apidb.Everyone, uuid.MustParse(asked), jobevent.CommandRetry, "me"); err != nil {
		t.Fatal(err)
	}
	h.handle(logOf(t, uuid.Must(uuid.NewV7()).String())) // the event of its job may come later
	for range 2 {
		if err := f.Expire(t.Context(), time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	for id, stays := range want {
		left := h.count("jobs where job_id = $1", id)
		if logs := h.count("attempt_logs where job_id = $1", id); (left == 1) != stays || logs != left {
			t.Errorf("a job (stays: %v) has %d rows and %d logs left", stays, left, logs)
		}
	}
	if n := h.count("attempt_logs"); n != 1+5 {
		t.Errorf("%d logs are left", n)
	}
}

// acceptBefore accepts a job that was submitted this long ago.
func (h *fixture) acceptBefore(age time.Duration) string {
	h.t.Helper()
	id := h.accept().Subject()
	var old string
	if err := h.conn.QueryRow(h.t.Context(), `update jobs set job_id = uuidv7(-$2::interval), created_at = now() - $2::interval
		where job_id = $1 returning job_id::text`, id, age).Scan(&old); err != nil {
		h.t.Fatal(err)
	}
	return old
}

func TestOldJobsAreDeletedInSmallSteps(t *testing.T) {
	t.Parallel()
	h := open(t)
	f, err := projection.New(projection.Config{Completed: 24 * time.Hour}, h.own.Store)
	if err != nil {
		t.Fatal(err)
	}
	h.exec(`insert into jobs (job_id, job_type, queue, payload, spec, trace_id, status, version, snapshot,
			created_at, updated_at)
		select uuidv7(-n * interval '1 s' - interval '3 days'), 'X', 'default', '{}', '{"priority":0,"maxRetryCount":3,"timeoutMs":1000}', gen_random_uuid(),
			(array['COMPLETED', 'COMPLETED', 'COMPLETED', 'FAILED'])[1 + n % 4], 1, '{}', now(), now() - interval '3 days'
		from generate_series(1, 100000) n`)
	h.exec("insert into attempt_logs (job_id, attempt, first_line, lines) select job_id, 1, 0, '[]' from jobs where random() < 0.1")
	h.exec("insert into attempt_logs (job_id, attempt, first_line, lines) select uuidv7(-n * interval '1 s' - interval '3 days'), 1, 0, '[]' from generate_series(1, 3000) n")
	if err := f.Expire(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	left, orphans := h.count("jobs"), h.count("attempt_logs where not exists (select from jobs where jobs.job_id = attempt_logs.job_id)")
	if left != 25_000 || orphans != 0 || h.count("attempt_logs") == 0 {
		t.Errorf("%d jobs are left, %d logs of none", left, orphans)
	}
}

func TestDeletingTakesATenthOfTheTime(t *testing.T) {
	t.Parallel()
	h := open(t)
	f, err := projection.New(projection.Config{Completed: 24 * time.Hour}, h.own.Store)
	if err != nil {
		t.Fatal(err)
	}
	h.exec(`insert into jobs (job_id, job_type, queue, payload, spec, trace_id, status, version, snapshot,
			updated_at)
		select uuidv7(-interval '3 days'), 'X', 'default', '{}', '{"priority":0,"maxRetryCount":3,"timeoutMs":1000}', gen_random_uuid(), 'COMPLETED', 1, '{}', now() - interval '3 days'
		from generate_series(1, 5000)`)
	for range 2 {
		before, began := h.count("jobs"), time.Now()
		_, next, err := f.Tick(t.Context())
		took := time.Since(began)
		left := h.count("jobs")
		if err != nil || left != before-1000 || next <= 0 || next > 9*took {
			t.Errorf("left are %d of %d, the next in %s after %s (%v)", left, before, next, took, err)
		}
		_, again, err := f.Tick(t.Context())
		if soon := time.Since(began) < next; err != nil || soon && (again > next || h.count("jobs") != left) {
			t.Errorf("too soon it does something, or is due in %s and not in %s (%v)", again, next, err)
		}
		f.Rest()
	}
}

func TestNegativeRetentionsAreRefused(t *testing.T) {
	t.Parallel()
	_, err := projection.New(projection.Config{Failed: -1}, nil)
	if err == nil || !strings.HasPrefix(err.Error(), "RETAIN_FAILED: ") {
		t.Errorf("got %v", err)
	}
}

func TestTheIDOfADeletedJobIsForgottenADayAfterItsTombstone(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	h := open(t)
	stays, goes := h.acceptBefore(30*day), h.acceptBefore(30*day)
	h.handle(deleted(t, stays, 1), deleted(t, goes, 1))
	for id, age := range map[string]string{stays: "8.9 days", goes: "9.1 days"} {
		if _, err := h.conn.Exec(t.Context(), "update deleted_jobs set deleted_at = now() - $2::interval where job_id = $1", id, age); err != nil {
			t.Fatal(err)
		}
	}
	f, err := projection.New(projection.Config{Forget: 8 * day}, h.own.Store)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Expire(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	if left, gone := h.count("deleted_jobs where job_id = $1", stays), h.count("deleted_jobs where job_id = $1", goes); left != 1 || gone != 0 {
		t.Errorf("left are %d and %d ids, want 1 and 0", left, gone)
	}
	if _, err := projection.New(projection.Config{Forget: 6 * day}, nil); err == nil || !strings.HasPrefix(err.Error(), "FORGET_AFTER: ") {
		t.Errorf("tombstones that are forgotten before records are gone: %v", err)
	}
}
