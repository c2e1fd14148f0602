package kill

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/local/suites/kill/witness"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/retry"
)

// zombies is how many handlers run when their worker freezes.
const zombies = 1100

// TestAThousandAttemptsOfAFrozenWorkerChangeNothing freezes a worker of many slots, with all of them taken, for
// longer than its lease. Other workers end its jobs. When it wakes all of its handlers finish, at the same time, and
// it tries to report their outcomes: no row changes, and nothing is started.
func TestAThousandAttemptsOfAFrozenWorkerChangeNothing(t *testing.T) {
	duration(t)
	t.Parallel()
	rnd := newRand(t)
	h := build(t, plan{form: grouped, workers: 2, env: func(name string) []string {
		if name != "runjob-1" {
			return nil
		}
		return []string{fmt.Sprintf("POOL_SIZE=%d", zombies+100), "QUEUE_SIZE=0"}
	}})
	began := time.Now()
	follow, unfollow := context.WithCancel(t.Context())
	defer unfollow()
	l, c := newLoad(follow, h, rnd), &chaos{fixture: h, rnd: rnd}
	sleepy := h.workers()[0]
	must(t, within(t.Context(), recoverWithin, func(ctx context.Context) error { return h.hasRoom(ctx, sleepy, zombies) }))
	asleep := filepath.Join(h.dir, "asleep")
	for range 2 {
		// An attempt lasts until the worker is frozen; one that starts later ends at once.
		l.submitMany(rnd, &shape{name: "until it sleeps", payload: works(0, 0, "until", asleep), ends: one(completed)}, 600)
	}
	must(t, within(t.Context(), recoverWithin, func(ctx context.Context) error { return h.hasStarted(ctx, sleepy, zombies) }))
	wake, err := sleepy.freeze()
	must(t, err)
	froze := time.Now()
	must(t, os.WriteFile(asleep, nil, 0o600))
	must(t, h.drain(t.Context(), time.Time{}, 2*recoverWithin))
	retry.Pause(t.Context(), longerThanLease-time.Since(froze))
	before, rows := h.evidence(t.Context(), l, c), h.rows()
	held, _ := before.heldBy(sleepy.last().name, froze)

	woke := time.Now() // before: a thousand handlers end at once
	must(t, wake())
	must(t, within(t.Context(), recoverWithin, func(context.Context) error { return h.answered(held) }))
	must(t, within(t.Context(), recoverWithin, func(context.Context) error {
		return h.hasConsumed("jobweaver-outcome", jobevent.TopicEnded)
	}))
	must(t, within(t.Context(), recoverWithin, func(context.Context) error { return h.hasEnded(sleepy, woke, 1000) }))
	after := h.evidence(t.Context(), l, c)
	now := h.rows()
	for i := range now {
		if len(now) != len(rows) || now[i] != rows[i] {
			t.Fatalf("a worker that woke has changed one of %d rows: %s", len(rows), now[i])
		}
	}
	tried := after.triedBy(t, sleepy.last().name, woke)
	t.Logf("%d attempts were held by the worker that froze; %d of its handlers ended after it woke", len(held), tried)
	if len(held) < 1000 {
		t.Error("these are too few")
	}
	after.check()
	h.report(after)
	h.stopAll()
	after.summarize(t)
	t.Logf("took %s", time.Since(began).Round(time.Second))
}

// longerThanLease is how long a worker is frozen whose attempts all have an outcome by then.
const longerThanLease = 17 * time.Second

// hasRoom returns an error until the scheduler knows that a process has n slots, and partitions. Before, it would send
// half of the attempts to the other worker, which hands them over one by one.
func (h *fixture) hasRoom(ctx context.Context, p *process, n int) error {
	worker, _, err := h.begun(p)
	if err != nil {
		return err
	}
	known, err := texts(ctx, h.urls.Scheduler, "select worker_id from workers "+
		"where worker_id = $1 and slots >= $2 and jsonb_array_length(partitions::jsonb -> 'default') > 0", worker, n)
	if err == nil && len(known) == 0 {
		err = fmt.Errorf("the scheduler does not know %d slots of %s", n, p.name)
	}
	return err
}

// hasStarted returns an error until the start of n attempts of a process is in the worker's database. The handlers
// themselves begin earlier, and an attempt whose start is not there when its worker freezes is not lost but interrupted.
func (h *fixture) hasStarted(ctx context.Context, p *process, n int) error {
	worker, _, err := h.begun(p)
	if err != nil {
		return err
	}
	started, err := texts(ctx, h.urls.Worker, "select job_id || '.' || attempt from attempts "+
		"where worker_id = $1 and started_at is not null and outcome is null", worker)
	if err == nil && len(started) < n {
		err = fmt.Errorf("%s has started only %d attempts", p.name, len(started))
	}
	return err
}

// hasEnded returns an error until n handlers of a process have ended since an instant.
func (h *fixture) hasEnded(p *process, since time.Time, n int) error {
	lines, err := witness.Read(h.witnessFile())
	ended := 0
	for _, l := range lines {
		if l.What == witness.End && l.Process == p.last().name && l.At.After(since) {
			ended++
		}
	}
	if err == nil && ended < n {
		err = fmt.Errorf("only %d handlers of %s have ended", ended, p.name)
	}
	return err
}

// triedBy counts the handlers of a process that ended after an instant. None may have started then.
func (e *evidence) triedBy(t *testing.T, name string, after time.Time) (tried int) {
	for id, runs := range e.ran {
		for _, r := range runs {
			if r.process != name {
				continue
			}
			if r.end.After(after) {
				tried++
			}
			if r.start.After(after) {
				t.Errorf("attempt %d of %s was started by a worker that woke", r.attempt, id)
			}
		}
	}
	return tried
}

// rows returns every row with the state of a job, in each database.
func (h *fixture) rows() (all []string) {
	h.t.Helper()
	for _, c := range []struct{ url, table, key string }{
		{h.urls.API, "jobs", "job_id"}, {h.urls.Scheduler, "jobs", "job_id"},
		{h.urls.Worker, "attempts", "job_id, attempt"},
	} {
		list, err := texts(h.t.Context(), c.url, fmt.Sprintf("select r::text from %s r order by %s", c.table, c.key))
		if err != nil {
			h.t.Fatal(err)
		}
		all = slices.Concat(all, list)
	}
	return all
}

// hasConsumed returns an error until a group has read all of its topics.
func (h *fixture) hasConsumed(group string, topics ...string) error {
	lag, err := h.lag(group, topics...)
	if err == nil && lag > 0 {
		err = fmt.Errorf("%s has yet to read %d records", group, lag)
	}
	return err
}
