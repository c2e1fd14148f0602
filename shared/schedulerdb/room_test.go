package schedulerdb

import (
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/dispatch"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

func TestWithoutAWorkerSixteenJobsGoOut(t *testing.T) {
	h := newFixture(t)
	if effects := h.ingest(newJobs(40)...); len(effects.Runs) != 16 || len(effects.Jobs) != 0 {
		t.Errorf("%d out, %d published: jobs that wait for room are not", len(effects.Runs), len(effects.Jobs))
	}
}

func TestAWorkerGetsNoMoreLongJobsThanSlots(t *testing.T) {
	h := newFixture(t)
	h.heartbeat("w1", 12, []int32{0, 1, 2})
	jobs := newJobs(100)
	out := len(h.ingest(jobs[:30]...).Runs)
	out += len(h.ingest(jobs[30:]...).Runs)
	out += len(h.due().Runs)
	if out != 12 {
		t.Fatalf("%d out", out)
	}
	effects := h.heartbeat("w2", 5, []int32{7})
	if len(effects.Runs) != 5 {
		t.Fatalf("a new worker's room was filled with %d", len(effects.Runs))
	}
	for _, run := range effects.Runs {
		if *run.Partition != 7 {
			t.Errorf("sent to partition %d of the full worker", *run.Partition)
		}
	}
}

func TestAFastWorkerGetsAQuarterOfASecondMore(t *testing.T) {
	h := newFixture(t)
	effects, err := h.Heartbeat(t.Context(), []jobevent.Heartbeat{{
		WorkerID: "w1", Slots: 12, Rate: 400, Partitions: map[string][]int32{"default": {3}},
	}})
	h.must(effects, err)
	if effects := h.ingest(newJobs(200)...); len(effects.Runs) != 112 {
		t.Errorf("%d out, want 12 slots and the jobs of a quarter of a second", len(effects.Runs))
	}
}

func TestAJobIsNotSentToABusyWorkerWhileAnotherIsFree(t *testing.T) {
	h := newFixture(t)
	h.heartbeat("busy", 2, []int32{0, 1, 2, 3, 4, 5})
	long := newJobs(2)
	h.ingest(long...)
	now := time.Now()
	h.heartbeat("busy", 2, []int32{0, 1, 2, 3, 4, 5},
		jobevent.ListedAttempt{JobID: long[0].JobID, Attempt: 1, StartedAt: &now},
		jobevent.ListedAttempt{JobID: long[1].JobID, Attempt: 1, StartedAt: &now})
	h.wantStatus(long[0], jobstate.Running)
	h.heartbeat("free", 4, []int32{6, 7, 8, 9, 10, 11})
	for range 4 {
		effects := h.ingest(newJob())
		if len(effects.Runs) != 1 || *effects.Runs[0].Partition < 6 {
			t.Fatalf("sent %+v", effects.Runs)
		}
	}
	if effects := h.ingest(newJob()); len(effects.Runs) != 0 {
		t.Errorf("sent out with all slots taken: %+v", effects.Runs)
	}
}

func TestTheQueuesOfAWorkerShareItsSlots(t *testing.T) {
	h := newFixture(t)
	effects, err := h.Heartbeat(t.Context(), []jobevent.Heartbeat{{
		WorkerID: "w1", Slots: 4, Partitions: map[string][]int32{"default": {0}, "mail": {0}},
	}})
	h.must(effects, err)
	mail := newJobs(3)
	for i := range mail {
		mail[i].Queue = "mail"
	}
	out := len(h.ingest(mail...).Runs) + len(h.ingest(newJobs(5)...).Runs)
	if out != 4 {
		t.Errorf("%d out on 4 slots", out)
	}
}

func TestTheBetterRankGoesFirst(t *testing.T) {
	h := newFixture(t)
	h.heartbeat("w1", 1, []int32{0})
	blocker := newJob()
	h.ingest(blocker)
	base := time.Now()
	low, high, old := newJob(), newJob(), newJob()
	low.CreatedAt, high.CreatedAt, high.Priority, old.CreatedAt = base.Add(-time.Second), base, 1, base.Add(-15*time.Second)
	h.ingest(low, high, old)
	var order []jobevent.Created
	last := blocker
	for range 3 {
		effects := h.settle(completed(last, 1))
		if len(effects.Runs) != 1 {
			t.Fatalf("sent out %+v", effects.Runs)
		}
		for _, job := range []jobevent.Created{low, high, old} {
			if job.JobID == effects.Runs[0].JobID {
				last = job
			}
		}
		order = append(order, last)
	}
	if order[0].JobID != old.JobID || order[1].JobID != high.JobID || order[2].JobID != low.JobID {
		t.Error("want the job that waited 15 s first, then the one with a priority, then the one that waited 1 s")
	}
}

func TestARedeliveredJobTakesNoRoom(t *testing.T) {
	h := newFixture(t)
	h.heartbeat("w1", 1, []int32{0})
	known, fresh := newJob(), newJob()
	h.ingest(known)
	h.settle(completed(known, 1))
	if effects := h.ingest(known, fresh); len(effects.Runs) != 1 || effects.Runs[0].JobID != fresh.JobID {
		t.Errorf("%+v", effects.Runs)
	}
}

func TestAStoppingWorkerAddsNoRoom(t *testing.T) {
	h := newFixture(t)
	h.heartbeat("w1", 12, []int32{0})
	effects, err := h.Heartbeat(t.Context(), []jobevent.Heartbeat{{WorkerID: "w1", Slots: 12, Stopping: true}})
	h.must(effects, err)
	if effects := h.ingest(newJobs(20)...); len(effects.Runs) != dispatch.MaxUnserved {
		t.Errorf("%d out", len(effects.Runs))
	}
}

func TestABatchFillsOnePartitionBeforeTheNext(t *testing.T) {
	h := newFixture(t)
	h.heartbeat("w1", 1000, []int32{0, 1, 2, 3, 4, 5})
	by := map[int16]int{}
	for _, run := range h.ingest(newJobs(2 * dispatch.RunLength)...).Runs {
		by[*run.Partition]++
	}
	if len(by) != 2 {
		t.Errorf("jobs for two partitions went to %v", by)
	}
	for range 20 { // each picks a partition at random
		for _, run := range h.ingest(newJob()).Runs {
			by[*run.Partition]++
		}
	}
	if len(by) < 3 {
		t.Errorf("single jobs went to %v", by)
	}
}
