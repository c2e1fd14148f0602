package schedulerdb

import (
	"fmt"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// pullBeat is a heartbeat of a function pull, with what its pull workers ask for.
func pullBeat(worker string, partition int32, demands ...jobevent.Demand) jobevent.Heartbeat {
	b := jobevent.Heartbeat{
		WorkerID: worker, Partitions: map[string][]int32{"default": {partition}}, Demands: append([]jobevent.Demand{}, demands...),
	}
	for _, d := range demands {
		b.Slots += d.Slots
	}
	return b
}

func demand(owner string, slots int, types ...string) jobevent.Demand {
	return jobevent.Demand{Everyone: owner == "", OwnerID: owner, JobTypes: types, Slots: slots}
}

func ownJob(jobType, owner string) jobevent.Created {
	job := jobOf(jobType)
	job.OwnerID = owner
	return job
}

func TestOnlyWhatPullWorkersAskForGoesToPull(t *testing.T) {
	h := newFixture(t)
	h.beats(pullBeat("p", 0))
	if runs := h.ingest(typedJobs("DEAD", 30)...).Runs; len(runs) > 0 {
		t.Fatalf("%d went to a pull without pull workers", len(runs))
	}
	h.beats(pullBeat("p", 0, demand("", 2, "LIVE")))
	h.wantPartitions(h.ingest(typedJobs("LIVE", 3)...).Runs, map[int16]int{0: 2})
	if runs := h.ingest(typedJobs("DEAD", 3)...).Runs; len(runs) > 0 {
		t.Fatalf("%d of a type went out for which no pull worker asks", len(runs))
	}
	// A new claim wakes its lane at once.
	h.wantPartitions(h.beats(pullBeat("p", 0, demand("", 2, "LIVE"), demand("", 5, "DEAD"))).Runs, map[int16]int{0: 5})
}

func TestAPullWorkerGetsTheJobsOfItsOwnerAlone(t *testing.T) {
	h := newFixture(t)
	h.beats(pullBeat("p", 0, demand("", 1, "A")))
	before := []jobevent.Created{ownJob("B", "acme"), ownJob("B", "other")} // before any pull worker works for an owner
	h.ingest(before...)
	runs := h.beats(pullBeat("p", 0, demand("", 1, "A"), demand("acme", 10, "B"))).Runs
	if len(runs) != 1 || runs[0].JobID != before[0].JobID {
		t.Fatalf("%d went out, not acme's alone", len(runs))
	}
	h.wantPartitions(h.ingest(ownJob("B", "acme"), ownJob("B", "other"), ownJob("A", "other")).Runs, map[int16]int{0: 2})
	h.wantPartitions(h.beats(pullBeat("p", 0, demand("acme", 10, "B"), demand("other", 10, "B"))).Runs, map[int16]int{0: 2})
	h.wantStatus(before[1], jobstate.Queued)
}

func TestABusyTypeTakesNoSlotOfAnother(t *testing.T) {
	h := newFixture(t)
	both, one := demand("", 3, "A", "B"), demand("", 2, "C")
	h.beats(pullBeat("p", 0, both, one))
	h.wantPartitions(h.ingest(typedJobs("A", 2)...).Runs, map[int16]int{0: 2})
	h.wantPartitions(h.ingest(typedJobs("B", 9)...).Runs, map[int16]int{0: 1})
	h.wantPartitions(h.ingest(typedJobs("A", 9)...).Runs, map[int16]int{})
	last := jobOf("C")
	h.wantPartitions(h.ingest(last).Runs, map[int16]int{0: 1})
	h.settle(completed(last, 1))
	h.wantPartitions(h.ingest(typedJobs("C", 9)...).Runs, map[int16]int{0: 2})
}

func TestAttemptsGoToTheInstanceOfPullWhosePullWorkersHaveFreeSlots(t *testing.T) {
	h := newFixture(t)
	h.beats(pullBeat("p", 0, demand("", 2, "A")), pullBeat("q", 1, demand("", 4, "A"), demand("", 1, "B")))
	h.wantPartitions(h.ingest(typedJobs("A", 9)...).Runs, map[int16]int{0: 2, 1: 4})
	h.wantPartitions(h.ingest(jobOf("B")).Runs, map[int16]int{1: 1})
}

func TestJobsWithoutAWorkerAreForgottenWhenPullWorkersGo(t *testing.T) {
	h := newFixture(t)
	h.beats(pullBeat("p", 0, demand("", 1, "A")))
	h.ingest(typedJobs("A", 3)...)
	if l := h.ledger(); !l.HasReady("default") {
		t.Fatal("no job of the busy type waits")
	}
	h.beats(pullBeat("p", 0))
	h.ingest(jobOf("B"))
	if l := h.ledger(); l.HasReady("default") {
		t.Error("jobs wait as if a worker ran them")
	}
	h.askAgain(0)
	if n := h.count(`unserved`); n != 2 {
		t.Errorf("%d kinds have no worker", n)
	}
	h.beats(pullBeat("p", 0, demand("", 9, "B")))
	h.askAgain(0)
	if n := h.count(`unserved WHERE lane = 'runs:"A"'`); n != 1 || h.count(`unserved`) != 1 {
		t.Errorf("%d kinds have no worker", n)
	}
}

// The clock of NO_WORKER_TIMEOUT runs on when no worker of the queue is left for a while, and begins anew when one came.
func TestTheClockOfNoWorkerRunsOnThroughRestarts(t *testing.T) {
	h := openFixture(t, Config{Lease: 15 * time.Second, MaxLost: 3, NoWorkerTimeout: time.Hour}, "")
	h.beats(pullBeat("p", 0, demand("", 1, "A")))
	dead := jobOf("B")
	h.ingest(dead)
	h.askAgain(0)
	h.exec(`UPDATE unserved SET since = since - interval '59 min'`)
	h.exec(`UPDATE jobs SET updated_at = updated_at - interval '2 h', rank = rank - interval '2 h'`)
	stopping := pullBeat("p", 0)
	stopping.Stopping = true
	h.beats(stopping)
	h.askAgain(0)
	h.beats(pullBeat("q", 0))
	h.askAgain(0)
	h.beats(pullBeat("q", 0, demand("", 1, "A")))
	h.askAgain(0)
	h.wantStatus(dead, jobstate.Pending)
	h.exec(`UPDATE unserved SET since = since - interval '2 min'`)
	h.askAgain(0)
	h.wantStatus(dead, jobstate.Failed)

	next := jobOf("B")
	h.ingest(next)
	h.askAgain(0)
	h.exec(`UPDATE unserved SET since = since - interval '2 h'`)
	h.exec(`UPDATE jobs SET updated_at = updated_at - interval '2 h', rank = rank - interval '2 h' WHERE status = 'PENDING'`)
	h.control(pause("queue", "default", 1))
	h.beats(pullBeat("q", 0, demand("", 1, "B"))) // it comes, and goes before it has a job
	h.beats(pullBeat("q", 0))
	h.askAgain(0)
	h.wantStatus(next, jobstate.Pending)
}

// Ten thousand types without a worker are in the rows alone: the ledger does not grow, and the dispatch of the others
// reads none of them.
func TestTypesWithoutAWorkerCostTheOthersNothing(t *testing.T) {
	h := newFixture(t)
	h.beats(pullBeat("p", 0, demand("", 100, "LIVE")))
	for begin := range 10 {
		jobs := make([]jobevent.Created, 500)
		for i := range jobs {
			jobs[i] = jobOf(fmt.Sprintf("DEAD%d", begin*500+i))
		}
		h.ingest(jobs...)
	}
	h.wantPartitions(h.ingest(typedJobs("LIVE", 3)...).Runs, map[int16]int{0: 3})
	if n := h.count(`dispatch_state WHERE octet_length(more::text) > 1000`); n > 0 {
		t.Error("the ledger has grown")
	}
	for range 12 {
		h.askAgain(0)
	}
	if n := h.count(`unserved`); n != 5000 {
		t.Errorf("%d of 5000 kinds are known to have no worker", n)
	}
	counted, err := h.Count(t.Context())
	if err != nil || len(counted.Figures().NoWorker) != unservedShown || counted.Figures().NoWorkerLanes != 5000 {
		t.Errorf("the figures name %d types of %d, %v", len(counted.Figures().NoWorker), counted.Figures().NoWorkerLanes, err)
	}
	h.wantPartitions(h.beats(pullBeat("p", 0, demand("", 100, "LIVE"), demand("", 1, "DEAD4711"))).Runs, map[int16]int{0: 1})
}
