package schedulerdb

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/dispatch"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

// drift returns how the rows differ from the ledger.
func (h fixture) drift() dispatch.Delta {
	h.Helper()
	counted, err := h.Count(h.Context())
	if err != nil {
		h.Fatal(err)
	}
	return counted.drift
}

func (h fixture) begin() pgx.Tx {
	h.Helper()
	tx, err := h.pool.Begin(h.Context())
	if err != nil {
		h.Fatal(err)
	}
	return tx
}

// A transaction that had to wait for the ledger notes the time at which its turn came. Otherwise a job that it starts
// would have started, by its history, before the job ended that it had to wait for.
func TestAJobBeginsWhenTheLedgerWasLockedForIt(t *testing.T) {
	h := openFixture(t, Config{Lease: 15 * time.Second, MaxLost: 3}, patient)
	h.heartbeat("w1", 1, []int32{0})
	other := h.begin()
	defer func() { _ = other.Rollback(t.Context()) }() // a test that ends here gives back the connection
	if _, err := other.Exec(t.Context(), lockLedgerSQL); err != nil {
		t.Fatal(err)
	}
	job, ingested := newJob(), make(chan error, 1)
	go func() {
		_, err := h.Ingest(t.Context(), []jobevent.Created{job})
		ingested <- err
	}()
	pgtest.UntilBlocked(t, h.pool.QueryRow)
	var freed time.Time
	if err := other.QueryRow(t.Context(), "UPDATE dispatch_state SET n = n + 1 RETURNING clock_timestamp()").Scan(&freed); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(other.Commit(t.Context()), <-ingested); err != nil {
		t.Fatal(err)
	}
	if queued := h.wantStatus(job, jobstate.Queued).History[0]; queued.At.Before(freed) {
		t.Errorf("the job began at %s, while another transaction had the ledger locked until after %s", queued.At, freed)
	}
}

func TestTheCountFindsAJobThatDispatchingSkippedAsLocked(t *testing.T) {
	h := newFixture(t)
	h.heartbeat("w1", 1, []int32{0})
	jobs := newJobs(3)
	for i, job := range jobs {
		job.CreatedAt = time.Now().Add(time.Duration(i-10) * time.Second)
		jobs[i] = job
		h.ingest(job)
	}
	other := h.begin()
	if _, err := other.Exec(t.Context(), "SELECT FROM jobs WHERE job_id = $1 FOR UPDATE", jobs[1].JobID); err != nil {
		t.Fatal(err)
	}
	if effects := h.settle(completed(jobs[0], 1)); len(effects.Runs) != 1 || effects.Runs[0].JobID != jobs[2].JobID {
		t.Fatalf("past the locked one %+v", effects.Runs)
	}
	if err := other.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.settle(completed(jobs[2], 1))
	if drift := h.drift(); drift.Empty() || drift.ChangesCounts() {
		t.Fatalf("drift %+v", drift)
	}
	if effects := h.askAgain(time.Second); len(effects.Runs) != 1 || effects.Runs[0].JobID != jobs[1].JobID {
		t.Errorf("after the count %+v", effects.Runs)
	}
	if drift := h.drift(); !drift.Empty() {
		t.Errorf("the count left %+v", drift)
	}
}

func TestARefusedCommandKeepsAWaitingJobInTheLedger(t *testing.T) {
	h := newFixture(t)
	h.heartbeat("w1", 1, []int32{0})
	first, second := newJob(), newJob()
	h.ingest(first)
	h.ingest(second)
	h.exec("UPDATE dispatch_state SET floors = '{}'") // as if the second had been skipped
	h.order(second, 1, jobevent.CommandRetry)         // which is refused
	if effects := h.settle(completed(first, 1)); len(effects.Runs) != 1 {
		t.Errorf("sent out %+v", effects.Runs)
	}
}

func TestARefusedBatchLeavesTheLedgerAsItWas(t *testing.T) {
	h := newFixture(t)
	bad := newJob()
	bad.Payload = json.RawMessage(`{`)
	if _, err := h.Ingest(t.Context(), append(newJobs(40), bad)); err == nil {
		t.Fatal("taken")
	}
	if drift := h.drift(); !drift.Empty() {
		t.Errorf("drift %+v", drift)
	}
	if effects := h.ingest(newJobs(20)...); len(effects.Runs) != dispatch.MaxUnserved {
		t.Errorf("%d out", len(effects.Runs))
	}
}

func TestTheCountCorrectsRowsThatTheLedgerMissed(t *testing.T) {
	for _, table := range []string{"jobs", "dispatched"} {
		t.Run(table, func(t *testing.T) {
			h := newFixture(t)
			if table == "jobs" {
				h.cohort = 1
			}
			h.heartbeat("w1", 5, []int32{0})
			h.ingest(newJobs(5)...)
			h.tamper("DELETE FROM " + table)
			if effects := h.ingest(newJobs(9)...); len(effects.Runs) != 5 {
				t.Errorf("%d are out", len(effects.Runs))
			}
		})
	}
}

// Entries are appended as text. A message that looks like the border between two entries must not count as one.
func TestAFullHistoryKeepsItsLastHundredTransitions(t *testing.T) {
	h := newFixture(t)
	job := newJob()
	job.MaxRetryCount = 100
	h.ingest(job)
	const nasty = "\"},{\"at\":\"<[]>\n\\"
	attempt := 1
	for ; attempt <= 45; attempt++ {
		o := ended(job, attempt, jobstate.KindInterrupted)
		o.Message = nasty
		h.settle(o) // to PENDING and to QUEUED
	}
	for ; attempt <= 49; attempt++ {
		h.settle(ended(job, attempt, jobstate.KindFailed))
		h.tamper("UPDATE jobs SET due_at = now()")
		h.due()
	}
	now := time.Now()
	h.heartbeat("w1", 1, []int32{0}, jobevent.ListedAttempt{JobID: job.JobID, Attempt: attempt, StartedAt: &now})
	h.wantFullHistory(job, "RUNNING", nasty)
	h.settle(waiting(job), ended(job, attempt, jobstate.KindLost))
	h.settle(completed(job, attempt+1))
	h.wantFullHistory(job, "COMPLETED", nasty)
}

func (h fixture) wantFullHistory(job jobevent.Created, last, message string) {
	h.Helper()
	moves := h.status(job).History
	if len(moves) != 100 || moves[99].To != last || moves[0].From == "" {
		h.Fatalf("%d moves, from %+v to %+v", len(moves), moves[0], moves[len(moves)-1])
	}
	found := 0
	for i, move := range moves[1:] {
		if move.From != moves[i].To || move.At.Before(moves[i].At) {
			h.Errorf("%+v after %+v", move, moves[i])
		}
		if move.Message == message {
			found++
		}
	}
	if found < 20 {
		h.Errorf("the history has the message %d times", found)
	}
}

// The database refuses these rows, although no method of the store writes them.
func TestTheDatabaseRefusesImpossibleRows(t *testing.T) {
	h := newFixture(t)
	job := newJob()
	h.ingest(job)
	for _, set := range []string{
		"status = 'LOST'", "status = 'PENDING'", "status = 'COMPLETED'", "status = 'SCHEDULED'", "status = 'RETRYING'",
		"status = 'WAITING'", "status = 'FAILED'", "status = 'CANCELLED'", "status = 'RUNNING', partition = null",
		"lease_expires_at = null", "partition = null", "due_at = now()", "callback_deadline_at = now()", "finished_at = now()",
		"attempt = 0", "attempt = -1", "status = 'COMPLETED', finished_at = now(), due_at = now()",
		"status = 'COMPLETED', finished_at = now(), cancel_requested_at = now()",
		"status = 'CANCELLED', finished_at = now()", // it has a lease
		"status = 'FAILED', finished_at = now(), lease_expires_at = null, partition = null",
		"queue = ''", "queue = repeat('a', 64)",
		"retry_count = -1", "lost_count = -1", "version = 0", "command_seq = -1", "moves = 0", "moves = 101",
	} {
		if _, err := h.pool.Exec(t.Context(), "UPDATE jobs SET "+set); err == nil || !strings.Contains(err.Error(), "jobs_possible") {
			t.Errorf("%s: %v", set, err)
		}
	}
}
