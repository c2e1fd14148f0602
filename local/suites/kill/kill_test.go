package kill

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// drainWithin is how long after the last kill every job must have ended. An event that was lost at an age is
// published again at about twice that age.
const drainWithin = 2 * time.Minute

func TestNothingIsLostWhateverIsKilled(t *testing.T) {
	d := duration(t)
	t.Parallel()
	rnd := newRand(t)
	h := build(t, plan{workers: 4, pollers: 1})
	frozen, draining := h.workers()[2], h.workers()[3]
	e := h.survive(rnd, d, func(submitting context.Context, l *load, c *chaos) {
		l.submitting.Go(func() { l.every(submitting, 6*time.Second, l.queue) })
		l.following.Go(func() { c.freezes(submitting, frozen) })
		l.submitting.Go(func() { l.drains(submitting, draining) })
		c.run(submitting, h.targets(frozen, draining))
	})
	h.checkHappened(e, d)
	h.stopAll()
	e.summarize(t)
}

// survive submits all kinds of jobs for d, while faults returns only after that, and checks every promise.
func (h *fixture) survive(rnd *rand.Rand, d time.Duration, faults func(context.Context, *load, *chaos)) *evidence {
	t := h.t
	t.Helper()
	follow, unfollow := context.WithCancel(t.Context())
	defer unfollow()
	l, c := newLoad(follow, h, rnd), &chaos{fixture: h, rnd: rnd}
	submitting, stopSubmitting := context.WithTimeout(t.Context(), d)
	defer stopSubmitting()
	l.run(submitting)
	l.submitting.Go(func() { l.schedule(submitting) })
	l.submitting.Go(func() { l.every(submitting, 5*time.Second, l.operate) })
	l.submitting.Go(func() { l.every(submitting, 3*time.Second, l.batch) })
	l.submitting.Go(func() { l.every(submitting, 2*time.Second, l.flow) })
	for n := range 4 {
		l.submitting.Go(func() { l.every(submitting, time.Millisecond, l.debounce(fmt.Sprint(n/2))) }) // two for each key
	}
	faults(submitting, l, c)
	l.submitting.Wait()
	calm := time.Now()
	if err := h.drain(t.Context(), time.Time{}, drainWithin); err != nil {
		t.Error(err)
	}
	t.Logf("drained %s after the last kill", time.Since(calm).Round(time.Millisecond))
	if t.Failed() {
		unfollow()
	}
	l.following.Wait()
	h.outside.settle(drainWithin)
	h.settleDown(drainWithin)
	h.endBatches(drainWithin)
	h.endFlows(drainWithin)
	if h.plan.form == apart {
		h.endQueues(drainWithin)
	}

	e := h.evidence(t.Context(), l, c)
	e.takeScheduled(t.Context(), h.api)
	e.takeBatches(t.Context(), h.api)
	e.takeFlows(t.Context(), h.api)
	e.checkDrained(l.drained)
	e.takeDebounced(t.Context(), h.urls.API)
	e.checkOperations(t.Context(), h.api)
	e.check()
	e.checkOutside(h.outside)
	h.checkDatabases(e)
	h.report(e)
	return e
}

// settleDown waits until every command is answered, and all that the last commands began has ended.
func (h *fixture) settleDown(limit time.Duration) {
	h.t.Helper()
	err := within(h.t.Context(), limit, func(ctx context.Context) error {
		open, err := texts(ctx, h.urls.API, "select job_id || ' ' || command from commands")
		if err == nil && len(open) > 0 {
			err = fmt.Errorf("%d commands have no answer: %v", len(open), first(open, 5))
		}
		return err
	})
	if err := errors.Join(err, h.drain(h.t.Context(), time.Time{}, limit)); err != nil {
		h.t.Error(err)
	}
}

// checkDatabases: no row is left open behind the API.
func (h *fixture) checkDatabases(e *evidence) {
	h.t.Helper()
	for _, c := range []struct{ url, what, sql string }{
		{h.urls.API, "a command has no answer", "select job_id::text from commands"},
		{h.urls.API, "a wait is open", "select job_id::text from waits where status = 'OPEN'"},
		{h.urls.API, "a callback has come to nothing", `
			select job_id::text from callbacks join jobs using (job_id)
			where not attempt_is_over(callbacks.attempt, jobs.status, jobs.version, jobs.attempt)`},
		{h.urls.Scheduler, "has not ended, for the scheduler", `
			select job_id::text from jobs where status not in ('COMPLETED', 'FAILED', 'CANCELLED')
			union all select job_id::text from members where status <> 'COMPLETED'`},
		{h.urls.Worker, "an attempt has no outcome", "select job_id::text from attempts where outcome is null"},
	} {
		ids, err := texts(h.t.Context(), c.url, c.sql)
		if err != nil {
			h.t.Fatal(err)
		}
		for _, id := range ids {
			e.find(id, "%s", c.what)
		}
	}
}

// texts reads one column.
func texts(ctx context.Context, url, sql string, args ...any) ([]string, error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(ctx) }()
	rows, err := conn.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// checkHappened: a run without faults proves nothing.
func (h *fixture) checkHappened(e *evidence, d time.Duration) {
	h.t.Helper()
	happened := e.happened()
	for _, topic := range []string{jobevent.TopicCreated, jobevent.TopicRun, jobevent.TopicEnded, jobevent.TopicCommand} {
		ids, err := h.published(topic)
		if err != nil {
			h.t.Fatal(err)
		}
		for _, n := range ids {
			happened["published again on "+topic] += min(n-1, 1)
		}
	}
	maps.Copy(happened, h.outside.happened())
	for what, n := range happened {
		if n == 0 && d >= time.Minute { // a short run need not have everything
			h.t.Errorf("never happened: %s", what)
		}
	}
	kills, least := e.chaos.kills(), int(d/(20*time.Second))
	for _, target := range h.targets(h.workers()[2:]...) {
		if n := kills[target.name] + kills[target.name+stopped]; n < least {
			h.t.Errorf("%s was taken down %d times, at least %d are wanted", target.name, n, least)
		}
	}
	h.t.Logf("happened: %v", happened)
}

// happened counts the events that a run must contain to prove anything.
func (e *evidence) happened() map[string]int {
	n := map[string]int{}
	for _, what := range []string{"answered 503", "gateway away", "cancel kept", "retry kept", "flow retried", "queue removed"} {
		n[what] = e.load.seen[what]
	}
	for _, what := range []string{
		"lost", "cancelled", "failed", "snoozed", "a worker died while a handler ran",
		"COMPLETED after a loss", "RETRYING", "redriven", "cancelled before it was due", "cancel refused: it had ended",
		"continued from a checkpoint in the middle", "ran on in a drain", "took attempts after its drain", "woken from a wait",
	} {
		n[what] = 0
	}
	e.countDrains(n)
	for id, job := range e.jobs {
		for _, a := range job.Attempts {
			if _, watched := n[a.Outcome]; watched {
				n[a.Outcome]++
			}
		}
		n["redriven"] += job.redriven()
		if job.Status == completed && job.lost() > 0 {
			n["COMPLETED after a loss"]++
		}
		for _, m := range job.History {
			switch {
			case m.To == "RETRYING":
				n["RETRYING"]++
			case m.From == "SCHEDULED" && m.To == canceled:
				n["cancelled before it was due"]++
			}
			if m.By == "wait" && m.From == "SCHEDULED" {
				n["woken from a wait"]++
			}
			if m.By == "client" && strings.HasPrefix(m.Reason, "cancel refused") {
				n["cancel refused: it had ended"]++
			}
		}
		for _, c := range e.counts[id] {
			if c.loaded && c.n > 0 && c.n < countsTo {
				n["continued from a checkpoint in the middle"]++
			}
		}
		for _, r := range e.ran[id] {
			if r.end.IsZero() {
				n["a worker died while a handler ran"]++
			}
		}
	}
	return n
}

// stopAll stops every function as an operator would.
func (h *fixture) stopAll() {
	h.t.Helper()
	for _, p := range h.processes {
		if code, err := p.stop(); err != nil || code != 0 {
			h.t.Errorf("%s ends with %d after SIGTERM: %v\n%s", p.name, code, err, tail(p.log, 1000))
		}
	}
	h.checkLogs()
}

func (e *evidence) summarize(t *testing.T) {
	attempts, ran, unanswered := 0, 0, 0
	for id, job := range e.jobs {
		attempts += job.Attempt
		ran += len(e.ran[id])
		if o := e.orders[job.key()]; o != nil && o.id == "" && o.how != byCall {
			unanswered++
		}
	}
	kills := 0
	for _, n := range e.chaos.kills() {
		kills += n
	}
	records := 0
	for _, n := range e.runs {
		records += n
	}
	t.Logf("%d jobs (%d without an answer), %d attempts (%d seen by the witness, %d records of run-job), %d faults: %v",
		len(e.jobs), unanswered, attempts, ran, records, kills, e.chaos.kills())
}
