package schedulerdb

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/retrypolicy"
)

// A job waits for its dependencies and its turn whatever happens to them, and no job waits for ever.
func TestConcurrentCopiesKeepJobsInOrder(t *testing.T) {
	h := openFixture(t, Config{Lease: 300 * time.Millisecond, MaxLost: 3}, patient+"pool_max_conns=12")
	w := &world{fixture: h, jobs: map[uuid.UUID]*stressJob{}, commandsLeft: 60}
	last := map[string]*uuid.UUID{}
	for i := range 200 {
		job := newJob()
		job.MaxRetryCount, job.Priority = rand.IntN(4), rand.IntN(10)
		job.RetryPolicy = &retrypolicy.Policy{Type: retrypolicy.Fixed, DelayMs: rand.Int64N(30)}
		if rand.IntN(2) == 0 {
			key := string(rune('a' + rand.IntN(8)))
			job.OrderingKey, job.OrderNumber, job.OrderAfter = key, int64(i+1), last[key]
			last[key] = &job.JobID
		}
		for i > 0 && rand.IntN(2) == 0 && len(job.After) < 3 {
			job.After, job.RunAnyway = append(job.After, w.ids[rand.IntN(i)]), rand.IntN(2) == 0
		}
		if job.OrderingKey == "" && len(job.After) == 0 {
			w.acceptAlike(job, 1+rand.IntN(8))
		} else {
			w.accept(job)
		}
	}
	w.run()
	w.check()
	for _, j := range w.jobs {
		w.checkWaited(j)
	}
	h.wantNothingLeft()
}

// mayStart asserts that no other job of the ordering key runs.
func (w *world) mayStart(j *stressJob) {
	if j.created.OrderingKey == "" {
		return
	}
	for _, other := range w.jobs {
		n := len(other.attempts)
		if other != j && other.created.OrderingKey == j.created.OrderingKey && n > 0 &&
			!other.attempts[n-1].ended() && !other.attempts[n-1].waiting {
			w.Errorf("job %s starts while %s of its key runs", j.created.JobID, other.created.JobID)
		}
	}
}

// checkWaited compares a job's history with those of the jobs that had to end first. It skips jobs that got a command:
// a retry does not wait.
func (w *world) checkWaited(j *stressJob) {
	if j.command.Number > 0 {
		return
	}
	var began *time.Time
	for _, move := range j.known.History {
		if move.To == string(jobstate.Queued) {
			began = &move.At
			break
		}
	}
	mustFail := false
	for _, before := range w.jobs {
		if before.command.Number > 0 || !isAfter(j.created, before.created) {
			continue
		}
		if began != nil && (before.known.FinishedAt == nil || began.Before(*before.known.FinishedAt)) {
			w.Errorf("job %s began at %s, %s before it ended at %s", j.created.JobID, began, before.created.JobID, before.known.FinishedAt)
		}
		if slices.Contains(j.created.After, before.created.JobID) && before.known.Status != "COMPLETED" && !j.created.RunAnyway {
			mustFail = true
		}
	}
	if mustFail && (j.known.Status != "CANCELLED" || j.known.LastError == nil || j.known.LastError.ErrorCode != "SCHEDULER.DEPENDENCY_FAILED") {
		w.Errorf("a job whose dependency failed ended %s, %+v", j.known.Status, j.known.LastError)
	}
}

func isAfter(job, before jobevent.Created) bool {
	return job.OrderingKey != "" && job.OrderingKey == before.OrderingKey && before.OrderNumber < job.OrderNumber ||
		slices.Contains(job.After, before.JobID)
}
