package kill

import (
	"context"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/retry"
)

// killer is a job whose handler ends its process.
var killer = &shape{
	name: "kills its worker", payload: works(500, 500, "dies", true), ends: one(failed), code: "WORKER.LOST",
}

// A job kills its worker, the only one, which its supervisor restarts each time. The job fails; other jobs that run
// in the worker or wait for a slot complete.
func TestAJobThatKillsItsWorkerFailsAlone(t *testing.T) {
	duration(t)
	t.Parallel()
	rnd := newRand(t)
	h := build(t, plan{form: grouped, workers: 1})
	h.workers()[0].supervise()
	l, c := newLoad(t.Context(), h, rnd), &chaos{fixture: h, rnd: rnd}

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

const (
	withoutWorkers = 52 * time.Second // so that the watchdog asks three times; less than the minute after which the API asks
	withoutBroker  = 20 * time.Second // longer than a lease
)

// While no worker lives, the watchdog does not flood run-job with questions, and a restarted worker is not kept busy
// by old questions. Then there is no broker for a while: jobs accepted meanwhile run once it is back.
func TestQuestionsDoNotFloodWhileNoWorkerOrBrokerLives(t *testing.T) {
	duration(t)
	t.Parallel()
	rnd := newRand(t)
	h := build(t, plan{form: grouped, workers: 1})
	l, c := newLoad(t.Context(), h, rnd), &chaos{fixture: h, rnd: rnd}
	worker := h.workers()[0]
	l.submitMany(rnd, briefShapes[0], 10)
	must(t, h.drain(t.Context(), time.Time{}, recoverWithin))

	must(t, worker.kill())
	l.submitMany(rnd, briefShapes[0], 300)
	retry.Pause(t.Context(), lease*2/3)
	records, attempts := h.recordsOf(jobevent.TopicRun)
	retry.Pause(t.Context(), withoutWorkers-lease*2/3)
	later, now := h.recordsOf(jobevent.TopicRun)
	asked := (later - now) - (records - attempts)
	t.Logf("%d records of %d attempts, then %d of %d: %d questions were not answered", records, attempts, later, now, asked)
	if most := questions(withoutWorkers); asked > 2*most { // about one attempt of the queue at a time, see checkFlood
		t.Errorf("%d questions in %s, at most %d are due", asked, withoutWorkers, most)
	}
	must(t, worker.start())
	back := time.Now()
	l.submitMany(rnd, briefShapes[0], 1)
	must(t, h.drain(t.Context(), time.Time{}, recoverWithin))
	t.Logf("all had ended %s after a worker came back", ms(time.Since(back)))
	l.withoutBroker(t, c)

	e := h.evidence(context.WithoutCancel(t.Context()), l, c)
	e.check()
	h.report(e)
	h.stopAll()
	e.summarize(t)
}

// withoutBroker submits jobs while there is no broker for longer than a lease.
func (l *load) withoutBroker(t *testing.T, c *chaos) {
	l.shapes = briefShapes
	submitting, stopSubmitting := context.WithCancel(t.Context())
	defer stopSubmitting()
	for range 2 {
		l.submitting.Go(func() { l.every(submitting, 100*time.Millisecond, l.submitOne) })
	}
	for _, broker := range l.fixture.targetsNamed("broker") {
		retry.Pause(t.Context(), time.Second)
		c.kill(broker, withoutBroker)
	}
	stopSubmitting()
	l.submitting.Wait()
	must(t, l.fixture.drain(t.Context(), time.Time{}, wipedWithin))
	f := c.faults[len(c.faults)-1]
	meanwhile := 0
	for _, o := range l.all() {
		if o.accepted.After(f.from) && o.accepted.Before(f.to) {
			meanwhile++
		}
	}
	t.Logf("%d jobs were accepted without a broker; all had ended %s after it came back", meanwhile, ms(time.Since(f.to)))
	if meanwhile < 50 {
		t.Errorf("without a broker only %d jobs were accepted", meanwhile)
	}
}

// recordsOf counts the records of a topic, and their ids.
func (h *fixture) recordsOf(topic string) (records, ids int) {
	h.t.Helper()
	published, err := h.published(topic)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, n := range published {
		records += n
	}
	return records, len(published)
}
