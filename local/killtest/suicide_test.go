package killtest

import (
	"context"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// killer is a job whose handler ends its process.
var killer = &shape{
	name: "kills its worker", payload: works(500, 500, "dies", true), ends: one(failed), code: "WORKER.LOST",
}

// protocol #2: a job kills its worker, the only one, which its supervisor starts again each time. It fails; its
// neighbours in the pool, and those that wait in the worker for a slot, complete.
func TestAJobThatKillsItsWorkerFailsAlone(t *testing.T) {
	duration(t)
	t.Parallel()
	rnd := newRand(t)
	h := build(t, plan{workers: 1})
	h.workers()[0].supervise()
	l, c := newLoad(t.Context(), h, rnd), &chaos{house: h, rnd: rnd}

	l.submitMany(rnd, killer, 1)
	l.submitMany(rnd, &shape{name: "works beside it", payload: works(3000, 3000), ends: one(completed)}, 15)
	if err := h.drain(t.Context(), time.Time{}, 5*time.Minute); err != nil {
		t.Error(err)
	}
	e := h.evidence(t.Context(), l, c)
	e.check()
	h.report(e)
	h.stopAll()
	e.summarize(t)
}

// withoutWorkers is some leases long.
const withoutWorkers = 65 * time.Second

// protocol #3: while no worker lives, nobody floods run-job with questions that nobody can answer, and a worker that
// comes back is not kept busy by old questions.
func TestNobodyIsAskedWhileNoWorkerLives(t *testing.T) {
	duration(t)
	t.Parallel()
	rnd := newRand(t)
	h := build(t, plan{workers: 1})
	l, c := newLoad(t.Context(), h, rnd), &chaos{house: h, rnd: rnd}
	worker := h.workers()[0]
	l.submitMany(rnd, briefShapes[0], 10)
	must(t, h.drain(t.Context(), time.Time{}, recoverWithin))

	must(t, worker.kill())
	l.submitMany(rnd, briefShapes[0], 300)
	pause(t.Context(), withoutWorkers)
	records, attempts := h.recordsOf(jobevent.TopicRun)
	if t.Logf("%d records of %d attempts after %s", records, attempts, withoutWorkers); records > 2*attempts {
		t.Errorf("%d records on run-job for %d attempts", records, attempts)
	}
	must(t, worker.start())
	back := time.Now()
	l.submitMany(rnd, briefShapes[0], 1)
	must(t, h.drain(t.Context(), time.Time{}, recoverWithin))
	t.Logf("all had ended %s after a worker came back", ms(time.Since(back)))

	e := h.evidence(context.WithoutCancel(t.Context()), l, c)
	e.check()
	h.report(e)
	h.stopAll()
	e.summarize(t)
}

// recordsOf counts the records of a topic, and their ids.
func (h *house) recordsOf(topic string) (records, ids int) {
	h.t.Helper()
	said, err := h.said(topic)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, n := range said {
		records += n
	}
	return records, len(said)
}
