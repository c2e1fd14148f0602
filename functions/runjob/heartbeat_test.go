package runjob

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/functions/runjob/pool"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

func TestAHeartbeatListsTheWorkersAttempts(t *testing.T) {
	h := newFixture(t)
	w := h.start(func(c *Config, times *timing) { c.PoolSize, c.Version, times.cancelPatience = 1, "v1", 0 })
	running, held := h.run("SIMULATION", `{"steps": [{"type": "LOG", "message": "a"}, {"type": "SLEEP", "durationMs": 60000}]}`), h.run("BLOCK", "")
	h.order(running)
	h.untilStarted(running)
	h.order(held)
	var heartbeat jobevent.Heartbeat
	h.until("a heartbeat lists both", func() bool { heartbeat = h.heartbeatOf(w); return len(heartbeat.Attempts) == 2 })
	if first := h.firstHeartbeat(w); len(first.Attempts) != 0 || first.Free != 1 {
		t.Errorf("first heartbeat %+v", first)
	}
	if heartbeat.Slots != 1 || heartbeat.Free != 0 || heartbeat.Version != "v1" || len(heartbeat.Partitions[h.queue]) != 12 ||
		len(heartbeat.Queues) != 1 || len(heartbeat.JobTypes) != 7 || heartbeat.Stopping {
		t.Errorf("heartbeat %+v", heartbeat)
	}
	for _, a := range heartbeat.Attempts {
		switch a.JobID {
		case running.JobID:
			if a.StartedAt == nil || a.Progress == nil || a.Progress.Percent != 50 {
				t.Errorf("running %+v", a)
			}
		case held.JobID:
			if a.StartedAt != nil {
				t.Errorf("held %+v", a)
			}
		}
	}
	h.until("the start is in the store", func() bool { // written by a heartbeat after it has run for a while
		return h.count("SELECT count(*) FROM execution_attempts WHERE started_at IS NOT NULL") == 1
	})
	w.pool.Cancel(workerdb.Key{JobID: running.JobID, Attempt: 1}, 0)
}

// A handler may report its progress right before it returns WaitFor, after the last heartbeat that lists the attempt.
func TestAHeartbeatHasTheLastProgressOfAWaitingAttempt(t *testing.T) {
	h := newFixture(t)
	h.more = map[string]handlers.Handler{"HAND_OVER": func(_ context.Context, a *handlers.Attempt) (handlers.Result, error) {
		a.Progress(70, "handed over")
		return handlers.Result{WaitFor: time.Hour}, nil
	}}
	w := h.start(func(_ *Config, times *timing) {
		times.heartbeatAtMost, times.heartbeatAtLeast = 10*time.Millisecond, 20*time.Millisecond
	})
	run := h.run("HAND_OVER", "")
	h.order(run)
	h.until("a heartbeat has its progress", func() bool {
		left := h.heartbeatOf(w).Left
		return len(left) == 1 && left[0].JobID == run.JobID && left[0].Attempt == 1 &&
			*left[0].Progress == jobevent.Progress{Percent: 70, Message: "handed over"}
	})
}

func TestAWorkerDeclaredLostEndsItsHandlers(t *testing.T) {
	h := newFixture(t)
	h.start(func(_ *Config, times *timing) {
		times.heartbeatAtLeast = 10 * time.Millisecond
		times.heartbeatAtMost = times.heartbeatAtLeast
	})
	run := h.run("BLOCK", "")
	h.order(run)
	h.untilStarted(run)
	h.loseAll()
	h.until("the context has ended", func() bool {
		return errors.Is(h.ends[jobevent.AttemptToken(run.JobID, 1)], handlers.ErrLost)
	})
	if got := h.failed(run); got.Kind != jobevent.KindLost {
		t.Errorf("published %+v", got)
	}
	next := h.run("SIMULATION", noop)
	h.order(next)
	h.outcome(next)
}

// dead inserts a worker with an attempt that has been silent for long.
func (h *fixture) dead(worker string) jobevent.Run {
	h.t.Helper()
	store, err := workerdb.Open(h.t.Context(), h.url)
	if err != nil {
		h.t.Fatal(err)
	}
	defer store.Close()
	run := h.run("BLOCK", "")
	if _, err := store.Heartbeat(h.t.Context(), workerdb.Heartbeat{WorkerID: worker, Queues: []string{h.queue}}); err != nil {
		h.t.Fatal(err)
	}
	_, err = store.Claim(h.t.Context(), worker, []workerdb.Order{{
		Key: workerdb.Key{JobID: run.JobID, Attempt: 1}, TimeoutMs: 1000,
	}})
	if err != nil {
		h.t.Fatal(err)
	}
	h.exec("UPDATE workers SET seen_at = now() - interval '1 minute' WHERE worker_id = $1", worker)
	return run
}

func TestAttemptsOfADeadWorkerAreReaped(t *testing.T) {
	h := newFixture(t)
	run := h.dead("dead")
	h.start(func(_ *Config, times *timing) {
		times.heartbeatAtMost, times.heartbeatAtLeast = 10*time.Millisecond, 20*time.Millisecond
		times.silence = time.Second // after which it may reap
	})
	if got := h.failed(run); got.Kind != jobevent.KindLost || got.WorkerID != "dead" {
		t.Errorf("published %+v", got)
	}
}

// The worker with the first heartbeat after the step finds all others silent.
func TestAStepOfTheDatabasesClockMakesNoAttemptLost(t *testing.T) {
	h := newFixture(t)
	first := h.dead("first")
	running := h.run("BLOCK", "")
	h.start(func(_ *Config, times *timing) {
		times.heartbeatAtMost, times.heartbeatAtLeast = 100*time.Millisecond, 300*time.Millisecond
		times.silence = time.Hour // it does not reap
	})
	h.order(running)
	h.untilStarted(running)
	h.start(func(_ *Config, times *timing) {
		times.heartbeatAtMost, times.heartbeatAtLeast = 10*time.Millisecond, 20*time.Millisecond
		times.silence = 5 * time.Second
	})
	h.failed(first) // by now the second worker reaps
	second := h.dead("second")
	h.exec("UPDATE workers SET seen_at = seen_at - interval '15 s'")
	h.failed(second)
	h.open(running)
	if e := h.outcome(running); e.Type() != jobevent.TypeCompleted {
		t.Errorf("published %v", e)
	}
}

func TestHeldAttemptsGoBackWhenAnotherWorkerIsFree(t *testing.T) {
	h := newFixture(t)
	w := h.start(func(c *Config, times *timing) {
		c.PoolSize, times.heldAtMost = 1, 50*time.Millisecond
		times.heartbeatAtMost, times.heartbeatAtLeast = 5*time.Second, 5*time.Second // the next heartbeat would hand back the rest
	})
	runs := []jobevent.Run{h.run("BLOCK", ""), h.run("BLOCK", ""), h.run("BLOCK", ""), h.run("BLOCK", "")}
	for i := range runs {
		runs[i].Rank = runs[i].Rank.Add(time.Duration(i) * time.Second)
	}
	h.order(runs[0])
	h.untilStarted(runs[0])
	h.order(runs[1:]...)
	w.untilPool(h, "all are held for too long", func(p *pool.Pool) bool { return p.HeldTooLong(w.timing.heldAtMost)[h.queue] == 3 })
	h.exec(`INSERT INTO workers (worker_id, queues, free, seen_at) VALUES
		('free', ARRAY[$1, 'other'], 2, now() + interval '9 s'), ('elsewhere', '{other}', 5, now() + interval '9 s')`, h.queue)
	for _, run := range runs[2:] { // the two with the worst ranks
		if got := h.failed(run); got.Kind != jobevent.KindInterrupted {
			t.Errorf("published %+v", got)
		}
	}
	h.exec("DELETE FROM workers WHERE worker_id = 'free'")
	h.open(runs[0])
	h.untilStarted(runs[1])
}

func TestNothingIsLostWhileTheStoreIsUnavailable(t *testing.T) {
	h := newFixture(t)
	w := h.start(func(_ *Config, times *timing) {
		times.heartbeatAtMost, times.heartbeatAtLeast = 10*time.Millisecond, 20*time.Millisecond
		times.silence = time.Second
	})
	running, next := h.run("BLOCK", ""), h.run("SIMULATION", noop)
	h.order(running)
	h.untilStarted(running)
	back := h.storeAway()
	h.open(running)
	h.order(next)
	w.untilPool(h, "it has been silent for too long", func(p *pool.Pool) bool { return p.Room() == 0 })
	back()
	for _, run := range []jobevent.Run{running, next} {
		if e := h.outcome(run); e.Type() != jobevent.TypeCompleted {
			t.Errorf("published %v", e)
		}
		if n := h.startsOf(run); n != 1 {
			t.Errorf("started %d times", n)
		}
	}
}

// storeAway makes the worker's database unavailable until back is called.
func (h *fixture) storeAway() (back func()) {
	h.t.Helper()
	cfg, err := pgx.ParseConfig(h.url)
	if err != nil {
		h.t.Fatal(err)
	}
	name := cfg.Database
	cfg.Database = "postgres"
	conn, err := pgx.ConnectConfig(h.t.Context(), cfg)
	if err != nil {
		h.t.Fatal(err)
	}
	exec := func(sql string, args ...any) {
		if _, err := conn.Exec(h.t.Context(), sql, args...); err != nil {
			h.t.Fatal(err)
		}
	}
	exec("ALTER DATABASE " + name + " ALLOW_CONNECTIONS false")
	exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", name)
	return func() {
		exec("ALTER DATABASE " + name + " ALLOW_CONNECTIONS true")
		_ = conn.Close(h.t.Context())
	}
}

func (h *fixture) exec(sql string, args ...any) {
	h.t.Helper()
	conn, err := pgx.Connect(h.t.Context(), h.url)
	if err != nil {
		h.t.Fatal(err)
	}
	defer func() { _ = conn.Close(h.t.Context()) }()
	if _, err := conn.Exec(h.t.Context(), sql, args...); err != nil {
		h.t.Fatal(err)
	}
}

// heartbeatsOf returns the heartbeats that a worker has published. The caller holds the mutex.
func (h *fixture) heartbeatsOf(w *worker) (heartbeats []jobevent.Heartbeat) {
	for _, e := range h.published {
		heartbeat, err := jobevent.DecodeAs[jobevent.Heartbeat](e, jobevent.TypeHeartbeat)
		if err == nil && heartbeat.WorkerID == w.id {
			heartbeats = append(heartbeats, heartbeat)
		}
	}
	return heartbeats
}

// heartbeatOf returns the last of them.
func (h *fixture) heartbeatOf(w *worker) (last jobevent.Heartbeat) {
	for _, heartbeat := range h.heartbeatsOf(w) {
		last = heartbeat
	}
	return last
}

func (h *fixture) firstHeartbeat(w *worker) jobevent.Heartbeat {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.heartbeatsOf(w)[0]
}

func (h *fixture) lastHeartbeat(w *worker) jobevent.Heartbeat {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.heartbeatOf(w)
}
