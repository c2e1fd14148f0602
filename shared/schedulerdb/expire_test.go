package schedulerdb

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/dispatch"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/emit"
)

// until lets the job expire after d.
func until(job jobevent.Created, d time.Duration) jobevent.Created {
	at := time.Now().Add(d).UTC().Truncate(time.Microsecond)
	job.ExpiresAt = &at
	return job
}

// notStarted returns an outcome of an attempt that never began.
func notStarted(job jobevent.Created, kind jobstate.Kind) Outcome {
	o := ended(job, 1, kind)
	o.StartedAt = nil
	return o
}

func (h fixture) fillRoom() {
	h.Helper()
	h.ingest(newJobs(dispatch.MaxUnserved)...)
}

// urgent returns jobs that go before all others.
func urgent(n int) []jobevent.Created {
	jobs := newJobs(n)
	for i := range jobs {
		jobs[i].Priority = 9
	}
	return jobs
}

func TestAJobThatHasNotStartedInTimeIsCancelled(t *testing.T) {
	for name, become := range map[string]func(h fixture, job *jobevent.Created){
		"scheduled": func(h fixture, job *jobevent.Created) {
			runAt := time.Now().Add(2 * time.Hour)
			job.RunAt = &runAt
			h.ingest(*job)
		},
		"waiting for room": func(h fixture, job *jobevent.Created) {
			h.fillRoom()
			h.ingest(*job)
		},
		"waiting for a dependency": func(h fixture, job *jobevent.Created) {
			first := newJob()
			job.After = []uuid.UUID{first.JobID}
			h.ingest(first, *job)
		},
		"waiting for its turn": func(h fixture, job *jobevent.Created) {
			first := newJob()
			first.OrderingKey, first.OrderNumber, job.OrderingKey, job.OrderNumber = "k", 1, "k", 2
			h.ingest(first, *job)
		},
		"interrupted": func(h fixture, job *jobevent.Created) {
			h.ingest(*job)
			h.ingest(urgent(dispatch.MaxUnserved)...)
			h.settle(notStarted(*job, jobstate.KindInterrupted))
		},
		"rescheduled": func(h fixture, job *jobevent.Created) {
			h.fillRoom()
			h.ingest(*job)
			h.reschedule(*job, 1, time.Now().Add(2*time.Hour))
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newFixture(t)
			job := until(newJob(), time.Hour)
			become(h, &job)
			h.due()
			before := h.status(job)
			var expiresAt time.Time
			if err := h.pool.QueryRow(t.Context(), "UPDATE jobs SET expires_at = now() - interval '1 ms' WHERE job_id = $1 RETURNING expires_at", job.JobID).
				Scan(&expiresAt); err != nil {
				t.Fatal(err)
			}
			h.askAgain(0)
			h.due()
			s := h.wantStatus(job, jobstate.Cancelled)
			want := jobevent.Error{ErrorCode: "SCHEDULER.EXPIRED", Message: "not started by " + expiresAt.UTC().Format(time.RFC3339Nano)}
			if last := s.History[len(s.History)-1]; *s.LastError != want || s.Version != before.Version+1 || last.From != before.Status || last.By != "dispatch" {
				t.Errorf("%+v, its error %+v", s, s.LastError)
			}
		})
	}
}

func TestAJobThatHasStartedOnceDoesNotExpire(t *testing.T) {
	h := newFixture(t)
	job := until(newJob(), time.Hour)
	if effects := h.ingest(job); len(effects.Runs) != 1 {
		t.Fatal(effects)
	}
	effects := h.settle(ended(job, 1, jobstate.KindInterrupted))
	events := h.events(effects)
	if order, err := jobevent.Decode[jobevent.Run](events[0]); err != nil || order.Attempt != 2 || order.ExpiresAt != nil {
		t.Errorf("its second order is %+v, %v", order, err)
	}
	h.settle(snoozed(jobevent.Created{JobID: job.JobID}), Outcome{
		JobID: job.JobID, Attempt: 2, Kind: jobstate.KindSnoozed, RetryAfter: time.Hour,
	})
	h.tamper("UPDATE jobs SET expires_at = now()")
	h.due()
	h.wantStatus(job, jobstate.Scheduled)
}

func TestARunOrderHasTheExpiryAndTheFairnessKey(t *testing.T) {
	h := newFixture(t)
	job, plain := until(newJob(), time.Hour), newJob()
	job.FairnessKey, job.OwnerID, plain.OwnerID = "share", "acme", "acme"
	wantOrder := func(by string, effects emit.Effects) {
		t.Helper()
		found := false
		for _, e := range h.events(effects) {
			order, err := jobevent.Decode[jobevent.Run](e)
			if e.Type() != jobevent.TypeRun || err != nil {
				continue
			}
			isIt := order.JobID == job.JobID
			if found = found || isIt; isIt != (order.ExpiresAt != nil) || isIt && !order.ExpiresAt.Equal(*job.ExpiresAt) ||
				isIt != (order.FairnessKey == "share") || order.OwnerID != "acme" {
				t.Errorf("%s: %+v", by, order)
			}
		}
		if !found {
			t.Errorf("%s: no run order", by)
		}
	}
	wantOrder("inserted as QUEUED", h.ingest(plain, job))
	wantOrder("interrupted", h.settle(notStarted(job, jobstate.KindInterrupted)))
	h.exec("UPDATE jobs SET lease_expires_at = now() + interval '1 s' * CASE WHEN job_id = $1 THEN -1 ELSE 60 END", job.JobID)
	wantOrder("asked about", h.askAgain(0))
}

func TestAWorkerThatRefusesALateStartCancelsTheJob(t *testing.T) {
	h := newFixture(t)
	job := until(newJob(), time.Hour)
	h.ingest(job)
	o := notStarted(job, jobstate.KindCancelled)
	o.ErrorCode, o.Message = "SCHEDULER.EXPIRED", "too late"
	h.settle(o)
	s := h.wantStatus(job, jobstate.Cancelled)
	if *s.LastError != (jobevent.Error{ErrorCode: "SCHEDULER.EXPIRED", Message: "too late"}) || s.LastCommand != nil {
		t.Errorf("%+v", s)
	}
}

func TestARetryRemovesTheExpiry(t *testing.T) {
	h := newFixture(t)
	job := until(scheduledJob(time.Hour), time.Minute)
	h.ingest(job)
	h.tamper("UPDATE jobs SET expires_at = now()")
	h.due()
	h.wantStatus(job, jobstate.Cancelled)
	events := h.events(h.order(job, 1, jobevent.CommandRetry))
	if order, err := jobevent.Decode[jobevent.Run](events[0]); err != nil || order.Attempt != 1 || order.ExpiresAt != nil {
		t.Errorf("order %+v, %v", order, err)
	}
}

func TestJobsThatWaitForAnExpiredJobAreReleased(t *testing.T) {
	h := newFixture(t)
	late, behind := until(scheduledJob(time.Hour), time.Minute), newJob()
	late.OrderingKey, late.OrderNumber, behind.OrderingKey, behind.OrderNumber = "k", 1, "k", 2
	needs, runsAnyway := newJob(), newJob()
	needs.After, runsAnyway.After, runsAnyway.RunAnyway = []uuid.UUID{late.JobID}, []uuid.UUID{late.JobID}, true
	h.ingest(late, behind, needs, runsAnyway)
	h.tamper("UPDATE jobs SET expires_at = now() WHERE expires_at IS NOT NULL")
	h.due()
	h.wantStatus(behind, jobstate.Queued)
	h.wantStatus(runsAnyway, jobstate.Queued)
	if s := h.wantStatus(needs, jobstate.Cancelled); s.LastError.ErrorCode != "SCHEDULER.DEPENDENCY_FAILED" {
		t.Errorf("%+v", s)
	}
}

// While the job is out, the clock's floor passes the instant at which the job expires.
func TestAnInterruptedJobStillExpiresInTime(t *testing.T) {
	h := newFixture(t)
	job := until(newJob(), time.Minute)
	h.fillRoom()
	h.ingest(job)
	h.heartbeat("w1", 2*dispatch.MaxUnserved, []int32{0})
	h.wantStatus(job, jobstate.Queued)
	if _, next, err := h.Due(t.Context(), time.Hour); err != nil || next != time.Hour {
		t.Fatalf("with all jobs out the clock sleeps %s, %v", next, err)
	}
	h.ingest(urgent(2 * dispatch.MaxUnserved)...)
	h.settle(notStarted(job, jobstate.KindInterrupted))
	h.wantStatus(job, jobstate.Pending)
	if _, next, err := h.Due(t.Context(), time.Hour); err != nil || next > time.Minute {
		t.Fatalf("then it sleeps %s, %v", next, err)
	}
}

func TestExpiryIsOnTime(t *testing.T) {
	h := newFixture(t)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	wake, listening := make(chan struct{}, 1), make(chan struct{}, 1)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = h.Listen(ctx, func() {
			for _, c := range []chan struct{}{wake, listening} {
				select {
				case c <- struct{}{}:
				default:
				}
			}
		})
	}()
	<-listening
	h.fillRoom()
	job := until(newJob(), 300*time.Millisecond)
	h.ingest(job)
	for over := false; !over; {
		effects, next, err := h.Due(ctx, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		for _, got := range effects.Jobs {
			if over = got.JobID == job.JobID; over {
				late := got.FinishedAt.Sub(*job.ExpiresAt)
				stop()
				if t.Logf("%s late", late); got.Status != "CANCELLED" || late < 0 || late > 20*time.Second { // a clock that missed the notification would sleep for a minute
					t.Errorf("%s %s after its expiry", got.Status, late)
				}
			}
		}
		timer := time.NewTimer(next)
		select {
		case <-timer.C:
		case <-wake:
		case <-ctx.Done():
			if !over {
				t.Fatal("did not expire")
			}
		}
		timer.Stop()
	}
	<-ended
}
