package workerdb_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/pgtest"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

type fixture struct {
	*testing.T
	store *workerdb.Store
	pool  *pgxpool.Pool
}

func open(t *testing.T) fixture {
	t.Helper()
	t.Parallel()
	url := pgtest.Database(t, migrations.Worker)
	store, err := workerdb.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	pool, err := pgpool.Open(t.Context(), url+"&statement_timeout=0&transaction_timeout=0") // fill may take long
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return fixture{t, store, pool}
}

func (f fixture) exec(sql string, args ...any) {
	f.Helper()
	if _, err := f.pool.Exec(f.Context(), sql, args...); err != nil {
		f.Fatal(err)
	}
}

func order() workerdb.Order {
	return workerdb.Order{
		Key: workerdb.Key{JobID: uuid.Must(uuid.NewV7()), Attempt: 1}, TraceID: uuid.New(), TimeoutMs: 1000,
	}
}

func (f fixture) claim(worker string, orders ...workerdb.Order) []workerdb.Claim {
	f.Helper()
	claims, err := f.store.Claim(f.Context(), worker, orders)
	if err != nil {
		f.Fatal(err)
	}
	return claims
}

func (f fixture) settle(worker string, o workerdb.Outcome) workerdb.Outcome {
	f.Helper()
	settled, err := f.store.Settle(f.Context(), worker, []workerdb.Outcome{o})
	if err != nil {
		f.Fatal(err)
	}
	return settled[0]
}

func (f fixture) heartbeat(worker string, held ...workerdb.Held) workerdb.Changed {
	f.Helper()
	changed, err := f.store.Heartbeat(f.Context(), workerdb.Heartbeat{
		WorkerID: worker, Queues: []string{"default", "mail"}, Free: 3, Held: held,
	})
	if err != nil {
		f.Fatal(err)
	}
	return changed
}

// reap calls Reap for a worker that has just sent a heartbeat.
func (f fixture) reap() []workerdb.Outcome {
	f.Helper()
	f.heartbeat("reaper")
	return f.reapAs("reaper")
}

func (f fixture) reapAs(worker string) []workerdb.Outcome {
	f.Helper()
	outcomes, err := f.store.Reap(f.Context(), worker)
	if err != nil {
		f.Fatal(err)
	}
	return outcomes
}

// silence moves a worker's last heartbeat into the past.
func (f fixture) silence(worker string, by time.Duration) {
	f.Helper()
	f.exec("UPDATE workers SET seen_at = now() - $2::interval WHERE worker_id = $1", worker, by)
}

func completed(o workerdb.Order) workerdb.Outcome {
	now := time.Now()
	return workerdb.Outcome{
		Key: o.Key, TraceID: o.TraceID, Kind: workerdb.Completed, StartedAt: now.Add(-time.Second), FinishedAt: now,
		Output: []byte(`{"b": 1, "a": 2}`),
	}
}

func TestAnAttemptIsClaimedOnce(t *testing.T) {
	f := open(t)
	a, b := order(), order()
	got := f.claim("w1", a, b, a)
	if got[0].State != workerdb.Claimed || got[1].State != workerdb.Claimed || got[2].State != workerdb.OpenMine {
		t.Fatalf("first claim: %+v", got)
	}
	if got := f.claim("w1", a); got[0].State != workerdb.OpenMine {
		t.Errorf("claimed again by the same worker: %+v", got)
	}
	if got := f.claim("w2", b, order()); got[0].State != workerdb.OpenElsewhere || got[1].State != workerdb.Claimed {
		t.Errorf("claimed by another worker: %+v", got)
	}
	f.settle("w1", completed(a))
	got = f.claim("w2", a)
	if got[0].State != workerdb.Settled || got[0].Outcome.Kind != workerdb.Completed ||
		string(got[0].Outcome.Output) != `{"b": 1, "a": 2}` || got[0].Outcome.WorkerID != "w1" ||
		got[0].Outcome.TraceID != a.TraceID {
		t.Errorf("claimed when settled: %+v", got)
	}
}

func TestAnOrderToCancelIsSettledOrMarked(t *testing.T) {
	f := open(t)
	fresh, open := order(), order()
	f.claim("w1", open)
	fresh.Cancel, open.Cancel = true, true
	got := f.claim("w2", fresh, open)
	if got[0].State != workerdb.Settled || got[0].Outcome.Kind != jobevent.KindCancelled ||
		got[0].Outcome.ErrorCode != "WORKER.CANCELLED" || got[0].Outcome.FinishedAt.IsZero() {
		t.Errorf("never claimed: %+v", got[0])
	}
	if got[1].State != workerdb.OpenElsewhere {
		t.Errorf("open elsewhere: %+v", got[1])
	}
	changed := f.heartbeat("w1", workerdb.Held{Key: open.Key})
	if len(changed.CancelWanted) != 1 || changed.CancelWanted[0] != open.Key {
		t.Errorf("the heartbeat of its worker returns %+v", changed)
	}
}

func TestACancelledAttemptNeverStarts(t *testing.T) {
	f := open(t)
	fresh, open, done := order(), order(), order()
	f.claim("w1", open, done)
	f.settle("w1", completed(done))
	orders := []workerdb.Order{fresh, open, done}
	cancelled, err := f.store.Cancel(t.Context(), "w2", orders)
	if err != nil || len(cancelled) != 1 || cancelled[0].Key != fresh.Key || cancelled[0].Kind != jobevent.KindCancelled ||
		cancelled[0].TraceID != fresh.TraceID {
		t.Fatalf("cancelled %+v, %v", cancelled, err)
	}
	if cancelled, err := f.store.Cancel(t.Context(), "w1", orders); err != nil || len(cancelled) != 0 {
		t.Errorf("another worker cancels the same: %+v, %v", cancelled, err)
	}
	if got := f.claim("w1", fresh); got[0].State != workerdb.Settled || got[0].Outcome.Kind != jobevent.KindCancelled {
		t.Errorf("claimed after its cancel: %+v", got[0])
	}
	if got := f.settle("w1", completed(open)); got.Kind != workerdb.Completed {
		t.Errorf("a marked attempt may still complete, got %+v", got)
	}
}

func TestOnlyTheFirstOutcomeOfTheHolderCounts(t *testing.T) {
	f := open(t)
	a := order()
	f.claim("w1", a)
	first := f.settle("w1", completed(a))
	if d := first.FinishedAt.Sub(first.StartedAt); d < 990*time.Millisecond || d > 1010*time.Millisecond {
		t.Errorf("ran %v, want 1 s", d)
	}
	failed := workerdb.Outcome{Key: a.Key, Kind: jobevent.KindFailed, ErrorCode: "X", StartedAt: time.Now(), FinishedAt: time.Now()}
	for _, worker := range []string{"w1", "w2"} {
		if got := f.settle(worker, failed); got.Kind != workerdb.Completed || !got.FinishedAt.Equal(first.FinishedAt) {
			t.Errorf("settled again by %s: %+v", worker, got)
		}
	}
	b := order()
	f.claim("w1", b)
	for _, o := range []workerdb.Order{b, order()} {
		if got := f.settle("w2", completed(o)); got.Kind != "" {
			t.Errorf("w2 settled what it does not have: %+v", got)
		}
	}
}

func TestAllKindsOfOutcomeAreStoredWhole(t *testing.T) {
	f := open(t)
	now := time.Now()
	for _, want := range []workerdb.Outcome{
		{Kind: workerdb.Completed, StartedAt: now},
		{Kind: workerdb.Waiting, StartedAt: now, CallbackTimeout: time.Minute},
		{Kind: jobevent.KindFailed, StartedAt: now, ErrorCode: "A.B", Message: "no", Retryable: true, RetryAfter: time.Second},
		{Kind: jobevent.KindInterrupted, Message: "stopped", Retryable: true},
		{Kind: jobevent.KindCancelled, ErrorCode: "WORKER.CANCELLED"},
		{Kind: jobevent.KindSnoozed, StartedAt: now, RetryAfter: time.Hour},
	} {
		o := order()
		want.Key, want.TraceID, want.WorkerID, want.FinishedAt = o.Key, o.TraceID, "w1", now
		f.claim("w1", o)
		settled := f.settle("w1", want)
		got := f.claim("w2", o)[0].Outcome
		if !settled.StartedAt.Equal(got.StartedAt) || !settled.FinishedAt.Equal(got.FinishedAt) ||
			settled.StartedAt.IsZero() != want.StartedAt.IsZero() {
			t.Errorf("%s: settled %+v, read %+v", want.Kind, settled, got)
		}
		if got.Kind != want.Kind || got.ErrorCode != want.ErrorCode || got.Message != want.Message || got.WorkerID != "w1" ||
			got.Retryable != want.Retryable || got.RetryAfter != want.RetryAfter || got.CallbackTimeout != want.CallbackTimeout {
			t.Errorf("%s: wrote %+v, read %+v", want.Kind, want, got)
		}
	}
}

func TestImpossibleInputIsInvalid(t *testing.T) {
	f := open(t)
	bad := order()
	bad.Attempt = 0
	if _, err := f.store.Claim(t.Context(), "w1", []workerdb.Order{order(), bad}); !errors.Is(err, jobevent.ErrInvalid) {
		t.Errorf("claim: %v", err)
	}
	a := order()
	f.claim("w1", a)
	out := completed(a)
	out.Output = []byte(`{`)
	if _, err := f.store.Settle(t.Context(), "w1", []workerdb.Outcome{out}); !errors.Is(err, jobevent.ErrInvalid) {
		t.Errorf("settle: %v", err)
	}
}

// One attempt of a block is not open any more: the others complete all the same, and keep the pull worker that ran them.
func TestAnAttemptThatIsOverHoldsUpNoOther(t *testing.T) {
	f := open(t)
	id := uuid.Must(uuid.NewV7())
	var outcomes []workerdb.Outcome
	for place := range 3 {
		o := order()
		o.JobID = jobevent.InBlock(id, place)
		f.claim("w1", o)
		now := time.Now()
		outcomes = append(outcomes, workerdb.Outcome{
			Key: o.Key, TraceID: o.TraceID, RanBy: "puller", Kind: workerdb.Completed, StartedAt: now, FinishedAt: now,
		})
	}
	f.settle("w1", outcomes[1])
	settled, err := f.store.Settle(t.Context(), "w1", outcomes)
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range settled {
		if o.Key != outcomes[i].Key || o.Kind != workerdb.Completed || o.RanBy != "puller" || o.WorkerID != "w1" {
			t.Errorf("%+v", o)
		}
	}
}

func TestAnOutcomeThatIsTwiceInABatchIsSettledOnce(t *testing.T) {
	f := open(t)
	o := order()
	f.claim("w1", o)
	now := time.Now()
	one := workerdb.Outcome{Key: o.Key, TraceID: o.TraceID, Kind: workerdb.Completed, StartedAt: now, FinishedAt: now}
	settled, err := f.store.Settle(t.Context(), "w1", []workerdb.Outcome{one, one})
	if err != nil || settled[0].Kind != workerdb.Completed || !settled[0].FinishedAt.Equal(settled[1].FinishedAt) {
		t.Errorf("%+v, %v", settled, err)
	}
}
