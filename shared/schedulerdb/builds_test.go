package schedulerdb

import (
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

func builtAs(build string, beat jobevent.Heartbeat) jobevent.Heartbeat {
	beat.Build = build
	return beat
}

func keeping(jobType string) jobevent.Created {
	job := jobOf(jobType)
	job.KeepBuild, job.MaxRetryCount = true, 9
	return job
}

// failedOn is the outcome of an attempt that a worker has begun, and that runs again at once.
func failedOn(worker string, job jobevent.Created, attempt int) Outcome {
	o := ended(job, attempt, jobstate.KindInterrupted)
	now := time.Now()
	o.WorkerID, o.StartedAt = worker, &now
	return o
}

func TestFurtherAttemptsStayOnTheBuildThatBeganTheJob(t *testing.T) {
	h := newFixture(t)
	old, other := builtAs("v1", plainBeat("old", 2, 0)), builtAs("v2", plainBeat("new", 10, 1))
	h.beats(old)
	kept, plain := keeping("A"), jobOf("A")
	h.wantPartitions(h.ingest(kept, plain).Runs, map[int16]int{0: 2})
	h.beats(other)
	h.wantPartitions(h.settle(failedOn("old", kept, 1)).Runs, map[int16]int{0: 1})
	h.wantPartitions(h.settle(failedOn("old", plain, 1)).Runs, map[int16]int{1: 1}) // the one with more room

	// The outcome of a worker that has stopped meanwhile counts for its build, which no worker has any more.
	gone := old
	gone.Stopping = true
	h.beats(gone)
	h.wantPartitions(h.settle(failedOn("old", kept, 2)).Runs, map[int16]int{1: 1})
	var build string
	if err := h.pool.QueryRow(t.Context(), "SELECT build FROM jobs WHERE job_id = $1", kept.JobID).Scan(&build); err != nil || build != "v1" {
		t.Errorf("kept build %q, %v", build, err)
	}
	// From then on it stays on the build that runs it now.
	h.beats(builtAs("v1", plainBeat("older", 20, 2)), other)
	h.wantPartitions(h.settle(failedOn("new", kept, 3)).Runs, map[int16]int{1: 1})
}

// While the worker of its build is busy with other jobs, a job waits, and jobs that any worker may run pass it.
func TestAJobWaitsForAWorkerOfItsBuild(t *testing.T) {
	h := newFixture(t)
	old, other := builtAs("v1", plainBeat("old", 1, 0)), builtAs("v2", plainBeat("new", 1, 1))
	h.beats(old)
	kept := keeping("A")
	h.ingest(kept)
	h.beats(other)
	full := jobOf("A")
	h.wantPartitions(h.ingest(full).Runs, map[int16]int{1: 1})
	h.settle(completed(kept, 1))

	again := keeping("A")
	h.wantPartitions(h.ingest(again).Runs, map[int16]int{0: 1})
	h.exec("UPDATE workers SET slots = 1, rate = 0")
	second := keeping("A")
	if runs := h.ingest(second).Runs; len(runs) > 0 {
		t.Fatalf("%d went out", len(runs))
	}
	// The job again has the better rank, and the free slot is on its build, so again goes there and second waits for
	// any slot.
	h.wantPartitions(h.settle(failedOn("old", again, 1)).Runs, map[int16]int{0: 1})
	h.wantPartitions(h.settle(completed(full, 1)).Runs, map[int16]int{1: 1})

	// While its worker drains, its build does not live, so it goes to another build.
	h.control(pause(jobevent.ControlWorker, "old", 1))
	if runs := h.settle(failedOn("old", again, 2)).Runs; len(runs) > 0 {
		t.Fatalf("%d went out to full workers", len(runs))
	}
	h.wantPartitions(h.settle(completed(second, 1)).Runs, map[int16]int{1: 1})
}

func TestAWorkerWithoutABuildKeepsNoJob(t *testing.T) {
	h := newFixture(t)
	h.beats(plainBeat("old", 2, 0))
	kept := keeping("A")
	h.ingest(kept)
	h.beats(plainBeat("old", 0, 0), plainBeat("new", 10, 1))
	h.wantPartitions(h.settle(failedOn("old", kept, 1)).Runs, map[int16]int{1: 1})
}
