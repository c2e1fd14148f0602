package shuffle

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

// workers do what functions/runjob does, on the real store, but one step at a time and without handlers.
type workers struct {
	t     *testing.T
	pool  *pgxpool.Pool
	store *workerdb.Store
	jobs  map[uuid.UUID]*job
	pick  func(n int) int // chooses one of n
	lies  bool            // they also publish outcomes that did not happen

	all       []*worker // the living workers
	frozen    []*worker
	started   map[workerdb.Key]int
	published map[workerdb.Key]jobevent.Kind // outcomes
	number    int
	refused   int // outcomes
}

type worker struct {
	id         string
	held       []*held // claimed and not settled
	heartbeats int
	reaped     bool
}

type held struct {
	workerdb.Key
	traceID   uuid.UUID
	startedAt time.Time
	cancelled bool
}

const liveWorkers = 2

// fill starts workers until their number is complete.
func (ws *workers) fill() []jobevent.Item {
	var items []jobevent.Item
	for len(ws.all) < liveWorkers {
		ws.number++
		w := &worker{id: fmt.Sprintf("worker-%d", ws.number)}
		ws.all = append(ws.all, w)
		items = append(items, ws.heartbeat(w)...)
	}
	return items
}

func (ws *workers) any() *worker { return ws.all[ws.pick(len(ws.all))] }

// consume takes run-job events: any worker may hold their partition by now.
func (ws *workers) consume(ctx context.Context, batch []jobevent.Item) ([]jobevent.Item, error) {
	w := ws.any()
	var orders []workerdb.Order
	for _, e := range batch {
		run, err := jobevent.DecodeAs[jobevent.Run](e, jobevent.TypeRun)
		if err != nil {
			return nil, err
		}
		key := workerdb.Key{JobID: run.JobID, Attempt: run.Attempt}
		if h := w.find(key); h != nil {
			h.cancelled = h.cancelled || run.Cancel
			continue
		}
		same := func(o workerdb.Order) bool { return o.Key == key }
		if i := slices.IndexFunc(orders, same); i >= 0 {
			orders[i].Cancel = orders[i].Cancel || run.Cancel
			continue
		}
		orders = append(orders, workerdb.Order{
			Key: key, TraceID: e.TraceID(),
			TimeoutMs: int(run.TimeoutMs), Cancel: run.Cancel,
		})
	}
	var mine []workerdb.Order
	var items []jobevent.Item
	for _, o := range orders {
		if ws.jobs[o.JobID].kills < o.Attempt {
			mine = append(mine, o)
			continue
		}
		more, err := ws.die(ctx, o)
		if err != nil {
			return nil, err
		}
		items = append(items, more...)
	}
	more, err := ws.claim(ctx, w, mine)
	return append(items, more...), err
}

// die makes a worker of its own claim an attempt and die.
func (ws *workers) die(ctx context.Context, o workerdb.Order) ([]jobevent.Item, error) {
	ws.number++
	w := &worker{id: fmt.Sprintf("worker-%d", ws.number)}
	if _, err := ws.store.Heartbeat(ctx, workerdb.Heartbeat{WorkerID: w.id, Queues: []string{jobevent.DefaultQueue}}); err != nil {
		return nil, err
	}
	items, err := ws.claim(ctx, w, []workerdb.Order{o})
	ws.leave(w, false)
	return items, err
}

func (ws *workers) claim(ctx context.Context, w *worker, orders []workerdb.Order) ([]jobevent.Item, error) {
	var items []jobevent.Item
	claims, err := ws.store.Claim(ctx, w.id, orders)
	if err != nil {
		return nil, err
	}
	for i, o := range orders {
		switch claims[i].State {
		case workerdb.Claimed:
			ws.started[o.Key]++
			w.held = append(w.held, &held{Key: o.Key, traceID: o.TraceID, startedAt: time.Now()})
			items = append(items, ws.stray(o.Key)...)
		case workerdb.Settled:
			items = append(items, ws.outcome(claims[i].Outcome))
		case workerdb.OpenElsewhere, workerdb.OpenMine:
		}
	}
	return items, nil
}

// stray returns an event that must have no effect: that the attempt before this one has completed after all.
func (ws *workers) stray(key workerdb.Key) []jobevent.Item {
	if key.Attempt == 1 || !ws.lies {
		return nil
	}
	key.Attempt--
	return []jobevent.Item{ws.event(workerdb.Outcome{
		Key: key, Kind: workerdb.Completed, Output: json.RawMessage(`"stray"`), StartedAt: time.Now(),
	})}
}

// cancel takes attempt-cancel events, which every worker reads; the last one asks the store.
func (ws *workers) cancel(ctx context.Context, batch []jobevent.Item) ([]jobevent.Item, error) {
	var orders []workerdb.Order
	for _, e := range batch {
		c, err := jobevent.DecodeAs[jobevent.AttemptCancel](e, jobevent.TypeAttemptCancel)
		if err != nil {
			return nil, err
		}
		key, here := workerdb.Key{JobID: c.JobID, Attempt: c.Attempt}, false
		for _, w := range ws.all {
			if h := w.find(key); h != nil {
				h.cancelled, here = true, true
			}
		}
		if !here {
			orders = append(orders, workerdb.Order{Key: key, TraceID: e.TraceID()})
		}
	}
	outcomes, err := ws.store.Cancel(ctx, ws.any().id, orders)
	return ws.outcomes(outcomes), err
}

// finish ends one attempt that can end, and settles it.
func (ws *workers) finish() (items []jobevent.Item, done bool) {
	for _, w := range ws.all {
		var ready []int
		for i, h := range w.held {
			if _, ends := ws.jobs[h.JobID].next(h); ends {
				ready = append(ready, i)
			}
		}
		if len(ready) == 0 {
			continue
		}
		i := ready[ws.pick(len(ready))]
		h := w.held[i]
		w.held = slices.Delete(w.held, i, i+1)
		return ws.settle(w, h), true
	}
	return nil, false
}

func (ws *workers) settle(w *worker, h *held) []jobevent.Item {
	ws.t.Helper()
	outcome, _ := ws.jobs[h.JobID].next(h)
	outcome.Key, outcome.TraceID = h.Key, h.traceID
	outcome.StartedAt, outcome.FinishedAt = h.startedAt, time.Now()
	settled, err := ws.store.Settle(ws.t.Context(), w.id, []workerdb.Outcome{outcome})
	if err != nil {
		ws.t.Fatal(err)
	}
	// An attempt that had not begun when its worker was lost is settled as interrupted, like one that is handed back:
	// only the message distinguishes the two.
	if settled[0].Kind == outcome.Kind && settled[0].Message == outcome.Message {
		ws.jobs[h.JobID].ended++
	} else {
		ws.refused++ // another worker has settled it
	}
	return ws.outcomes(settled)
}

// heartbeat stores and publishes a heartbeat, and follows the store's answer.
func (ws *workers) heartbeat(w *worker) []jobevent.Item {
	ws.t.Helper()
	heartbeat := workerdb.Heartbeat{WorkerID: w.id, Queues: []string{jobevent.DefaultQueue}, Free: 1}
	word := jobevent.Heartbeat{WorkerID: w.id, Queues: heartbeat.Queues, Slots: 8, Free: 8, Rate: 100,
		Partitions: map[string][]int32{jobevent.DefaultQueue: ws.partitions(w)}}
	for _, h := range w.held {
		at := h.startedAt
		heartbeat.Held = append(heartbeat.Held, workerdb.Held{Key: h.Key, StartedAt: at})
		word.Attempts = append(word.Attempts, jobevent.ListedAttempt{JobID: h.JobID, Attempt: h.Attempt, StartedAt: &at})
	}
	changed, err := ws.store.Heartbeat(ws.t.Context(), heartbeat)
	if err != nil {
		ws.t.Fatal(err)
	}
	for _, key := range changed.CancelWanted {
		w.find(key).cancelled = true
	}
	for _, outcome := range changed.Settled {
		w.drop(outcome.Key)
	}
	w.heartbeats++
	id := fmt.Sprintf("%s.%d", w.id, w.heartbeats)
	e := newEvent(ws.t, jobevent.TypeHeartbeat, jobevent.Meta{Function: "runjob", ID: id, Key: w.id}, word)
	return append(ws.outcomes(changed.Settled), e)
}

// partitions gives each of the two workers half of the partitions.
func (ws *workers) partitions(w *worker) (list []int32) {
	for p := range int32(jobevent.RunPartitions) {
		if int(p)%liveWorkers == slices.Index(ws.all, w)%liveWorkers {
			list = append(list, p)
		}
	}
	return list
}

// leave removes a worker, killed or only frozen, for longer than the others wait for it.
func (ws *workers) leave(w *worker, frozen bool) {
	ws.t.Helper()
	ws.all = slices.DeleteFunc(ws.all, func(o *worker) bool { return o == w })
	if frozen {
		ws.frozen = append(ws.frozen, w)
	}
	const sql = "update workers set seen_at = now() - interval '11 s' where worker_id = $1"
	if _, err := ws.pool.Exec(ws.t.Context(), sql, w.id); err != nil {
		ws.t.Fatal(err)
	}
}

// wake lets the handlers of frozen workers return after these were reaped: their outcomes are ignored.
func (ws *workers) wake() (items []jobevent.Item) {
	for _, w := range ws.frozen {
		for _, h := range w.held {
			if _, ends := ws.jobs[h.JobID].next(h); ends && w.reaped {
				items = append(items, ws.settle(w, h)...)
			}
		}
	}
	ws.frozen = slices.DeleteFunc(ws.frozen, func(w *worker) bool { return w.reaped })
	return items
}

// reap settles the attempts of the workers that left. The others have just sent a heartbeat, however slow the machine
// is, since the store decides by its clock.
func (ws *workers) reap() []jobevent.Item {
	ws.t.Helper()
	var live []string
	for _, w := range ws.all {
		live = append(live, w.id)
	}
	const sql = "update workers set seen_at = now() where worker_id = any($1)"
	if _, err := ws.pool.Exec(ws.t.Context(), sql, live); err != nil {
		ws.t.Fatal(err)
	}
	const reaper = "reaper"
	if _, err := ws.store.Heartbeat(ws.t.Context(), workerdb.Heartbeat{WorkerID: reaper, Queues: []string{}}); err != nil {
		ws.t.Fatal(err)
	}
	outcomes, err := ws.store.Reap(ws.t.Context(), reaper)
	if err != nil {
		ws.t.Fatal(err)
	}
	for _, w := range ws.frozen {
		w.reaped = true
	}
	return ws.outcomes(outcomes)
}

func (w *worker) find(key workerdb.Key) *held {
	if i := slices.IndexFunc(w.held, func(h *held) bool { return h.Key == key }); i >= 0 {
		return w.held[i]
	}
	return nil
}

func (w *worker) drop(key workerdb.Key) {
	w.held = slices.DeleteFunc(w.held, func(h *held) bool { return h.Key == key })
}

func (ws *workers) outcomes(outcomes []workerdb.Outcome) (items []jobevent.Item) {
	for _, o := range outcomes {
		items = append(items, ws.outcome(o))
	}
	return items
}

// outcome returns the event about an attempt's outcome, which never changes.
func (ws *workers) outcome(o workerdb.Outcome) jobevent.Item {
	ws.t.Helper()
	if before, known := ws.published[o.Key]; known && before != o.Kind {
		ws.t.Errorf("attempt %v is %s after it was %s", o.Key, o.Kind, before)
	}
	ws.published[o.Key] = o.Kind
	return ws.event(o)
}

func (ws *workers) event(o workerdb.Outcome) jobevent.Item {
	ws.t.Helper()
	meta := jobevent.Meta{Function: "runjob", ID: jobevent.OutcomeID(o.JobID, o.Attempt, string(o.Kind)),
		JobID: o.JobID, TraceID: o.TraceID}
	if o.Kind == workerdb.Completed {
		return newEvent(ws.t, jobevent.TypeCompleted, meta, jobevent.Completed{
			JobID: o.JobID, Attempt: o.Attempt, WorkerID: o.WorkerID,
			StartedAt: o.StartedAt, FinishedAt: o.FinishedAt, Output: o.Output,
		})
	}
	if o.Kind == workerdb.Waiting {
		return newEvent(ws.t, jobevent.TypeWaiting, meta, jobevent.Waiting{
			JobID: o.JobID, Attempt: o.Attempt, WorkerID: o.WorkerID,
			StartedAt: o.StartedAt, CallbackTimeoutMs: o.CallbackTimeout.Milliseconds(),
		})
	}
	return newEvent(ws.t, jobevent.TypeFailed, meta, jobevent.Failed{
		JobID: o.JobID, Attempt: o.Attempt, WorkerID: o.WorkerID, FinishedAt: o.FinishedAt, ErrorCode: o.ErrorCode,
		Message: o.Message, Retryable: o.Retryable, RetryAfterMs: o.RetryAfter.Milliseconds(), Kind: o.Kind,
	})
}

func newEvent(t *testing.T, typ string, meta jobevent.Meta, data any) jobevent.Item {
	t.Helper()
	e, err := jobevent.New(typ, meta, data)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func first(int) int { return 0 }

func random(rnd *rand.Rand) func(int) int { return rnd.IntN }
