package workerdb_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

// inModel is what the model knows of an attempt.
type inModel struct {
	by     string // the worker that has it, or that settled it without a claim
	kind   jobevent.Kind
	output string
	code   string
	marked bool // for a cancel
	begun  bool // a heartbeat has its start
	waited bool // the last heartbeat listed it as not started
}

// attemptsModel is a workerdb in which each attempt has a row of its own.
type attemptsModel struct {
	f    fixture
	rt   *rapid.T
	jobs []uuid.UUID
	all  map[workerdb.Key]*inModel
}

var modelWorkers = []string{"w1", "w2", "w3"}

func (m *attemptsModel) worker() string { return rapid.SampledFrom(modelWorkers).Draw(m.rt, "worker") }

// some returns some attempts, of which one may be there twice.
func (m *attemptsModel) some() (keys []workerdb.Key) {
	for range rapid.IntRange(1, 6).Draw(m.rt, "attempts") {
		keys = append(keys, workerdb.Key{
			JobID: rapid.SampledFrom(m.jobs).Draw(m.rt, "job"), Attempt: rapid.IntRange(1, 2).Draw(m.rt, "attempt"),
		})
	}
	return keys
}

func (m *attemptsModel) held(worker string) (held []workerdb.Key) {
	for key, a := range m.all {
		if a.by == worker && a.kind == "" {
			held = append(held, key)
		}
	}
	slices.SortFunc(held, workerdb.Key.Compare)
	return held
}

func traceOf(key workerdb.Key) uuid.UUID {
	return uuid.NewSHA1(key.JobID, fmt.Append(nil, key.Attempt))
}

func (m *attemptsModel) claim() {
	worker, keys := m.worker(), m.some()
	orders := make([]workerdb.Order, len(keys))
	for i, key := range keys {
		orders[i] = workerdb.Order{Key: key, TraceID: traceOf(key), TimeoutMs: 60_000}
		switch rapid.IntRange(0, 9).Draw(m.rt, "kind") {
		case 0:
			orders[i].Cancel = true
		case 1:
			orders[i].ExpiresAt = time.Now().Add(-time.Hour)
		case 2:
			orders[i].ExpiresAt = time.Now().Add(time.Hour)
		}
	}
	got := m.f.claim(worker, orders...)
	// What must not start is settled before the rest of a batch is claimed; blocks come before single attempts.
	for i, claim := range got {
		o := orders[i]
		a := m.all[o.Key]
		switch claim.State {
		case workerdb.Claimed:
			if a != nil || o.Cancel || o.ExpiresAt.Before(time.Now()) && !o.ExpiresAt.IsZero() {
				m.rt.Fatalf("%v of %+v was claimed", o.Key, a)
			}
			m.all[o.Key] = &inModel{by: worker}
		case workerdb.Settled:
			if a == nil {
				a = &inModel{by: worker, kind: jobevent.KindCancelled, code: claim.Outcome.ErrorCode}
				m.all[o.Key] = a
			}
			m.compare(claim.Outcome, a)
		case workerdb.OpenElsewhere, workerdb.OpenMine:
		}
	}
	for i, claim := range got {
		a, o := m.all[orders[i].Key], orders[i]
		if a == nil {
			m.rt.Fatalf("%v: %+v", o.Key, claim)
		}
		want := workerdb.OpenMine
		if a.kind != "" {
			want = workerdb.Settled
		} else if a.by != worker {
			want = workerdb.OpenElsewhere
		}
		first := claim.State == workerdb.Claimed && want == workerdb.OpenMine
		if claim.State != want && !first {
			m.rt.Fatalf("%v of %+v by %s: %+v", o.Key, a, worker, claim)
		}
		if o.Cancel && a.kind == "" {
			a.marked = true
		}
	}
}

func (m *attemptsModel) compare(o workerdb.Outcome, a *inModel) {
	m.rt.Helper()
	if o.Kind != a.kind || o.ErrorCode != a.code || string(o.Output) != a.output || o.WorkerID != a.by || o.FinishedAt.IsZero() {
		m.rt.Fatalf("%+v, want %+v", o, *a)
	}
	if o.TraceID != traceOf(o.Key) {
		m.rt.Fatalf("%v has the trace %s", o.Key, o.TraceID)
	}
}

func (m *attemptsModel) settle() {
	worker := m.worker()
	keys := m.held(worker)
	if rapid.IntRange(0, 3).Draw(m.rt, "others, too") == 0 {
		keys = append(keys, m.some()...)
	}
	var batch []workerdb.Outcome
	seen := map[workerdb.Key]bool{}
	for _, key := range keys {
		if seen[key] || m.all[key] == nil || rapid.IntRange(0, 2).Draw(m.rt, "skip") == 0 {
			continue
		}
		seen[key] = true
		now := time.Now()
		o := workerdb.Outcome{Key: key, TraceID: traceOf(key), Kind: workerdb.Completed, StartedAt: now.Add(-time.Millisecond), FinishedAt: now}
		switch rapid.IntRange(0, 5).Draw(m.rt, "outcome") {
		case 0:
			o.Kind, o.ErrorCode, o.Message, o.Retryable = jobevent.KindFailed, "X", "it failed", true
		case 1:
			o.StartedAt = now.Add(-time.Minute)
		case 2:
			o.Output = fmt.Appendf(nil, `%q`, key.JobID)
		}
		batch = append(batch, o)
	}
	settled, err := m.f.store.Settle(m.f.Context(), worker, batch)
	if err != nil {
		m.rt.Fatal(err)
	}
	for i, o := range settled {
		a := m.all[batch[i].Key]
		if a.kind == "" && a.by == worker {
			a.kind, a.code, a.output = batch[i].Kind, batch[i].ErrorCode, string(batch[i].Output)
		}
		if a.kind == "" {
			if o.Kind != "" {
				m.rt.Fatalf("%s settled an attempt of %+v as %+v", worker, *a, o)
			}
			continue
		}
		m.compare(o, a)
	}
}

func (m *attemptsModel) heartbeat() {
	worker := m.worker()
	b := workerdb.Heartbeat{WorkerID: worker, Queues: []string{}, Answered: m.f.store.LastClaim()}
	for _, key := range m.held(worker) {
		held := workerdb.Held{Key: key, TraceID: traceOf(key), TimeoutMs: 60_000}
		a := m.all[key]
		if a.begun || rapid.Bool().Draw(m.rt, "runs") {
			held.StartedAt, a.begun = time.Now().Add(-time.Second), true
		}
		a.waited = !a.begun
		b.Held = append(b.Held, held)
	}
	changed, err := m.f.store.Heartbeat(m.f.Context(), b)
	if err != nil || len(changed.Settled) > 0 {
		m.rt.Fatal(changed, err)
	}
	want := map[workerdb.Key]bool{}
	for _, held := range b.Held {
		if m.all[held.Key].marked {
			want[held.Key] = true
		}
	}
	got := map[workerdb.Key]bool{}
	for _, key := range changed.CancelWanted {
		got[key] = true
	}
	if !maps.Equal(got, want) {
		m.rt.Fatalf("to be cancelled: %v, want %v", got, want)
	}
}

func (m *attemptsModel) cancel() {
	worker := m.worker()
	var orders []workerdb.Order
	for _, key := range m.some() {
		orders = append(orders, workerdb.Order{Key: key, TraceID: traceOf(key)})
	}
	outcomes, err := m.f.store.Cancel(m.f.Context(), worker, orders)
	if err != nil {
		m.rt.Fatal(err)
	}
	now := map[workerdb.Key]workerdb.Outcome{}
	for _, o := range outcomes {
		now[o.Key] = o
	}
	for _, o := range orders {
		a := m.all[o.Key]
		outcome, cancelled := now[o.Key]
		if cancelled != (a == nil) && !(a != nil && a.by == worker && cancelled && a.code == outcome.ErrorCode) {
			m.rt.Fatalf("%v of %+v: cancelled %v", o.Key, a, cancelled)
		}
		if a == nil {
			m.all[o.Key] = &inModel{by: worker, kind: jobevent.KindCancelled, code: "WORKER.CANCELLED"}
			m.compare(outcome, m.all[o.Key])
		} else if a.kind == "" {
			a.marked = true
		}
	}
}

func (m *attemptsModel) lose() {
	worker := m.worker()
	m.f.heartbeat("reaper")
	m.f.exec("INSERT INTO workers (worker_id, queues, free) VALUES ($1, '{}', 0) ON CONFLICT DO NOTHING", worker)
	m.f.silence(worker, time.Minute)
	outcomes, err := m.f.store.Reap(m.f.Context(), "reaper")
	if err != nil {
		m.rt.Fatal(err)
	}
	m.ended(worker, outcomes, func(a *inModel, key workerdb.Key) (jobevent.Kind, string) {
		if a.waited && !a.begun && key.Attempt%2 == 1 {
			return jobevent.KindInterrupted, ""
		}
		return jobevent.KindLost, "WORKER.LOST"
	})
	m.f.heartbeat(worker)
}

// ended checks that outcomes are those of all open attempts of a worker.
func (m *attemptsModel) ended(
	worker string, outcomes []workerdb.Outcome, want func(*inModel, workerdb.Key) (jobevent.Kind, string),
) {
	open := m.held(worker)
	if len(outcomes) != len(open) {
		m.rt.Fatalf("%d of %d open attempts of %s ended: %+v", len(outcomes), len(open), worker, outcomes)
	}
	for _, o := range outcomes {
		a := m.all[o.Key]
		if a == nil || a.kind != "" || a.by != worker {
			m.rt.Fatalf("%+v ended as %+v", a, o)
		}
		a.kind, a.code = want(a, o.Key)
		m.compare(o, a)
	}
}

func (m *attemptsModel) leave() {
	worker := m.worker()
	outcomes, err := m.f.store.Leave(m.f.Context(), worker)
	if err != nil {
		m.rt.Fatal(err)
	}
	m.ended(worker, outcomes, func(*inModel, workerdb.Key) (jobevent.Kind, string) { return jobevent.KindInterrupted, "" })
	m.f.heartbeat(worker)
}

func (m *attemptsModel) save() {
	worker := m.worker()
	var all []workerdb.Checkpoint
	seen := map[uuid.UUID]bool{}
	for _, key := range m.some() {
		if !seen[key.JobID] { // of a job only one attempt is open
			all = append(all, workerdb.Checkpoint{Key: key, TraceID: traceOf(key), TimeoutMs: 60_000, Number: 1, Data: []byte("1")})
			seen[key.JobID] = true
		}
	}
	open, err := m.f.store.SaveCheckpoints(m.f.Context(), worker, all)
	if err != nil {
		m.rt.Fatal(err)
	}
	for _, c := range all {
		if a := m.all[c.Key]; open[c.Key] != (a != nil && a.kind == "" && a.by == worker) {
			m.rt.Fatalf("%s saved for %v of %+v: %v", worker, c.Key, a, open[c.Key])
		}
	}
}

// same compares the attempts in the database with the model.
func (m *attemptsModel) same() {
	keys, err := m.f.store.Taken(m.f.Context(), m.every())
	if err != nil || len(keys) != len(m.all) {
		m.rt.Fatalf("taken: %v, want %d, %v", keys, len(m.all), err)
	}
	rows, err := m.f.pool.Query(m.f.Context(), `SELECT job_id, attempt, worker_id, coalesce(outcome, ''), coalesce(output::text, ''),
		coalesce(error_code, ''), cancel_wanted, started_at IS NOT NULL AND outcome IS NULL
		FROM attempts WHERE job_id = ANY ($1)`, m.jobs)
	if err != nil {
		m.rt.Fatal(err)
	}
	defer rows.Close()
	found := 0
	for rows.Next() {
		var key workerdb.Key
		var got inModel
		var begun bool
		if err := rows.Scan(&key.JobID, &key.Attempt, &got.by, &got.kind, &got.output, &got.code, &got.marked, &begun); err != nil {
			m.rt.Fatal(err)
		}
		found++
		want := m.all[key]
		if want == nil || got.by != want.by || got.kind != want.kind || got.output != want.output || got.code != want.code ||
			got.marked != want.marked || got.kind == "" && begun != want.begun {
			m.rt.Fatalf("%v is %+v, begun %v, want %+v", key, got, begun, want)
		}
	}
	if rows.Err() != nil || found != len(m.all) {
		m.rt.Fatalf("%d attempts, want %d, %v", found, len(m.all), rows.Err())
	}
}

func (m *attemptsModel) every() (keys []workerdb.Key) {
	for _, id := range m.jobs {
		keys = append(keys, workerdb.Key{JobID: id, Attempt: 1}, workerdb.Key{JobID: id, Attempt: 2})
	}
	return keys
}

// TestAttemptsInBlocksFareLikeAttemptsWithRows does what workers do, in random order, with jobs of two blocks.
func TestAttemptsInBlocksFareLikeAttemptsWithRows(t *testing.T) {
	f := open(t)
	rapid.Check(t, func(rt *rapid.T) {
		m := &attemptsModel{f: f, rt: rt, all: map[workerdb.Key]*inModel{}}
		for range 2 {
			id := uuid.Must(uuid.NewV7())
			for _, place := range []int{0, 1, 62, 63} {
				m.jobs = append(m.jobs, jobevent.InBlock(id, place))
			}
		}
		f.exec("DELETE FROM execution_attempts; DELETE FROM claims; DELETE FROM blocks")
		for _, worker := range modelWorkers {
			f.heartbeat(worker)
		}
		rt.Repeat(map[string]func(*rapid.T){
			"claim": func(rt *rapid.T) { m.rt = rt; m.claim() }, "settle": func(rt *rapid.T) { m.rt = rt; m.settle() },
			"heartbeat": func(rt *rapid.T) { m.rt = rt; m.heartbeat() }, "cancel": func(rt *rapid.T) { m.rt = rt; m.cancel() },
			"lose": func(rt *rapid.T) { m.rt = rt; m.lose() }, "leave": func(rt *rapid.T) { m.rt = rt; m.leave() },
			"save": func(rt *rapid.T) { m.rt = rt; m.save() },
			"":     func(rt *rapid.T) { m.rt = rt; m.same() },
		})
	})
}

// Workers claim, settle, cancel and heartbeat attempts of the same blocks at the same time.
func TestWorkersShareBlocks(t *testing.T) {
	f := open(t)
	var orders []workerdb.Order
	for range 6 {
		id := uuid.Must(uuid.NewV7())
		for place := range jobevent.BlockSize {
			key := workerdb.Key{JobID: jobevent.InBlock(id, place), Attempt: 1}
			orders = append(orders, workerdb.Order{Key: key, TraceID: traceOf(key), TimeoutMs: 60_000})
		}
	}
	var mu sync.Mutex
	claimedBy, outcomes := map[workerdb.Key]string{}, map[workerdb.Key]workerdb.Outcome{}
	note := func(worker string, o workerdb.Outcome) {
		mu.Lock()
		defer mu.Unlock()
		if first, ok := outcomes[o.Key]; ok && (first.Kind != o.Kind || first.WorkerID != o.WorkerID) {
			t.Errorf("%s reads %+v, and %+v was read before", worker, o, first)
		}
		outcomes[o.Key] = o
	}
	work := func(worker string, seed uint64) error {
		rnd := rand.New(rand.NewPCG(seed, 0))
		for _, at := range rnd.Perm(len(orders) / 16 * 3) {
			at = at * 16 / 3 / 8 * 8 % len(orders)
			part := slices.Clone(orders[at:min(at+8+rnd.IntN(40), len(orders))])
			rnd.Shuffle(len(part), func(i, j int) { part[i], part[j] = part[j], part[i] })
			if rnd.IntN(6) == 0 {
				cancelled, err := f.store.Cancel(t.Context(), worker, part[:1])
				if err != nil {
					return fmt.Errorf("cancel: %w", err)
				}
				for _, o := range cancelled {
					note(worker, o)
				}
			}
			claims, err := f.store.Claim(t.Context(), worker, part)
			if err != nil {
				return fmt.Errorf("claim: %w", err)
			}
			var held []workerdb.Held
			var batch []workerdb.Outcome
			now := time.Now()
			for i, claim := range claims {
				key := part[i].Key
				if claim.State == workerdb.Settled {
					note(worker, claim.Outcome)
				}
				if claim.State != workerdb.Claimed {
					continue
				}
				mu.Lock()
				if other, ok := claimedBy[key]; ok {
					t.Errorf("%v was claimed by %s and %s", key, other, worker)
				}
				claimedBy[key] = worker
				mu.Unlock()
				held = append(held, workerdb.Held{Key: key, TraceID: traceOf(key), TimeoutMs: 60_000, StartedAt: now.Add(-time.Duration(rnd.IntN(2)) * time.Second)})
				o := workerdb.Outcome{Key: key, TraceID: traceOf(key), Kind: workerdb.Completed, StartedAt: now, FinishedAt: now}
				if rnd.IntN(10) == 0 {
					o.Kind, o.ErrorCode = jobevent.KindFailed, "X"
				}
				batch = append(batch, o)
			}
			if rnd.IntN(3) == 0 {
				b := workerdb.Heartbeat{WorkerID: worker, Queues: []string{}, Held: held}
				if _, err := f.store.Heartbeat(t.Context(), b); err != nil {
					return fmt.Errorf("heartbeat: %w", err)
				}
			}
			settled, err := f.store.Settle(t.Context(), worker, batch)
			if err != nil {
				return fmt.Errorf("settle: %w", err)
			}
			for i, o := range settled {
				if o.Kind != batch[i].Kind || o.WorkerID != worker {
					t.Errorf("%s settled %+v as %+v", worker, batch[i], o)
				}
				note(worker, o)
			}
		}
		return nil
	}
	var all errgroup.Group
	for i, worker := range []string{"w1", "w1", "w2", "w3"} {
		all.Go(func() error { return work(worker, uint64(i)) })
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	if n := f.count("SELECT count(*) FROM attempts WHERE outcome IS NULL"); n > 0 {
		t.Errorf("%d attempts are open", n)
	}
	if n := f.count("SELECT count(*) FROM attempts"); n != len(outcomes) || n < len(orders)*9/10 {
		t.Errorf("%d attempts, %d outcomes of %d orders", n, len(outcomes), len(orders))
	}
}
