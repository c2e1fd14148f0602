package schedulerdb

import (
	"context"
	"crypto/rand"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

const day = 24 * time.Hour

var aMonth = Retention{Completed: 7 * day, Failed: 30 * day, Cancelled: 7 * day, Forget: 8 * day}

// fillOld inserts jobs in all states, whose ages differ by apart. A third of the ended ones are tombstones, and half of
// the completed ones are in ended.
func (h fixture) fillOld(rows int, apart string) {
	h.Helper()
	h.exec(`INSERT INTO jobs (job_id, trace_id, job_type, queue, payload, spec, status,
			attempt, rank, due_at, lease_expires_at, partition, history, error_code, output, finished_at, deleted_at, created_at,
			command_seq, event)
		SELECT uuidv7(-age), uuidv7(), 'A', 'old', '{"a": 1}', '{"priority":0,"maxRetryCount":3,"timeoutMs":1000}', status, 1, now() - age,
			CASE WHEN status = 'SCHEDULED' THEN now() + interval '1 d' END,
			CASE WHEN status = 'QUEUED' THEN now() + interval '1 d' END, CASE WHEN status = 'QUEUED' THEN 1 END,
			'{"at": "2026-01-01T00:00:00Z", "to": "PENDING"},{"at": "2026-01-01T00:00:00Z", "to": "' || status || '"}',
			CASE WHEN status = 'FAILED' THEN 'A.B' END, CASE WHEN status = 'COMPLETED' THEN '{"b": 2}'::json END, ended_at,
			CASE WHEN n % 3 = 0 THEN ended_at + (now() - ended_at) * random() END, now() - age, 3, '{"id": "1"}'
		FROM generate_series(1, $1::int) n,
			LATERAL (SELECT n * $2::interval AS age, (ARRAY['COMPLETED', 'FAILED', 'CANCELLED', 'COMPLETED', 'FAILED', 'CANCELLED',
				'COMPLETED', 'SCHEDULED', 'PENDING', 'QUEUED', 'COMPLETED'])[1 + n % 11] AS status) its,
			LATERAL (SELECT CASE WHEN status IN ('COMPLETED', 'FAILED', 'CANCELLED') THEN now() - age * random() * random() END
				AS ended_at) ends`, rows, apart)
	h.exec(`WITH moved AS (
			DELETE FROM jobs WHERE status = 'COMPLETED' AND get_byte(uuid_send(job_id), 15) % 2 = 0 RETURNING *
		)
		INSERT INTO ended (job_id, trace_id, job_type, queue, payload, spec, version, attempt,
			retry_count, command_seq, history, moves, output, finished_at, created_at, updated_at, deleted_at, fairness_key, event)
		SELECT job_id, trace_id, job_type, queue, payload, spec, version, attempt,
			retry_count, command_seq, history, moves, output, finished_at, created_at, updated_at, deleted_at, fairness_key, event
		FROM moved`)
}

// expect stores the expected result for every row: deleted (is_over), forgotten (is_gone) or unchanged. It removes rows
// whose result would change within minutes.
func (h fixture) expect() {
	h.Helper()
	for _, age := range []string{"7 d", "8 d", "30 d"} {
		for _, column := range []string{"finished_at", "deleted_at"} {
			for _, table := range []string{"jobs", "ended"} {
				h.exec("DELETE FROM " + table + " WHERE now() - " + column + " BETWEEN interval '" + age + "' - interval '10 min' AND interval '" + age + "'")
			}
		}
	}
	h.exec(`CREATE TABLE expected AS
		SELECT job_id, md5(j::text) AS whole, status, version, command_seq,
			coalesce(deleted_at < now() - interval '8 d', false) AS is_gone,
			coalesce(deleted_at IS NULL AND finished_at < now() - CASE status WHEN 'COMPLETED' THEN interval '7 d'
				WHEN 'FAILED' THEN interval '30 d' WHEN 'CANCELLED' THEN interval '7 d' END, false) AS is_over
		FROM all_jobs j`)
}

func (h fixture) count(sql string) (n int) {
	h.Helper()
	if err := h.pool.QueryRow(h.Context(), "SELECT count(*) FROM "+sql).Scan(&n); err != nil {
		h.Fatal(err)
	}
	return n
}

// wantRetired compares the rows and the published deletions with the expected results.
func (h fixture) wantRetired(published map[uuid.UUID]int) {
	h.Helper()
	for name, sql := range map[string]string{
		"still there, though expected to be forgotten": "expected JOIN all_jobs USING (job_id) WHERE is_gone",
		"forgotten, though expected to stay":           "expected LEFT JOIN all_jobs j USING (job_id) WHERE NOT is_gone AND j.job_id IS NULL",
		"changed, though expected to stay":             "expected e JOIN all_jobs j USING (job_id) WHERE NOT is_over AND md5(j::text) <> whole",
		"not deleted as by a command": "expected e JOIN all_jobs j USING (job_id) WHERE is_over AND NOT (j.deleted_at IS NOT NULL " +
			"AND j.version = e.version + 1 AND j.status = e.status AND j.payload::text = 'null' AND j.output IS NULL AND j.event IS NULL " +
			"AND j.history LIKE '%' || j.status || '%' AND j.history NOT LIKE '%},{%' AND j.command_seq = e.command_seq)",
	} {
		if n := h.count(sql); n > 0 {
			h.Errorf("%d are %s", n, name)
		}
	}
	over, gone := h.count("expected WHERE is_over"), h.count("expected WHERE is_gone")
	h.Logf("%d deleted, %d forgotten of %d", over, gone, h.count("expected"))
	if len(published) != over || over == 0 || gone == 0 {
		h.Errorf("%d were published as deleted, want %d, and %d forgotten", len(published), over, gone)
	}
	ids := make([]uuid.UUID, 0, len(published))
	for id, times := range published {
		if ids = append(ids, id); times != 1 {
			h.Errorf("%s was published as deleted %d times", id, times)
		}
	}
	var known int
	if err := h.pool.QueryRow(h.Context(), "SELECT count(*) FROM expected WHERE is_over AND job_id = ANY ($1)", ids).
		Scan(&known); err != nil || known != over {
		h.Errorf("%d of them are expected, %v", known, err)
	}
}

// walk retires up to this many pages, and counts how often each job is published as deleted.
func (h fixture) walk(keep Retention, pages int, published map[uuid.UUID]int) {
	h.Helper()
	for after, more := (uuid.UUID{}), true; more && pages > 0; pages-- {
		effects, done, err := h.Retire(h.Context(), keep, after, 1000)
		if err != nil {
			h.Fatal(err)
		}
		for _, e := range h.events(effects) {
			if _, err := jobevent.DeletedVersion(e); err != nil {
				h.Fatal(err)
			}
			end, err := jobevent.EndOf(e)
			if err != nil || end == nil || end.Attempt != 1 || (end.Status == "FAILED") != (end.ErrorCode == "A.B") || time.Since(end.At) < 7*day {
				h.Fatalf("%s has the end %+v, %v", e.ID(), end, err)
			}
			published[uuid.MustParse(e.Subject())]++
		}
		after, more = done.Last, done.More
	}
}

func TestOldJobsAreRetiredUnderLoad(t *testing.T) {
	h := openFixture(t, Config{Lease: time.Hour, MaxLost: 3}, "pool_max_conns=9&statement_timeout=0&transaction_timeout=0") // fillOld may take long
	h.fillOld(25_000, "160 s")
	h.expect()
	h.heartbeat("w1", 200, []int32{0, 5})
	h.exec("UPDATE workers SET seen_at = now() + interval '1 h'")
	load := func(ctx context.Context) (ended int) {
		for ctx.Err() == nil {
			var outcomes []Outcome
			for _, order := range h.ingest(newJobs(100)...).Runs {
				outcomes = append(outcomes, completed(jobevent.Created{JobID: order.JobID}, int(order.Attempt)))
			}
			for len(outcomes) > 0 {
				effects := h.settle(outcomes...)
				ended, outcomes = ended+len(outcomes), nil
				for _, order := range effects.Runs {
					outcomes = append(outcomes, completed(jobevent.Created{JobID: order.JobID}, int(order.Attempt)))
				}
			}
		}
		return ended
	}
	alone, stop := context.WithTimeout(t.Context(), time.Second/4)
	before := load(alone)
	stop()
	beside, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	during := 0
	group.Go(func() { during = load(beside) })
	began, published := time.Now(), map[uuid.UUID]int{}
	h.walk(aMonth, 10, published) // as if the process died after 10 pages
	h.walk(aMonth, 1e6, published)
	took := time.Since(began)
	stop()
	group.Wait()
	t.Logf("%d jobs a second alone, %.0f beside a walk without pauses, which took %s", 4*before, float64(during)/took.Seconds(), took)
	h.wantRetired(published)
}

func TestJobsThatAreKeptForEverStay(t *testing.T) {
	h := newFixture(t)
	h.fillOld(2000, "1 h")
	published := map[uuid.UUID]int{}
	h.walk(Retention{Failed: 30 * day, Forget: 3650 * day}, 1e6, published)
	if n := h.count("all_jobs WHERE deleted_at IS NOT NULL AND status <> 'FAILED' AND version > 1"); n > 0 || len(published) == 0 || h.count("all_jobs") != 2000 {
		t.Errorf("%d deleted, %d of those kept for ever", len(published), n)
	}
}

// Retiring does not wait for a transaction that has a job locked.
func TestALockedJobIsLeftForTheNextWalk(t *testing.T) {
	h := newFixture(t)
	h.fillOld(3000, "30 m")
	h.expect()
	published := map[uuid.UUID]int{}
	tx := h.begin()
	for _, table := range []string{"jobs", "ended"} {
		if _, err := tx.Exec(t.Context(), "SELECT FROM "+table+" FOR UPDATE"); err != nil {
			t.Fatal(err)
		}
	}
	if h.walk(aMonth, 1e6, published); len(published) > 0 || h.count("all_jobs") != h.count("expected") {
		t.Errorf("%d were published as deleted", len(published))
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.walk(aMonth, 1e6, published)
	h.wantRetired(published)
}

func TestRetiredJobsLeaveNoDependencies(t *testing.T) {
	h := newFixture(t)
	first, second, third := newJob(), newJob(), newJob()
	second.After, third.After = []uuid.UUID{first.JobID}, []uuid.UUID{first.JobID, second.JobID}
	h.ingest(first, second, third)
	h.settle(completed(first, 1))
	h.order(third, 1, jobevent.CommandCancel)
	h.settle(completed(second, 1))
	h.exec("UPDATE jobs SET finished_at = now() - interval '8 d'")
	h.exec("UPDATE ended SET finished_at = now() - interval '8 d', deleted_at = CASE job_id WHEN $1 THEN now() - interval '9 d' END", first.JobID)
	effects, done, err := h.Retire(t.Context(), Retention{Completed: time.Nanosecond, Cancelled: time.Nanosecond, Forget: 8 * day}, uuid.Nil, 10)
	if err != nil || done.Deleted != 2 || done.Forgotten != 1 || len(effects.Jobs) != 2 {
		t.Errorf("%+v, %v", done, err)
	}
	if n := h.count("dependencies"); n > 0 {
		t.Errorf("%d dependencies are left", n)
	}
}

func TestRetentionWalksThePrimaryKey(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it has one goroutine: there is nothing to race")
	}
	url := pgtest.Database(t, migrations.Scheduler)
	h, plans := newExplainedFixture(t, url)
	h.exec("ALTER TABLE jobs SET (autovacuum_enabled = off)")
	h.exec("ALTER TABLE ended SET (autovacuum_enabled = off)")
	h.fillOld(50_000, "1 m")
	for _, table := range []string{"jobs", "ended"} { // a third is of one large flow
		h.exec("UPDATE "+table+" SET flow_id = $1 WHERE get_byte(uuid_send(job_id), 14) % 3 = 0", uuid.Max)
	}
	h.walk(aMonth, 3, map[uuid.UUID]int{})
	seen := plans.Seen()
	for _, name := range []string{"JobsOld", "JobsRetire", "EndedRetire", "JobsForget"} {
		if len(seen[name]) == 0 {
			t.Errorf("%s did not run", name)
		}
		for _, plan := range seen[name] {
			plan.Walk(func(n pgtest.Node) {
				isWrite := n.Type == "ModifyTable" || n.Type == "LockRows"
				isRead := slices.Contains([]string{"Index Scan", "Index Only Scan"}, n.Type) &&
					(n.Index == n.Relation+"_pkey" || n.Index == "jobs_of_flow")
				if (n.Relation == "jobs" || n.Relation == "ended") && !isWrite && !isRead || n.Type == "Sort" || (n.Rows+n.Removed)*max(n.Loops, 1) > 3000 {
					t.Errorf("%s: %s by %q of %.0f rows", name, n.Type, n.Index, (n.Rows+n.Removed)*n.Loops)
				}
			})
		}
	}
}

func TestTheFirstIDAtAnInstantSeparatesOlderIDs(t *testing.T) {
	t.Parallel()
	for _, at := range []time.Time{time.Unix(0, 0), time.Now(), time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC)} {
		id := firstIDAt(at)
		if sec, nsec := id.Time().UnixTime(); id.Version() == 7 && time.Unix(sec, nsec).After(at) {
			t.Errorf("%s is later than %s", id, at)
		}
	}
	before, now := firstIDAt(time.Now().Add(-time.Millisecond)), uuid.Must(uuid.NewV7())
	after := firstIDAt(time.Now().Add(time.Second))
	if slices.Compare(before[:], now[:]) >= 0 || slices.Compare(now[:], after[:]) >= 0 {
		t.Errorf("%s is not between %s and %s", now, before, after)
	}
}

func TestImpossibleRetentionsAreRefused(t *testing.T) {
	t.Parallel()
	for name, keep := range map[string]Retention{
		"RETAIN_COMPLETED": {Completed: -1, Forget: 8 * day}, "RETAIN_FAILED": {Failed: -1, Forget: 8 * day},
		"RETAIN_CANCELLED": {Cancelled: day - 1, Forget: 8 * day}, "FORGET_AFTER": {Forget: jobevent.RecordsGone - 1},
	} {
		if err := keep.Check(); err == nil || err.Error()[:len(name)+2] != name+": " {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := (Retention{Forget: jobevent.RecordsGone}).Check(); err != nil {
		t.Error(err)
	}
}

// age lets a job be accepted, and end if it has, this many days ago.
func (h fixture) age(job jobevent.Created, days int) {
	h.Helper()
	for _, table := range []string{"jobs", "ended"} {
		h.exec("UPDATE "+table+" SET finished_at = finished_at - $2 * interval '1 d' WHERE job_id = $1", job.JobID, days)
	}
}

// retired returns which of the jobs have been deleted, after one walk.
func (h fixture) retired(jobs ...jobevent.Created) (gone []bool) {
	h.Helper()
	if _, _, err := h.Retire(h.Context(), aMonth, uuid.Nil, 1000); err != nil {
		h.Fatal(err)
	}
	for _, job := range jobs {
		gone = append(gone, h.count("all_jobs WHERE deleted_at IS NOT NULL AND job_id = '"+job.JobID.String()+"'") == 1)
	}
	return gone
}

// The outputs of a flow's jobs, those of elements too, are there until its last job has ended, however old they are; and
// while a job that has failed can be retried.
func TestTheJobsOfAFlowAreKeptWhileItNeedsThem(t *testing.T) {
	h := openFixture(t, Config{Lease: time.Hour, MaxLost: 3}, "")
	h.heartbeat("w1", 200, []int32{0, 5})
	flow, at := uuid.Must(uuid.NewV7()), time.Now().Add(time.Hour)
	old := func(of uuid.UUID) jobevent.Created {
		job := newJob()
		job.JobID, job.FlowID, job.MaxRetryCount = firstIDAt(time.Now().Add(-40*day)), of, 0
		_, _ = rand.Read(job.JobID[6:])
		return job
	}
	parent, failing, late, alone := old(flow), old(flow), old(flow), old(uuid.Nil)
	late.After, late.Inputs, late.RunAt = []uuid.UUID{parent.JobID}, []jobevent.Input{{Name: "parent", JobID: parent.JobID}}, &at
	h.ingest(parent, failing, late, alone)
	h.settle(completed(parent, 1), completed(alone, 1), ended(failing, 1, jobstate.KindFailed))
	for _, job := range []jobevent.Created{parent, failing, alone} {
		h.age(job, 20)
	}
	if gone := h.retired(parent, failing, late, alone); !slices.Equal(gone, []bool{false, false, false, true}) {
		t.Errorf("while a job waits, these are deleted: %v", gone)
	}
	h.order(late, 1, jobevent.CommandCancel)
	h.age(late, 20)
	if gone := h.retired(parent, failing, late); !slices.Equal(gone, []bool{false, false, false}) {
		t.Errorf("while a failed job is kept, these are deleted: %v", gone)
	}
	h.age(failing, 20)
	h.retired()
	if gone := h.retired(parent, failing, late); !slices.Equal(gone, []bool{true, true, true}) {
		t.Errorf("afterwards these are deleted: %v", gone)
	}
}
