package schedulerdb

import (
	"context"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// Only the clock dispatches these jobs, and it sleeps as long as Due returns.
func TestStartsASecondAreLimited(t *testing.T) {
	for _, s := range subjects {
		t.Run(string(s.kind), func(t *testing.T) {
			h := newFixture(t)
			h.staff(200)
			const limit, jobs = 50, 60
			h.control(aSecond(s.kind, s.name, 1, limit))
			begin := time.Now()
			out := len(h.ingest(ownedJobs(jobs)...).Runs)
			if out > 2 {
				t.Errorf("%d went out at once", out)
			}
			for passes := 0; out < jobs; passes++ {
				effects, next, err := h.Due(t.Context(), 10*time.Second)
				if out += len(h.must(effects, err).Runs); out < jobs && next > time.Second/limit*2 || passes > 5*jobs {
					t.Fatalf("after pass %d with %d out, the clock sleeps %s", passes, out, next)
				}
				<-time.After(next)
			}
			if took := time.Since(begin); took < time.Second {
				t.Errorf("%d starts in %s", jobs, took)
			}
			if _, next, err := h.Due(t.Context(), 10*time.Second); err != nil || next != 10*time.Second {
				t.Errorf("with nothing waiting the clock sleeps %s (%v)", next, err)
			}
		})
	}
}

func TestTheClockIsWokenForJobsUnderARateLimit(t *testing.T) {
	h := newFixture(t)
	ctx, stop := context.WithCancel(t.Context())
	woken, ended := make(chan struct{}, 10), make(chan struct{})
	go func() {
		defer close(ended)
		_ = h.Listen(ctx, func() { woken <- struct{}{} })
	}()
	<-woken // the listener is ready
	h.control(aSecond("type", "SIMULATION", 1, 0.001), aSecond("type", "OTHER", 1, 0.01))
	first, second, third := newJob(), newJob(), newJob()
	third.JobType = "OTHER"
	h.ingest(first, third) // both start, which empties the buckets
	h.ingest(second)
	<-woken
	h.ingest(newJob())
	h.exec("SELECT pg_notify('jobweaver_due', '')")
	<-woken // by this notification: notifications keep their order
	third.JobID = newJob().JobID
	h.ingest(third)
	<-woken
	if len(woken) > 0 {
		t.Error("woken for a later instant")
	}
	stop()
	<-ended
	if _, next, err := h.Due(t.Context(), time.Hour); err != nil || next > 100*time.Second || next < 90*time.Second {
		t.Errorf("the clock sleeps %s (%v)", next, err)
	}
	h.control(nothing("type", "OTHER", 2), nothing("type", "SIMULATION", 2))
	if _, next, err := h.Due(t.Context(), time.Hour); err != nil || next != time.Hour {
		t.Errorf("without limits the clock sleeps %s (%v)", next, err)
	}
}

func TestTheClockDoesNotWaitForALimitOfRunningJobs(t *testing.T) {
	h := newFixture(t)
	h.staff(20)
	rate := 5.0
	both := atMost("type", "SIMULATION", 1, 1)
	both.StartsPerSecond = &rate
	h.control(both)
	jobs := newJobs(2)
	h.ingest(jobs...)
	if _, next, err := h.Due(t.Context(), time.Minute); err != nil || next != time.Minute {
		t.Errorf("the clock sleeps %s (%v)", next, err)
	}
	effects := h.settle(completed(jobs[0], 1))
	// The rate allows the second start 0.2 s after the first. If that time has passed, the outcome or the clock
	// dispatches the job; otherwise the clock sleeps until then.
	atClock, next, err := h.Due(t.Context(), time.Minute)
	if out := len(effects.Runs) + len(atClock.Runs); err != nil || out == 0 && next > time.Second {
		t.Errorf("%d out, then the clock sleeps %s (%v)", out, next, err)
	}
	h.control(jobevent.Control{Kind: "type", Name: "SIMULATION", Version: 2, StartsPerSecond: &rate, Paused: true})
	if _, next, err := h.Due(t.Context(), time.Minute); err != nil || next != time.Minute {
		t.Errorf("with a pause the clock sleeps %s (%v)", next, err)
	}
}

// After that the bucket's instants lie in the future.
func TestARateLimitGoesOnWhenTheDatabasesClockWasSetBack(t *testing.T) {
	h := newFixture(t)
	h.staff(200)
	h.control(aSecond("type", "SIMULATION", 1, 5))
	h.ingest(newJobs(3)...) // one goes out, and the bucket is empty
	// As if the bucket had been emptied an hour later by the clock.
	h.exec(`UPDATE dispatch_state SET more = jsonb_set(jsonb_set(more::jsonb,
		'{buckets,type:SIMULATION,at}', to_jsonb((more::jsonb #>> '{buckets,type:SIMULATION,at}')::timestamptz + interval '1 h')),
		'{opensAt}', to_jsonb((more::jsonb ->> 'opensAt')::timestamptz + interval '1 h'))`)
	for passes, out := 0, 0; out < 2; passes++ {
		effects, next, err := h.Due(t.Context(), 10*time.Second)
		if out += len(h.must(effects, err).Runs); out < 2 && next > time.Second || passes > 20 {
			t.Fatalf("after pass %d with %d out, the clock sleeps %s", passes, out, next)
		}
		<-time.After(next)
	}
}
