package schedulerdb

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/emit"
)

// limited checks the limits of a store by its effects: an attempt counts from its run order until its outcome is
// reported.
type limited struct {
	fixture
	stores []*Store
	jobs   map[uuid.UUID]jobevent.Created
	limits map[subject]int

	mu      sync.Mutex
	orders  []emit.RunOrder
	running map[subject]int
	ended   map[uuid.UUID]bool
}

// Three stores ingest, settle and dispatch at once, while limits of all kinds, that of each fairness key among them,
// overlap and other controls change. No limit is ever exceeded, every job ends, and afterwards there is as much room as
// before.
func TestConcurrentStoresKeepTheLimits(t *testing.T) {
	h := openFixture(t, Config{Lease: time.Minute, MaxLost: 3}, patient+"pool_max_conns=6")
	w := &limited{
		fixture: h, stores: []*Store{h.Store}, jobs: map[uuid.UUID]jobevent.Created{},
		limits: map[subject]int{
			{"queue", "default"}: 5, {"type", "A"}: 3, {"type", "B"}: 4, {"owner", "x"}: 3, {"owner", "y z"}: 1,
			{jobevent.ControlKey, "k1"}: 2, {jobevent.ControlKey, "k2"}: 2, {jobevent.ControlKey, "k3"}: 2,
		},
		running: map[subject]int{}, ended: map[uuid.UUID]bool{},
	}
	for range 2 {
		store, err := Open(t.Context(), h.pool.Config().ConnString(), h.cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(store.Close)
		w.stores = append(w.stores, store)
	}
	h.control(atMost(jobevent.ControlKey, jobevent.AnyName, 1, 2))
	for s, n := range w.limits {
		if s.kind != jobevent.ControlKey {
			h.control(atMost(s.kind, s.name, 1, n))
		}
	}
	all := []int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
	effects, err := h.Heartbeat(t.Context(), []jobevent.Heartbeat{{
		WorkerID: "w1", Slots: 30, Partitions: map[string][]int32{"default": all, "mail": all},
	}})
	h.must(effects, err)
	h.exec("UPDATE workers SET seen_at = now() + interval '1 h'")
	ctx, stop := context.WithTimeout(t.Context(), 90*time.Second)
	defer stop()
	w.run(ctx)
	if len(w.ended) < len(w.jobs) {
		t.Fatalf("%d of %d jobs have ended; ledger %+v", len(w.ended), len(w.jobs), h.ledger())
	}
	for _, s := range []subject{{"queue", "mail"}, {"type", "C"}, {"owner", "free"}} {
		h.control(nothing(s.kind, s.name, math.MaxInt64))
	}
	h.control(atMost("type", "A", math.MaxInt64, 3)) // dispatching does not read a paused lane, which stays in the ledger
	h.tick()
	h.wantEmpty()
	for s, n := range w.limits {
		w.wantUsedUp(s, n)
	}
	h.wantEmpty()
}

// wantUsedUp asserts that exactly n of ten jobs that only s limits run at once: earlier attempts no longer count.
func (w *limited) wantUsedUp(s subject, n int) {
	jobs := newJobs(10)
	for i := range jobs {
		jobs[i].Queue, jobs[i].JobType, jobs[i].OwnerID, jobs[i].FairnessKey = "mail", "C", "free", uuid.NewString()
		switch s.kind {
		case jobevent.ControlQueue:
			jobs[i].Queue = s.name
		case jobevent.ControlType:
			jobs[i].JobType = s.name
		case jobevent.ControlOwner:
			jobs[i].OwnerID = s.name
		case jobevent.ControlKey:
			jobs[i].FairnessKey = s.name
		case jobevent.ControlWorker, jobevent.ControlCreated: // no subject of a job
		}
	}
	out := w.ingest(jobs...).Runs
	if len(out) != n {
		w.Errorf("of %s %s %d are out, want %d", s.kind, s.name, len(out), n)
	}
	for ; len(out) > 0; out = out[1:] {
		out = append(out, w.settle(completed(jobevent.Created{JobID: out[0].JobID}, 1)).Runs...)
	}
}

func (w *limited) run(ctx context.Context) {
	parts := make([][]jobevent.Created, len(w.stores)) // all of them before a store reads w.jobs
	for i := range parts {
		for range 120 {
			job := newJob()
			job.Queue = []string{"default", "mail"}[rand.IntN(2)]
			job.JobType, job.OwnerID = []string{"A", "B", "C"}[rand.IntN(3)], []string{"", "x", "y z", "free"}[rand.IntN(4)]
			job.Priority, job.FairnessKey = rand.IntN(10), []string{"k1", "k2", "k3"}[rand.IntN(3)]
			if rand.IntN(10) == 0 {
				runAt := time.Now().Add(rand.N(time.Second))
				job.RunAt = &runAt
			}
			parts[i], w.jobs[job.JobID] = append(parts[i], job), job
		}
	}
	var ingesting, copies sync.WaitGroup
	for i, store := range w.stores {
		ingesting.Go(func() {
			for mine := parts[i]; len(mine) > 0 && ctx.Err() == nil; {
				n := min(1+rand.IntN(12), len(mine))
				w.publish(ctx)(store.Ingest(ctx, mine[:n]))
				mine = mine[n:]
			}
		})
	}
	for _, store := range w.stores {
		for range 2 {
			copies.Go(func() { w.settleAll(ctx, store) })
		}
		copies.Go(func() { w.keepTime(ctx, store) })
	}
	copies.Go(func() { w.control(ctx) })
	ingesting.Wait()
	copies.Wait()
}

// publish takes the effects of a store's method, and counts its run orders.
func (w *limited) publish(ctx context.Context) func(emit.Effects, error) {
	return func(effects emit.Effects, err error) {
		if err != nil && ctx.Err() == nil {
			w.Error(err)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, order := range effects.Runs {
			w.orders = append(w.orders, order)
			w.count(order.JobID, 1)
		}
	}
}

func (w *limited) count(id uuid.UUID, n int) {
	job := w.jobs[id]
	for _, s := range []subject{
		{"queue", job.Queue}, {"type", job.JobType}, {"owner", job.OwnerID}, {jobevent.ControlKey, job.FairnessKey},
	} {
		w.running[s] += n
		if limit, some := w.limits[s]; some && w.running[s] > limit {
			w.Errorf("%d of %s %s run at once", w.running[s], s.kind, s.name)
		}
	}
}

func (w *limited) done() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.ended) == len(w.jobs) || w.Failed()
}

// settleAll settles attempts with all kinds of outcomes, a few at a time, so that many are out at once.
func (w *limited) settleAll(ctx context.Context, store *Store) {
	ticker := time.NewTicker(3 * time.Millisecond)
	defer ticker.Stop()
	for ctx.Err() == nil && !w.done() {
		<-ticker.C
		var outcomes []Outcome
		w.mu.Lock()
		for range min(1+rand.IntN(2), len(w.orders)) {
			i := rand.IntN(len(w.orders))
			order := w.orders[i]
			w.orders[i] = w.orders[len(w.orders)-1]
			w.orders = w.orders[:len(w.orders)-1]
			kind := jobstate.KindCompleted
			if order.Attempt < 3 {
				kind = []jobstate.Kind{
					kind, kind, kind, jobstate.KindFailed, jobstate.KindInterrupted, jobstate.KindSnoozed, jobstate.KindCancelled,
				}[rand.IntN(7)]
			}
			o := ended(jobevent.Created{JobID: order.JobID}, int(order.Attempt), kind)
			o.RetryAfter = time.Millisecond
			outcomes = append(outcomes, o)
			w.ended[order.JobID] = kind == jobstate.KindCompleted || kind == jobstate.KindCancelled
			if !w.ended[order.JobID] {
				delete(w.ended, order.JobID)
			}
			w.count(order.JobID, -1)
		}
		w.mu.Unlock()
		if len(outcomes) > 0 {
			w.publish(ctx)(store.Settle(ctx, outcomes))
		}
	}
}

// keepTime runs passes of the clock and the watchdog, and checks the limits against the rows.
func (w *limited) keepTime(ctx context.Context, store *Store) {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for ctx.Err() == nil && !w.done() {
		<-ticker.C
		effects, _, err := store.Due(ctx, time.Second)
		w.publish(ctx)(effects, err)
		counted, err := store.Count(ctx)
		if ctx.Err() == nil && (err != nil || counted.drift.ChangesCounts()) {
			w.Errorf("the ledger is wrong by %+v (%v)", counted.drift, err)
		}
		w.publish(ctx)(store.AskAgain(ctx, counted, time.Second))
		if err := w.look(ctx); err != nil && ctx.Err() == nil {
			w.Error(err)
		}
	}
}

func (w *limited) look(ctx context.Context) error {
	rows, err := w.pool.Query(ctx, `SELECT queue, job_type, coalesce(owner_id, ''), fairness_key FROM attempts_out`)
	if err != nil {
		return err
	}
	defer rows.Close()
	running := map[subject]int{}
	for rows.Next() {
		var queue, jobType, owner, key string
		if err := rows.Scan(&queue, &jobType, &owner, &key); err != nil {
			return err
		}
		for _, s := range []subject{{"queue", queue}, {"type", jobType}, {"owner", owner}, {jobevent.ControlKey, key}} {
			running[s]++
		}
	}
	for s, limit := range w.limits {
		if running[s] > limit {
			w.Errorf("%d of %s %s are out", running[s], s.kind, s.name)
		}
	}
	return rows.Err()
}

// control pauses and resumes subjects with and without a limit.
func (w *limited) control(ctx context.Context) {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	others := []subject{{"queue", "mail"}, {"type", "C"}, {"owner", "free"}}
	version := int64(2)
	for ; ctx.Err() == nil && !w.done(); version++ {
		<-ticker.C
		a := atMost("type", "A", version, 3)
		a.Paused = rand.IntN(3) == 0
		s := others[rand.IntN(len(others))]
		c := atMost(s.kind, s.name, version, 1+rand.IntN(10))
		c.Paused = rand.IntN(3) == 0
		if rand.IntN(3) == 0 {
			c = nothing(s.kind, s.name, version)
		}
		w.publish(ctx)(w.stores[0].Control(ctx, []jobevent.Control{a, c}))
		if rand.IntN(4) == 0 {
			for _, s := range others {
				w.publish(ctx)(w.stores[1].Control(ctx, []jobevent.Control{nothing(s.kind, s.name, version)}))
			}
			a.Version, a.Paused = version+1, false
			version++
			w.publish(ctx)(w.stores[2].Control(ctx, []jobevent.Control{a}))
		}
	}
}
