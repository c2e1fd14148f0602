package schedulerdb

import (
	"context"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/dispatch"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/emit"
)

func (h fixture) reschedule(job jobevent.Created, number int, at time.Time) emit.Effects {
	h.Helper()
	return h.rescheduleBy("tester", job, number, at)
}

// wake reschedules a job as its waits do.
func (h fixture) wake(job jobevent.Created, number int, at time.Time) emit.Effects {
	h.Helper()
	return h.rescheduleBy(jobevent.ByWait, job, number, at)
}

func (h fixture) rescheduleBy(by string, job jobevent.Created, number int, at time.Time) emit.Effects {
	h.Helper()
	effects, err := h.Command(h.Context(), []jobevent.Command{{
		JobID: job.JobID, Number: number, Command: jobevent.CommandReschedule, By: by, RunAt: &at,
	}})
	return h.must(effects, err)
}

func scheduledJob(in time.Duration) jobevent.Created {
	job := newJob()
	runAt := time.Now().Add(in)
	job.RunAt = &runAt
	return job
}

func TestAWaitingJobIsRescheduled(t *testing.T) {
	later := time.Now().Add(42 * time.Minute).UTC().Truncate(time.Microsecond)
	for name, c := range map[string]struct {
		become func(h fixture, job *jobevent.Created)
		want   jobstate.Status
	}{
		"a scheduled one": {func(h fixture, job *jobevent.Created) {
			*job = scheduledJob(time.Hour)
			h.ingest(*job)
		}, jobstate.Scheduled},
		"a pending one": {func(h fixture, job *jobevent.Created) {
			h.ingest(newJobs(dispatch.MaxUnserved)...)
			h.ingest(*job)
		}, jobstate.Scheduled},
		"a snoozed one": {func(h fixture, job *jobevent.Created) {
			h.ingest(*job)
			h.settle(snoozed(*job))
		}, jobstate.Scheduled},
		"a retrying one": {func(h fixture, job *jobevent.Created) {
			h.ingest(*job)
			h.settle(ended(*job, 1, jobstate.KindFailed))
		}, jobstate.Retrying},
	} {
		t.Run(name, func(t *testing.T) {
			h := newFixture(t)
			job := newJob()
			c.become(h, &job)
			before := h.status(job)
			effects := h.reschedule(job, 1, later)
			after := h.wantStatus(job, c.want)
			if len(effects.Jobs) != 1 || after.Version != before.Version+1 || !after.NextRunAt.Equal(later) || !after.LastCommand.Applied {
				t.Errorf("became %+v", after)
			}
			last := after.History[len(after.History)-1]
			if last.From != before.Status || last.By != "tester" || last.Reason != jobevent.CommandReschedule {
				t.Errorf("history ends with %+v", last)
			}
			again := h.reschedule(job, 1, later.Add(time.Hour))
			if len(again.Jobs) != 1 || again.Jobs[0].Version != after.Version || !again.Jobs[0].DueAt.Equal(later) {
				t.Errorf("a repeated command makes %+v", again.Jobs)
			}
		})
	}
}

func TestARescheduledJobIsRankedByItsNewInstant(t *testing.T) {
	h := newFixture(t)
	h.ingest(newJobs(dispatch.MaxUnserved)...)
	first, second := newJob(), newJob()
	first.Priority = 3
	h.ingest(first, second)
	at := time.Now().Add(time.Hour).Truncate(time.Microsecond)
	h.reschedule(first, 1, at)
	h.tamper("UPDATE jobs SET due_at = $2 WHERE job_id = $1", first.JobID, at.Add(-time.Hour))
	h.due()
	h.wantStatus(first, jobstate.Pending)
	var rank time.Time
	if err := h.pool.QueryRow(t.Context(), "SELECT rank FROM jobs WHERE job_id = $1", first.JobID).Scan(&rank); err != nil {
		t.Fatal(err)
	}
	if want := at.Add(-time.Hour - 30*time.Second); !rank.Equal(want) {
		t.Errorf("rank %s, want %s", rank, want)
	}
}

func TestARescheduleToThePastRunsTheJobAtOnceBehindOlderOnes(t *testing.T) {
	h := newFixture(t)
	ctx, stop := context.WithCancel(t.Context())
	woken, ended := make(chan struct{}, 10), make(chan struct{})
	go func() {
		defer close(ended)
		_ = h.Listen(ctx, func() { woken <- struct{}{} })
	}()
	<-woken // the listener is ready
	job := scheduledJob(time.Hour)
	h.ingest(job)
	<-woken
	before := time.Now().Add(-time.Second)
	h.reschedule(job, 1, time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC))
	<-woken // for an earlier instant
	if effects := h.due(); len(effects.Runs) != 1 || effects.Runs[0].JobID != job.JobID || effects.Runs[0].Rank.Before(before) {
		t.Errorf("sent out %+v", effects.Runs)
	}
	stop()
	<-ended
}

func TestARescheduleOfAStartedJobIsRefusedWithTheState(t *testing.T) {
	h := newFixture(t)
	queued, running, parked, done := newJob(), newJob(), newJob(), newJob()
	h.ingest(queued, running, parked, done)
	h.settle(waiting(parked), completed(done, 1))
	h.start(running)
	for job, state := range map[*jobevent.Created]jobstate.Status{
		&queued: jobstate.Queued, &running: jobstate.Running, &parked: jobstate.Waiting, &done: jobstate.Completed,
	} {
		h.reschedule(*job, 1, time.Now().Add(time.Hour))
		if s := h.wantStatus(*job, state); s.LastCommand.Applied || s.LastCommand.Reason != "the job is "+string(state) {
			t.Errorf("%s: %+v", state, s.LastCommand)
		}
	}
}

// Cron may wake a job twice: the second time it may have run and failed.
func TestAWakeDoesNotCutTheDelayOfARetry(t *testing.T) {
	h := newFixture(t)
	job := newJob()
	h.ingest(job)
	h.settle(snoozed(job))
	h.wake(job, 1, time.Now())
	if s := h.wantStatus(job, jobstate.Scheduled); !s.LastCommand.Applied {
		t.Errorf("%+v", s.LastCommand)
	}
	h.due()
	h.settle(ended(job, 2, jobstate.KindFailed))
	before := h.wantStatus(job, jobstate.Retrying)
	h.wake(job, 2, time.Now())
	after := h.wantStatus(job, jobstate.Retrying)
	if after.LastCommand.Applied || after.LastCommand.Number != 2 || !after.NextRunAt.Equal(*before.NextRunAt) {
		t.Errorf("%+v, then %+v, %+v", before, after, after.LastCommand)
	}
}

// The API lets a cancel take the place of a wake, which may be on its way already.
func TestACancelThatTookThePlaceOfAWakeCancelsTheJobWhicheverComesFirst(t *testing.T) {
	at := time.Now()
	for name, numbers := range map[string][][]int{
		"the cancel": {{2}, {1}}, "the wake": {{1}, {2}}, "both, the cancel first": {{2, 1}}, "both, the wake first": {{1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newFixture(t)
			job := newJob()
			h.ingest(job)
			h.settle(snoozed(job))
			for _, batch := range numbers {
				var commands []jobevent.Command
				for _, number := range batch {
					c := jobevent.Command{JobID: job.JobID, Number: number, Command: jobevent.CommandReschedule, By: jobevent.ByWait, RunAt: &at}
					if number == 2 {
						c.Command, c.By, c.RunAt = jobevent.CommandCancel, "tester", nil
					}
					commands = append(commands, c)
				}
				effects, err := h.Command(h.Context(), commands)
				h.must(effects, err)
			}
			if s := h.wantStatus(job, jobstate.Cancelled); s.LastCommand.Number != 2 || !s.LastCommand.Applied {
				t.Errorf("%+v", s.LastCommand)
			}
			if effects := h.due(); len(effects.Runs) != 0 {
				t.Errorf("runs %+v", effects.Runs)
			}
		})
	}
}
