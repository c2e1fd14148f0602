package schedulerdb

import (
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/emit"
)

func (h fixture) askAgain(since time.Duration) emit.Effects {
	h.Helper()
	counted, err := h.Count(h.Context())
	if err != nil {
		h.Fatal(err)
	}
	effects, err := h.AskAgain(h.Context(), counted, since)
	return h.must(effects, err)
}

func TestAnExpiredLeaseRepeatsTheRunOrder(t *testing.T) {
	h := newFixture(t)
	job := newJob()
	first := h.ingest(job).Runs[0]
	if effects := h.askAgain(2 * time.Second); len(effects.Runs) != 0 {
		t.Fatalf("asked within the lease: %+v", effects)
	}
	h.exec("UPDATE jobs SET lease_expires_at = now() - interval '1 ms'")
	effects := h.askAgain(2 * time.Second)
	if len(effects.Runs) != 1 || effects.Runs[0].Attempt != 1 || *effects.Runs[0].Partition == *first.Partition {
		t.Fatalf("asked %+v after %+v", effects.Runs, first)
	}
	if effects := h.askAgain(2 * time.Second); len(effects.Runs) != 0 {
		t.Errorf("asking did not renew the lease")
	}
}

func TestAHeartbeatStartsAndHoldsOnlyItsOwnAttempt(t *testing.T) {
	h := newFixture(t)
	job := newJob()
	h.ingest(job)
	now := time.Now()
	h.exec("UPDATE jobs SET lease_expires_at = now() - interval '1 ms'")
	h.heartbeat("w1", 1, []int32{0}, jobevent.ListedAttempt{JobID: job.JobID, Attempt: 2, StartedAt: &now})
	h.wantStatus(job, jobstate.Queued)
	h.heartbeat("w1", 1, []int32{0}, jobevent.ListedAttempt{JobID: job.JobID, Attempt: 1})
	h.wantStatus(job, jobstate.Queued)
	if effects := h.askAgain(time.Second); len(effects.Runs) != 0 {
		t.Errorf("a held attempt was asked about: %+v", effects.Runs)
	}
	effects := h.heartbeat("w1", 1, []int32{0}, jobevent.ListedAttempt{JobID: job.JobID, Attempt: 1, StartedAt: &now})
	if len(effects.Jobs) != 1 || effects.Jobs[0].Status != "RUNNING" {
		t.Fatalf("the heartbeat returned %+v", effects)
	}
	if effects := h.heartbeat("w1", 1, []int32{0}, jobevent.ListedAttempt{JobID: job.JobID, Attempt: 1, StartedAt: &now}); len(effects.Jobs) != 0 {
		t.Errorf("a second heartbeat returned %+v", effects)
	}
	h.settle(completed(job, 1))
	h.heartbeat("w1", 1, []int32{0}, jobevent.ListedAttempt{JobID: job.JobID, Attempt: 1, StartedAt: &now})
	h.wantStatus(job, jobstate.Completed)
}

func TestTheHistoryNamesThePullWorkerOfAnAttempt(t *testing.T) {
	h := newFixture(t)
	for _, end := range []func(jobevent.Created) Outcome{
		func(job jobevent.Created) Outcome { return completed(job, 1) },
		func(job jobevent.Created) Outcome { return ended(job, 1, jobstate.KindFailed) },
	} {
		job := newJob()
		h.ingest(job)
		now := time.Now()
		h.heartbeat("pull-1", 1, []int32{0}, jobevent.ListedAttempt{
			JobID: job.JobID, Attempt: 1, StartedAt: &now, RanBy: "resizer-\x00x2x9q",
		})
		outcome := end(job)
		outcome.WorkerID, outcome.RanBy = "pull-1", "resizer-\x00x2x9q"
		h.settle(outcome)
		named := 0
		for _, move := range h.status(job).History {
			if move.WorkerID == "pull-1" {
				t.Errorf("%s names the function", move.To)
			} else if move.WorkerID == jobevent.CleanText("resizer-\x00x2x9q", nameMost) {
				named++
			}
		}
		if named != 2 {
			t.Errorf("the start and the end name it %d times", named)
		}
	}
}

func TestAWaitingJobIsCancelledAtOnce(t *testing.T) {
	h := newFixture(t)
	later := time.Now().Add(time.Hour)
	scheduled, retrying, pending := newJob(), newJob(), newJob()
	scheduled.RunAt = &later
	h.ingest(retrying)
	h.settle(ended(retrying, 1, jobstate.KindFailed))
	h.ingest(append(newJobs(16), scheduled)...)
	h.ingest(pending)
	h.wantStatus(scheduled, jobstate.Scheduled)
	h.wantStatus(retrying, jobstate.Retrying)
	h.wantStatus(pending, jobstate.Pending)
	for _, job := range []jobevent.Created{scheduled, retrying, pending} {
		h.order(job, 1, jobevent.CommandCancel)
		s := h.wantStatus(job, jobstate.Cancelled)
		if !s.LastCommand.Applied || s.LastCommand.Number != 1 || s.History[len(s.History)-1].By != "tester" {
			t.Errorf("%+v", s.LastCommand)
		}
	}
}

func TestACancelOfARunningJobIsDecidedByTheWorker(t *testing.T) {
	for name, c := range map[string]struct {
		kind    jobstate.Kind
		want    jobstate.Status
		applied bool
	}{
		"cancelled":              {jobstate.KindCancelled, jobstate.Cancelled, true},
		"completed before":       {jobstate.KindCompleted, jobstate.Completed, false},
		"failed instead":         {jobstate.KindFailed, jobstate.Cancelled, true},
		"lost instead":           {jobstate.KindLost, jobstate.Cancelled, true},
		"interrupted instead":    {jobstate.KindInterrupted, jobstate.Cancelled, true},
		"waiting for a callback": {jobstate.KindWaiting, jobstate.Cancelled, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newFixture(t)
			job := newJob()
			h.ingest(job)
			effects := h.order(job, 1, jobevent.CommandCancel)
			events, _ := effects.Events("command")
			if len(events) != 2 || events[0].Type() != jobevent.TypeAttemptCancel {
				t.Fatalf("returned %v", events)
			}
			h.wantStatus(job, jobstate.Queued)
			h.exec("UPDATE jobs SET lease_expires_at = now() - interval '1 ms', cancel_requested_at = now() - interval '16 s'")
			asked := h.askAgain(2 * time.Second)
			if len(asked.Runs) != 1 || asked.Runs[0].CancelRequestedAt == nil || len(asked.Cancels) != 1 {
				t.Fatalf("asked again %+v", asked)
			}
			h.settle(ended(job, 1, c.kind))
			if s := h.wantStatus(job, c.want); s.LastCommand.Applied != c.applied {
				t.Errorf("command %+v", s.LastCommand)
			}
		})
	}
}

func TestCommandsCountOnceAndAreAnswered(t *testing.T) {
	h := newFixture(t)
	job := newJob()
	job.MaxRetryCount = 1
	h.ingest(job)
	h.settle(completed(job, 1))
	h.order(job, 1, jobevent.CommandCancel)
	s := h.wantStatus(job, jobstate.Completed)
	if s.LastCommand.Applied || s.LastCommand.Reason != "the job is COMPLETED" {
		t.Errorf("%+v", s.LastCommand)
	}
	h.order(job, 1, jobevent.CommandCancel)
	if again := h.status(job); again.Version != s.Version {
		t.Errorf("a repeated command raised the version from %d to %d", s.Version, again.Version)
	}

	dead := newJob()
	dead.MaxRetryCount = 0
	h.ingest(dead)
	h.settle(ended(dead, 1, jobstate.KindFailed))
	effects := h.order(dead, 1, jobevent.CommandRetry)
	if len(effects.Runs) != 1 || effects.Runs[0].Attempt != 2 {
		t.Fatalf("retry returned %+v", effects)
	}
	h.order(dead, 1, jobevent.CommandRetry)
	if s := h.wantStatus(dead, jobstate.Queued); s.Attempt != 2 || s.RetryCount != 0 {
		t.Errorf("%+v", s)
	}
}

func TestACommandForAnUnknownJobChangesNothing(t *testing.T) {
	h := newFixture(t)
	if effects := h.order(newJob(), 1, jobevent.CommandCancel); len(effects.Jobs) != 0 {
		t.Errorf("%+v", effects)
	}
}

func TestAReportReturnsOnlyNewerVersions(t *testing.T) {
	h := newFixture(t)
	job := newJob()
	h.ingest(job)
	if events := h.report(job, 1); len(events) != 0 {
		t.Errorf("returned a known version: %v", events)
	}
	if events := h.report(job, 0); len(events) != 2 || events[0].Type() != jobevent.TypeRun || events[1].Type() != jobevent.TypeStatus {
		t.Errorf("got %v", events)
	}
}
