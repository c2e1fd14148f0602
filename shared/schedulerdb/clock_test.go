package schedulerdb

import (
	"context"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

func TestTheClockSleepsUntilTheNextJobIsDue(t *testing.T) {
	h := newFixture(t)
	if _, next, err := h.Due(t.Context(), time.Minute); err != nil || next != time.Minute {
		t.Errorf("idle, it sleeps %s (%v)", next, err)
	}
	for _, in := range []time.Duration{time.Hour, 20 * time.Second} {
		job := newJob()
		runAt := time.Now().Add(in)
		job.RunAt = &runAt
		h.ingest(job)
		_, next, err := h.Due(t.Context(), time.Minute)
		if want := min(in, time.Minute); err != nil || next > want || next < want-5*time.Second {
			t.Errorf("%s ahead, it sleeps %s (%v)", in, next, err)
		}
	}
}

func TestTheClockIsWokenOnlyForANewEarliestInstant(t *testing.T) {
	h := newFixture(t)
	ctx, stop := context.WithCancel(t.Context())
	woken, ended := make(chan struct{}, 10), make(chan struct{})
	go func() {
		defer close(ended)
		_ = h.Listen(ctx, func() { woken <- struct{}{} })
	}()
	<-woken // the listener is ready
	at := func(in time.Duration) jobevent.Created {
		job := newJob()
		runAt := time.Now().Add(in)
		job.RunAt = &runAt
		return job
	}
	h.ingest(at(time.Hour))
	<-woken
	h.ingest(at(2*time.Hour), newJob())
	h.exec("SELECT pg_notify('jobweaver_due', '')")
	<-woken // by this notification: notifications keep their order
	h.ingest(at(time.Minute))
	<-woken
	if len(woken) > 0 {
		t.Error("woken for a later instant")
	}
	stop()
	<-ended
}

// A lost or interrupted job keeps its rank: at the end of a long queue it would not run again in time.
func TestALostOrInterruptedJobGoesBeforeLaterOnes(t *testing.T) {
	for _, kind := range []jobstate.Kind{jobstate.KindLost, jobstate.KindInterrupted} {
		t.Run(string(kind), func(t *testing.T) {
			h := newFixture(t)
			h.heartbeat("w1", 1, []int32{0})
			first := newJob()
			h.ingest(first)
			h.ingest(newJobs(5)...)
			if effects := h.settle(ended(first, 1, kind)); len(effects.Runs) != 1 || effects.Runs[0].JobID != first.JobID {
				t.Errorf("sent out %+v", effects.Runs)
			}
		})
	}
}

func TestAJobThatHasJustBecomeDueDoesNotWaitForManyThatWereDueBefore(t *testing.T) {
	h := newFixture(t)
	h.tamper(`INSERT INTO jobs (job_id, trace_id, job_type, queue, payload, spec, status,
			attempt, rank, due_at, history, created_at)
		SELECT uuidv7(), uuidv7(), 'A', 'default', '1', '{"priority":0,"maxRetryCount":3,"timeoutMs":1000}', 'SCHEDULED', 0, now(), now() - interval '1 min',
			'{"at": "2026-01-01T00:00:00Z"}', now()
		FROM generate_series(1, $1)`, 3*maxDue)
	late := newJob()
	late.OwnerID = "quiet"
	runAt := time.Now().Add(time.Hour)
	late.RunAt = &runAt
	h.ingest(late)
	h.exec("UPDATE jobs SET due_at = now() - interval '1 s' WHERE job_id = $1", late.JobID)
	h.exec("UPDATE dispatch_state SET due_floor = now() - interval '1 h'")
	for pass, left := range []int{2 * maxDue, maxDue, 0} {
		effects, next, err := h.Due(t.Context(), time.Minute)
		h.must(effects, err)
		h.wantStatus(late, jobstate.Queued)
		if got := h.count("jobs WHERE status = 'SCHEDULED'"); got != left || (next == 0) != (left > 0) {
			t.Errorf("pass %d left %d, and the next one comes in %s; want %d", pass, got, next, left)
		}
	}
}

func TestOverdueJobsAndCallbacksAreTakenInSeveralPasses(t *testing.T) {
	h := newFixture(t)
	h.tamper(`INSERT INTO jobs (job_id, trace_id, job_type, queue, payload, spec, status,
			attempt, rank, due_at, callback_deadline_at, history, created_at)
		SELECT uuidv7(), uuidv7(), 'A', 'default', '1', '{"priority":0,"maxRetryCount":3,"timeoutMs":1000}', status, 1, now(), now() - n * interval '1 s',
			CASE WHEN status = 'WAITING' THEN now() END, '{"at": "2026-01-01T00:00:00Z"}', now()
		FROM generate_series(1, 700) n, unnest(ARRAY['WAITING', 'RETRYING', 'SCHEDULED']) status`)
	for pass := 1; ; pass++ {
		_, next, err := h.Due(t.Context(), time.Minute)
		if err != nil || pass > 5 {
			t.Fatalf("pass %d: %v", pass, err)
		}
		if next > time.Second {
			break
		}
	}
	var overdue int
	if err := h.pool.QueryRow(t.Context(), "SELECT count(*) FROM jobs WHERE due_at < now()").Scan(&overdue); err != nil || overdue > 0 {
		t.Errorf("%d left (%v)", overdue, err)
	}
}
