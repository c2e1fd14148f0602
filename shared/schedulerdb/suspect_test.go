package schedulerdb

import (
	"slices"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/emit"
)

func TestALostJobRunsAtOnceAfterItsFirstLossAndLaterAfterFurtherOnes(t *testing.T) {
	h := newFixture(t)
	job := newJob()
	h.ingest(job)
	if effects := h.settle(ended(job, 1, jobstate.KindLost)); len(effects.Runs) != 1 || effects.Runs[0].Attempt != 2 {
		t.Fatalf("the first loss returned %+v", effects)
	}
	h.wantPutOff(job, 2, 10*time.Second)
	h.wantPutOff(job, 3, 20*time.Second)
	h.settle(ended(job, 4, jobstate.KindLost))
	if s := h.wantStatus(job, jobstate.Failed); s.RetryCount != 0 || s.LastError.ErrorCode != "TEST.CODE" {
		t.Errorf("lost attempts counted %d retries, and the last error is %+v", s.RetryCount, s.LastError)
	}
}

// wantPutOff loses an attempt, asserts that the next one is put off by at most most, and dispatches it.
func (h fixture) wantPutOff(job jobevent.Created, attempt int, most time.Duration) {
	h.Helper()
	h.settle(ended(job, attempt, jobstate.KindLost))
	s := h.wantStatus(job, jobstate.Scheduled)
	if wait := s.NextRunAt.Sub(s.UpdatedAt); wait < 0 || wait > most {
		h.Fatalf("after loss %d the job waits %s", attempt, wait)
	}
	h.tamper("UPDATE jobs SET due_at = now() WHERE due_at IS NOT NULL")
	if effects := h.due(); len(effects.Runs) != 1 || int(effects.Runs[0].Attempt) != attempt+1 {
		h.Fatalf("once it is due the clock returns %+v", effects)
	}
}

func TestASuspectKeepsItsRank(t *testing.T) {
	h := newFixture(t)
	job := newJob()
	first := h.ingest(job).Runs[0].Rank
	h.settle(ended(job, 1, jobstate.KindLost))
	h.settle(ended(job, 2, jobstate.KindLost))
	h.tamper("UPDATE jobs SET due_at = now()")
	if effects := h.due(); len(effects.Runs) != 1 || !effects.Runs[0].Rank.Equal(first.Truncate(time.Microsecond)) {
		t.Errorf("its rank was %s, and then it returned %+v", first, effects.Runs)
	}
}

// One job kills the worker, which restarts. While it is out, all attempts are lost. Otherwise all attempts complete.
func TestOnlyTheJobThatKillsItsWorkerFails(t *testing.T) {
	h := newFixture(t)
	jobs := newJobs(12)
	killer := jobs[4]
	h.heartbeat("w", 12, []int32{0})
	out := h.ingest(jobs...).Runs
	for round := 0; len(out) > 0 || h.status(killer).Status != string(jobstate.Failed); round++ {
		if round > 100 {
			t.Fatalf("after a hundred rounds the killer is %+v", h.status(killer))
		}
		kind := jobstate.KindCompleted
		if slices.ContainsFunc(out, func(r emit.RunOrder) bool { return r.JobID == killer.JobID }) {
			kind = jobstate.KindLost
		}
		outcomes := make([]Outcome, len(out))
		for i, run := range out {
			outcomes[i] = ended(jobevent.Created{JobID: run.JobID}, int(run.Attempt), kind)
		}
		out = h.settle(outcomes...).Runs
		h.tamper("UPDATE jobs SET due_at = now() WHERE due_at IS NOT NULL")
		out = append(out, h.due().Runs...)
	}
	for _, job := range jobs {
		if job.JobID != killer.JobID {
			h.wantStatus(job, jobstate.Completed)
		}
	}
}

func TestAQueueHasAtMostAsManySuspectsOutAsWorkers(t *testing.T) {
	h := newFixture(t)
	h.heartbeat("w1", 12, []int32{0})
	h.heartbeat("w2", 12, []int32{1})
	h.cohort = 1 // the test writes rows of jobs
	h.ingest(newJobs(6)...)
	h.tamper("UPDATE jobs SET status = 'SCHEDULED', lost_count = 2, due_at = now(), partition = null, lease_expires_at = null")
	if effects := h.due(); len(effects.Runs) != 2 {
		t.Fatalf("%d suspects went out to two workers", len(effects.Runs))
	}
	h.tamper("UPDATE jobs SET due_at = now() WHERE due_at IS NOT NULL")
	if effects := h.due(); len(effects.Runs) != 0 {
		t.Errorf("%d more went out beside them", len(effects.Runs))
	}
	h.exec("UPDATE jobs SET status = 'RUNNING', started_at = now() - interval '11 min' WHERE status = 'QUEUED'")
	h.tamper("UPDATE jobs SET due_at = now() WHERE due_at IS NOT NULL")
	if effects := h.due(); len(effects.Runs) != 2 {
		t.Errorf("%d went out beside two that have long run", len(effects.Runs))
	}
}

// An operator pauses the type whose jobs kill workers. Jobs that were lost beside one of these must not wait for it.
func TestASuspectThatIsHeldBackHoldsBackNoOthers(t *testing.T) {
	h := newFixture(t)
	h.heartbeat("w", 12, []int32{0})
	h.control(pause(jobevent.ControlType, "KILLER", 1))
	h.ingest(jobOf("KILLER"), newJob())
	h.tamper("UPDATE jobs SET lost_count = 2, updated_at = now() - interval '30 s'")
	h.tamper("UPDATE jobs SET status = 'SCHEDULED', due_at = now(), partition = null, lease_expires_at = null WHERE status = 'QUEUED'")
	if effects := h.due(); len(effects.Runs) > 0 {
		t.Fatalf("%d went out beside one that may go out now", len(effects.Runs))
	}
	h.exec("UPDATE jobs SET updated_at = now() - interval '2 min' WHERE status = 'PENDING'")
	h.tamper("UPDATE jobs SET due_at = now() WHERE due_at IS NOT NULL")
	if effects := h.due(); len(effects.Runs) != 1 {
		t.Errorf("%d went out beside one that is held back", len(effects.Runs))
	}
}

// No pull worker may take a suspect's type, for days.
func TestASuspectThatNoWorkerStartsHoldsBackNoOthers(t *testing.T) {
	h := newFixture(t)
	h.heartbeat("w", 12, []int32{0})
	first, second := newJob(), newJob()
	h.ingest(first, second)
	h.tamper("UPDATE jobs SET lost_count = 2, updated_at = now() - interval '9 min'")
	h.tamper("UPDATE jobs SET status = 'SCHEDULED', due_at = now(), partition = null, lease_expires_at = null WHERE job_id = $1", second.JobID)
	if effects := h.due(); len(effects.Runs) > 0 {
		t.Fatalf("%d went out beside one that may start now", len(effects.Runs))
	}
	h.exec("UPDATE jobs SET updated_at = now() - interval '11 min' WHERE status = 'QUEUED'")
	h.exec("UPDATE workers SET seen_at = now() - interval '1 min'")
	h.tamper("UPDATE jobs SET due_at = now() WHERE due_at IS NOT NULL")
	if effects := h.due(); len(effects.Runs) > 0 {
		t.Fatalf("%d went out without a worker, which would get both at once", len(effects.Runs))
	}
	h.heartbeat("w", 12, []int32{0})
	h.tamper("UPDATE jobs SET due_at = now() WHERE due_at IS NOT NULL")
	if effects := h.due(); len(effects.Runs) != 1 {
		t.Errorf("%d went out beside one that no worker starts", len(effects.Runs))
	}
}
