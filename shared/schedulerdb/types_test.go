package schedulerdb

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/emit"
)

// beatOf is a heartbeat of a worker that runs only these types.
func beatOf(worker string, slots int, partition int32, types ...string) jobevent.Heartbeat {
	b := jobevent.Heartbeat{
		WorkerID: worker, Slots: slots, Partitions: map[string][]int32{"default": {partition}}, OnlyTypes: true,
	}
	for _, name := range types {
		b.JobTypes = append(b.JobTypes, jobevent.JobType{Name: name})
	}
	return b
}

func (h fixture) beats(all ...jobevent.Heartbeat) emit.Effects {
	h.Helper()
	effects, err := h.Heartbeat(h.Context(), all)
	return h.must(effects, err)
}

func jobOf(jobType string) jobevent.Created {
	job := newJob()
	job.JobType = jobType
	return job
}

func typedJobs(jobType string, n int) []jobevent.Created {
	jobs := make([]jobevent.Created, n)
	for i := range jobs {
		jobs[i] = jobOf(jobType)
	}
	return jobs
}

// unknownType is the outcome of an attempt that came to a worker without a handler for it.
func unknownType(job jobevent.Created, attempt int) Outcome {
	o := ended(job, attempt, jobstate.KindSnoozed)
	o.ErrorCode, o.Message, o.RetryAfter = string(apierror.UnknownJobType), "no handler", time.Microsecond
	return o
}

func (h fixture) wantPartitions(runs []emit.RunOrder, want map[int16]int) {
	h.Helper()
	got := map[int16]int{}
	for _, run := range runs {
		got[*run.Partition]++
	}
	for partition, n := range want {
		if got[partition] != n {
			h.Fatalf("went to partitions %v, want %v", got, want)
		}
	}
	if len(got) != len(want) {
		h.Fatalf("went to partitions %v, want %v", got, want)
	}
}

func TestAJobOfAnUnknownTypeWaitsForAWorkerThatRunsIt(t *testing.T) {
	h := newFixture(t)
	h.beats(beatOf("old", 10, 0, "A"))
	first := jobOf("B")
	h.wantPartitions(h.ingest(first).Runs, map[int16]int{0: 1}) // the scheduler does not know yet that old lacks it
	h.settle(unknownType(first, 1))
	if runs := h.tick(); len(runs) > 0 {
		t.Fatalf("%d went out again", len(runs))
	}
	h.wantStatus(first, jobstate.Pending)
	if runs := h.ingest(typedJobs("B", 2)...).Runs; len(runs) > 0 {
		t.Fatalf("%d more went out", len(runs))
	}
	h.wantPartitions(h.ingest(jobOf("A")).Runs, map[int16]int{0: 1}) // other types pass
	h.beats(beatOf("old", 10, 0, "A"))
	h.askAgain(0)
	h.wantPartitions(h.beats(beatOf("new", 10, 1, "A", "B")).Runs, map[int16]int{1: 3})
	h.wantPartitions(h.ingest(typedJobs("B", 2)...).Runs, map[int16]int{1: 2})

	// Once each worker runs the type, it is like any other.
	stopping := beatOf("old", 10, 0, "A")
	stopping.Stopping = true
	h.beats(stopping)
	h.wantPartitions(h.ingest(jobOf("B")).Runs, map[int16]int{1: 1})
	h.exec(`UPDATE dispatch_state SET more = replace(more::text, to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD'), '2020-01-01')::json`)
	h.ingest(jobOf("A"))
	if l := h.ledger(); l.IsSorted() {
		t.Errorf("the queue is still sorted by type")
	}
}

func TestARollingDeployThatAddsATypeSendsItToNewWorkers(t *testing.T) {
	h := newFixture(t)
	h.beats(beatOf("old", 10, 0, "A"))
	h.beats(beatOf("new", 4, 1, "A", "B"))
	h.wantPartitions(h.ingest(typedJobs("B", 6)...).Runs, map[int16]int{1: 4})
	h.wantPartitions(h.ingest(typedJobs("A", 3)...).Runs, map[int16]int{0: 3})

	// A worker that runs any type is a new one, too.
	anyType := beatOf("any", 2, 2)
	anyType.OnlyTypes = false
	h.wantPartitions(h.beats(anyType).Runs, map[int16]int{2: 2})
}

// A heartbeat of many attempts comes in parts. Only the first names the types.
func TestALaterPartOfAHeartbeatKeepsTheTypes(t *testing.T) {
	h := newFixture(t)
	h.beats(beatOf("old", 10, 0, "A"), beatOf("new", 4, 1, "A", "B"))
	part := beatOf("old", 10, 0)
	part.Part = 1
	h.beats(part)
	h.beats(beatOf("old", 10, 0, "A"), part)
	h.wantPartitions(h.ingest(typedJobs("B", 6)...).Runs, map[int16]int{1: 4})
}

// The best worker of a queue with a limit is not the only one that counts.
func TestALimitOfAQueueDoesNotKeepAJobFromTheWorkerThatRunsIt(t *testing.T) {
	h := newFixture(t)
	h.control(atMost("queue", "default", 1, 1))
	h.beats(beatOf("old", 10, 0, "A"), beatOf("new", 2, 1, "A", "B"))
	h.wantPartitions(h.ingest(typedJobs("B", 3)...).Runs, map[int16]int{1: 1})
}

func TestAJobWithoutAWorkerForItsTypeFailsAtLast(t *testing.T) {
	h := openFixture(t, Config{Lease: 15 * time.Second, MaxLost: 3, NoWorkerTimeout: time.Hour}, "")
	h.beats(beatOf("old", 10, 0, "A"))
	early, late := jobOf("B"), jobOf("B")
	h.ingest(early)
	h.settle(unknownType(early, 1))
	h.tick()
	h.ingest(late)
	h.askAgain(0)
	h.exec(`UPDATE unserved SET since = since - interval '2 h'`)
	h.exec(`UPDATE jobs SET updated_at = updated_at - interval '2 h', rank = rank - interval '2 h' WHERE job_id = $1`, early.JobID)
	h.askAgain(0)
	status := h.wantStatus(early, jobstate.Failed)
	if status.LastError == nil || status.LastError.ErrorCode != string(apierror.NoWorker) {
		t.Errorf("last error %+v", status.LastError)
	}
	h.wantStatus(late, jobstate.Pending) // it has not waited for an hour

	// It can be retried by hand.
	h.order(early, 1, jobevent.CommandRetry)
	h.wantStatus(early, jobstate.Pending)
	h.wantPartitions(h.beats(beatOf("new", 10, 1, "B")).Runs, map[int16]int{1: 2})
}

func TestAJobThatWasBlockedWaitsForAWorkerFromThenOn(t *testing.T) {
	h := openFixture(t, Config{Lease: 15 * time.Second, MaxLost: 3, NoWorkerTimeout: time.Hour}, "")
	h.beats(beatOf("old", 10, 0, "A"))
	early := jobOf("B")
	h.ingest(early)
	h.settle(unknownType(early, 1))
	h.tick()
	first, after, turn, next := jobOf("A"), jobOf("B"), jobOf("A"), jobOf("B")
	after.After = []uuid.UUID{first.JobID}
	turn.OrderingKey, turn.OrderNumber, next.OrderingKey, next.OrderNumber = "k", 1, "k", 2
	h.ingest(first, after, turn, next)
	h.askAgain(0)
	h.exec(`UPDATE unserved SET since = since - interval '2 h'`)
	h.exec(`UPDATE jobs SET updated_at = updated_at - interval '2 h', rank = rank - interval '2 h'`)
	h.settle(completed(first, 1), completed(turn, 1))
	h.askAgain(0)
	h.wantStatus(early, jobstate.Failed)
	h.wantStatus(after, jobstate.Pending)
	h.wantStatus(next, jobstate.Pending)
	h.exec(`UPDATE jobs SET updated_at = updated_at - interval '2 h'`)
	h.askAgain(0)
	h.wantStatus(after, jobstate.Failed)
	h.wantStatus(next, jobstate.Failed)
}

// Workers that an autoscaler stops and starts are woken by jobs of types that the last workers did not run.
func TestAQueueWithoutAWorkerLetsScarceTypesOut(t *testing.T) {
	h := newFixture(t)
	h.beats(beatOf("old", 10, 0, "A"))
	first := jobOf("B")
	h.ingest(first)
	h.settle(unknownType(first, 1))
	h.tick()
	stopping := beatOf("old", 10, 0, "A")
	stopping.Stopping = true
	if runs := h.beats(stopping).Runs; len(runs) != 1 {
		t.Errorf("%d went out", len(runs))
	}
}
