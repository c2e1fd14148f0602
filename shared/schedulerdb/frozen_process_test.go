package schedulerdb

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/jobweaver/jobweaver/shared/dispatch"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/pgpool"
)

const lockLedgerSQL = "SELECT FROM dispatch_state ORDER BY n DESC LIMIT 1 FOR UPDATE"

// thawed is long for a busy machine, and too short for StatementTimeout, which would end the session as well.
const thawed = pgpool.StatementTimeout - 5*time.Second

// freeze runs a statement in a transaction of a session like the store's. Afterwards the session is neither used nor
// closed.
func (h fixture) freeze(sql string, args ...any) net.Conn {
	h.Helper()
	conn, err := h.pool.Acquire(h.Context())
	if err != nil {
		h.Fatal(err)
	}
	raw := conn.Hijack()
	for _, s := range []struct {
		sql  string
		args []any
	}{{"BEGIN", nil}, {sql, args}} {
		if _, err := raw.Exec(h.Context(), s.sql, s.args...); err != nil {
			h.Fatal(err)
		}
	}
	wire, err := raw.PgConn().Hijack()
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() { _ = wire.Conn.Close() })
	return wire.Conn
}

// The server ends a transaction that is idle, or that takes too long, and releases its lock.
func TestIngestGoesOnWhileAFrozenProcessHoldsTheLedger(t *testing.T) {
	rows, err := (&pgproto3.Query{String: "SELECT repeat('x', 10000) FROM generate_series(1, 10000)"}).Encode(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, unread := range map[string][]byte{"between two statements": nil, "while it receives rows": rows} {
		t.Run(name, func(t *testing.T) {
			h := newFixture(t)
			if _, err := h.freeze(lockLedgerSQL).Write(unread); err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithTimeout(t.Context(), thawed)
			defer stop()
			job := newJob()
			for {
				effects, err := h.Ingest(ctx, []jobevent.Created{job})
				if err == nil && len(effects.Runs) == 1 {
					return
				}
				if ctx.Err() != nil || !pgpool.IsUnavailable(err) {
					t.Fatalf("%d orders, %v", len(effects.Runs), err)
				}
			}
		})
	}
}

func TestTheClockSkipsRowsThatAFrozenProcessHasLocked(t *testing.T) {
	h := newFixture(t)
	locked, other := newJob(), newJob()
	for _, job := range []jobevent.Created{locked, other} {
		h.ingest(job)
		h.settle(waiting(job))
	}
	h.tamper("UPDATE jobs SET callback_deadline_at = now() - interval '1 s', due_at = now()")
	h.freeze("SELECT FROM jobs WHERE job_id = $1 FOR UPDATE", locked.JobID)

	effects, next, err := h.Due(t.Context(), time.Minute)
	if err != nil || len(effects.Jobs) != 1 || effects.Jobs[0].JobID != other.JobID || next != lockedPause {
		t.Fatalf("returned %+v, then waits %s, %v", effects.Jobs, next, err)
	}
	for began := time.Now(); ; {
		effects, next, err := h.Due(t.Context(), time.Minute)
		if err != nil || time.Since(began) > thawed {
			t.Fatalf("after %s: %v", time.Since(began), err)
		}
		if len(effects.Jobs) == 1 && effects.Jobs[0].JobID == locked.JobID {
			break
		}
		<-time.After(next) // as the clock does
	}
}

// The payload is read after the commit: the run order has it all the same.
func TestAJobThatWaitedGoesOutWithItsPayload(t *testing.T) {
	h := newFixture(t)
	running := newJobs(dispatch.MaxUnserved)
	h.ingest(running...)
	late := newJob()
	late.Payload, late.Priority = []byte(`{"n":1}`), 3
	if effects := h.ingest(late); len(effects.Runs) > 0 {
		t.Fatalf("there was room for %+v", effects.Runs)
	}
	effects := h.settle(completed(running[0], 1))
	if len(effects.Runs) != 1 {
		t.Fatalf("%d orders", len(effects.Runs))
	}
	got := effects.Runs[0]
	if got.JobID != late.JobID || string(got.Payload) != `{"n":1}` || got.Attempt != 1 || got.Partition == nil ||
		got.TraceID != late.TraceID || got.JobType != late.JobType || string(got.Spec) != string(late.Bytes()) {
		t.Errorf("the order is %+v", got)
	}
	h.wantStatus(late, jobstate.Queued)
}
