package runjob

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/jobweaver/jobweaver/functions/runjob/offsets"
	"github.com/jobweaver/jobweaver/functions/runjob/pool"
	"github.com/jobweaver/jobweaver/shared/eventkeys"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/workerdb"
	"github.com/jobweaver/jobweaver/shared/workerdb/workerdbtest"
)

func TestAFullPoolLeavesRecordsInKafka(t *testing.T) {
	h := newFixture(t)
	w := h.start(nil)
	runs := make([]jobevent.Run, 1000)
	for i := range runs {
		runs[i] = h.run("BLOCK", "")
	}
	h.order(runs...)
	h.until("the pool is full", func() bool { return len(h.starts) == 12 })
	w.untilPool(h, "it claims no more", func(p *pool.Pool) bool { return p.Figures().Held > w.cfg.QueueSize/2 })
	if n := h.count("SELECT count(*) FROM attempts WHERE outcome IS NULL"); n > 112 {
		t.Errorf("%d attempts claimed, want at most 112", n)
	}
	if next, end := w.read(); next >= end || next < 12 {
		t.Errorf("the figures show %d of %d records as read", next, end)
	}
	h.openAll()
	h.outcome(runs[0])
	for _, run := range runs {
		h.outcome(run)
	}
	if len(h.starts) != 1000 {
		t.Errorf("%d started", len(h.starts))
	}
	h.untilCommitted(1000)
	if next, end := w.read(); next != end {
		t.Errorf("the figures show %d of %d records as read", next, end)
	}
}

// read returns how many records the figures of all partitions show as read, and how many there are.
func (w *worker) read() (next, end int64) {
	for _, p := range w.consumers.figures() {
		next, end = next+p.Next, end+p.End
	}
	return next, end
}

func TestTheDelayOfAStartCountsFromTheDispatch(t *testing.T) {
	h := newFixture(t)
	w := h.start(func(c *Config, _ *timing) { c.PoolSize = 1 })
	first, second := h.run("BLOCK", ""), h.run("BLOCK", "")
	h.order(first)
	h.untilStarted(first)
	h.order(second)
	h.untilHeld(w, 1)
	<-time.After(100 * time.Millisecond) // the second one waits for the slot at least this long
	h.open(first)
	h.untilStarted(second)
	h.open(second)
	h.outcome(second)
	registry := prometheus.NewRegistry()
	registry.MustRegister(w.metrics.delay)
	found, err := registry.Gather()
	if err != nil || len(found) != 1 || len(found[0].GetMetric()) != 1 {
		t.Fatalf("there are %v, %v", found, err)
	}
	got := found[0].GetMetric()[0].GetHistogram()
	if got.GetSampleCount() != 2 || got.GetSampleSum() < .1 || got.GetSampleSum() > patience.Seconds() {
		t.Errorf("%d starts took %f s", got.GetSampleCount(), got.GetSampleSum())
	}
}

func TestTheBetterRankGoesFirst(t *testing.T) {
	h := newFixture(t)
	w := h.start(func(c *Config, _ *timing) { c.PoolSize = 1 })
	blocker, late, early := h.run("BLOCK", ""), h.run("BLOCK", ""), h.run("BLOCK", "")
	early.Rank = early.Rank.Add(-time.Minute)
	h.order(blocker)
	h.untilStarted(blocker)
	h.order(late, early)
	h.untilHeld(w, 2)
	h.open(blocker)
	h.untilStarted(early)
	if n := h.startsOf(late); n != 0 {
		t.Error("the worse rank has started")
	}
}

// The order does not depend on the partitions and the number of claims.
func TestSlotsAreTakenInTheOrderOfRank(t *testing.T) {
	h := newFixture(t)
	w := h.start(func(c *Config, _ *timing) { c.PoolSize, c.QueueSize = 1, 1000 })
	blocker := h.run("BLOCK", "")
	h.order(blocker)
	h.untilStarted(blocker)
	runs := make([]jobevent.Run, 300)
	for i := range runs {
		runs[i] = h.run("SIMULATION", noop)
		runs[i].Rank = runs[i].Rank.Add(time.Duration(i) * time.Second)
	}
	mixed := slices.Clone(runs)
	rand.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
	for part := range slices.Chunk(mixed, 30) {
		h.order(part...)
	}
	h.untilHeld(w, len(runs))
	h.open(blocker)
	h.untilStarted(runs...)
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, run := range runs {
		if got, want := h.began[i+1], jobevent.AttemptToken(run.JobID, run.Attempt); got != want {
			t.Fatalf("number %d to start is %s, want %s", i, got, want)
		}
	}
}

func TestARevokeDoesNotWaitForALongHandler(t *testing.T) {
	h := newFixture(t)
	first := h.start(nil)
	long := make([]jobevent.Run, 12) // one for each partition
	for i := range long {
		long[i] = h.run("BLOCK", "")
	}
	h.order(long...)
	h.untilStarted(long...)
	second := h.start(nil)
	h.until("partitions are shared", func() bool { return h.holds(first) == 6 && h.holds(second) == 6 })
	// Attempts of every partition run, whether or not the partition has moved to the other worker.
	short := make([]jobevent.Run, 12)
	for i := range short {
		short[i] = h.run("SIMULATION", noop)
	}
	h.open(long[0]) // the first worker needs a slot for its attempts
	h.order(short...)
	for _, run := range short {
		h.outcome(run)
	}
	h.openAll()
	for _, run := range long {
		if e := h.outcome(run); e.Type() != jobevent.TypeCompleted {
			t.Errorf("published %v", e)
		}
		if n := h.startsOf(run); n != 1 {
			t.Errorf("started %d times", n)
		}
	}
}

func TestAnUnreadableRecordIsRejected(t *testing.T) {
	h := newFixture(t)
	h.start(nil)
	var bad []event.Event
	for i, data := range []string{
		`{`, `{"eventId": "1", "jobId": "no"}`, fmt.Sprintf(`{"eventId": "1", "jobId": %q, "attempt": 0, "timeoutMs": 1}`, uuid.New()),
	} {
		e := h.event(h.run("SIMULATION", noop), 3).Alone()
		e.DataEncoded = fmt.Appendf(nil, `{"items":[%s]}`, data)
		e.SetID(fmt.Sprint("bad", i))
		bad = append(bad, e)
	}
	good := h.run("SIMULATION", noop)
	h.send(append(bad, h.event(good, 3).Alone())...)
	h.outcome(good)
	var rejected []jobevent.Rejected
	h.until("all are rejected", func() bool {
		rejected = nil
		for _, e := range h.published {
			if r, err := jobevent.DecodeAs[jobevent.Rejected](e, jobevent.TypeRejected); err == nil {
				rejected = append(rejected, r)
			}
		}
		return len(rejected) == len(bad)
	})
	for i, r := range rejected {
		if r.Topic != jobevent.RunTopic(h.queue) || r.Partition != 3 || r.Offset != int64(i) || r.Reason == "" ||
			string(r.Value) != string(bad[i].Data()) || r.Headers["ce_type"] != jobevent.TypesRun {
			t.Errorf("rejected %+v", r)
		}
	}
	h.untilCommitted(4)
}

func TestNoOpJobsFlow(t *testing.T) {
	h := newFixture(t)
	h.start(nil)
	n := 5000
	if testing.Short() { // with the race detector each takes several times as long
		n /= 2
	}
	runs := make([]jobevent.Run, n)
	for i := range runs {
		runs[i] = h.run("SIMULATION", noop)
	}
	h.order(runs...)
	began := time.Now()
	h.until("all are completed", func() bool {
		return h.kinds[jobevent.TypeCompleted] == len(runs)
	})
	t.Logf("%.0f attempts a second", float64(len(runs))/time.Since(began).Seconds())
}

func TestTheLogOfAnAttempt(t *testing.T) {
	h := newFixture(t)
	h.start(func(c *Config, times *timing) { c.Grace, times.logEvery = 0, time.Millisecond })
	run := h.run("SIMULATION", `{"steps": [`+strings.Repeat(`{"type": "LOG", "message": "hi"},`, 300)+
		`{"type": "SLEEP", "durationMs": 60000}]}`)
	h.order(run)
	lines := 0
	var last jobevent.LogLine
	h.until("lines are published while it runs", func() bool {
		lines = 0
		for _, e := range h.published {
			if log, err := jobevent.DecodeAs[jobevent.AttemptLog](e, jobevent.TypeAttemptLog); err == nil {
				if log.FirstLine != lines {
					return false
				}
				lines += len(log.Lines)
				last = log.Lines[len(log.Lines)-1]
			}
		}
		return lines == pool.MaxLogLines
	})
	if last.Text != pool.LogIsFull {
		t.Errorf("last line %+v", last)
	}
}

// loseAll is what other workers do with the open attempts of silent ones.
func (h *fixture) loseAll() {
	h.t.Helper()
	h.exec(workerdbtest.MoveAll)
	h.exec(`UPDATE execution_attempts SET outcome = 'lost', finished_at = now(), error_code = 'WORKER.LOST'`)
}

func (h *fixture) count(sql string) (n int) {
	h.t.Helper()
	conn, err := pgx.Connect(h.t.Context(), h.url)
	if err != nil {
		h.t.Fatal(err)
	}
	defer func() { _ = conn.Close(h.t.Context()) }()
	if err := conn.QueryRow(h.t.Context(), sql).Scan(&n); err != nil {
		h.t.Fatal(err)
	}
	return n
}

// holds returns the number of a worker's partitions by its last heartbeat. The caller holds the mutex.
func (h *fixture) holds(w *worker) int { return len(h.heartbeatOf(w).Partitions[h.queue]) }

// After passAfter a long attempt's record counts as done, so that records behind it can be committed.
func TestALongAttemptDoesNotHoldBackTheCommitOfMany(t *testing.T) {
	h := newFixture(t)
	w := h.start(func(_ *Config, times *timing) {
		times.heartbeatAtMost, times.heartbeatAtLeast, times.passAfter = 10*time.Millisecond, 20*time.Millisecond, time.Millisecond
	})
	long := h.run("BLOCK", "")
	events := []jobevent.Item{h.event(long, 0)}
	for range maxHeldBack {
		events = append(events, h.event(h.run("SIMULATION", noop), 0))
	}
	h.send(eventsOf(events...)...)
	key := workerdb.Key{JobID: long.JobID, Attempt: 1}
	w.untilPool(h, "the short ones are done", func(*pool.Pool) bool {
		tracker := w.trackerOf(key)
		return tracker != nil && tracker.Gap() == maxHeldBack
	})
	if to, _ := w.trackerOf(key).Committable(); to != 0 {
		t.Errorf("up to %d could be committed: the lag must show a scaler that an attempt runs", to)
	}
	h.send(h.event(h.run("SIMULATION", noop), 0).Alone())
	w.untilPool(h, "all may be committed", func(*pool.Pool) bool {
		to, _ := w.trackerOf(key).Committable()
		return to == maxHeldBack+2
	})
	h.open(long)
	if e := h.outcome(long); e.Type() != jobevent.TypeCompleted || h.startsOf(long) != 1 {
		t.Errorf("published %v after %d starts", e, h.startsOf(long))
	}
}

// Without signatures, a process that can write to a run-job topic could make a worker run anything.
func TestAnUnsignedOrderIsRejected(t *testing.T) {
	h := newFixture(t)
	path := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(path, []byte("whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if h.kafka.Keys, err = eventkeys.Open(path); err != nil {
		t.Fatal(err)
	}
	h.start(nil)
	forged, good := h.run("SIMULATION", noop), h.run("SIMULATION", noop)
	signed := h.event(good, 3).Alone()
	h.kafka.Keys.Sign([]event.Event{signed})
	h.send(h.event(forged, 3).Alone(), signed)
	h.outcome(good)
	h.until("it is rejected", func() bool { return h.kinds[jobevent.TypeRejected] == 1 })
	if n := h.startsOf(forged); n != 0 {
		t.Errorf("started %d times", n)
	}
	h.untilCommitted(2)
}

// trackerOf returns the tracker of the partition of an attempt; nil: the attempt is not in the pool.
func (w *worker) trackerOf(key workerdb.Key) *offsets.Tracker {
	for _, a := range w.pool.List() {
		if a.Key() == key {
			return &a.From.Partition.Tracker
		}
	}
	return nil
}
