package schedulerdb

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/emit"
	"github.com/jobweaver/jobweaver/shared/testwait"
)

// awaitLockWaits waits until so many sessions wait for a lock.
func (h fixture) awaitLockWaits(n int) {
	h.Helper()
	testwait.Until(h, "sessions wait for a lock", func() bool {
		return h.count("pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'") >= n
	})
}

func commandFor(job jobevent.Created, command string) jobevent.Command {
	return jobevent.Command{JobID: job.JobID, Number: 1, Command: command}
}

func TestACommandThatComesBeforeItsJobIsAppliedBeforeTheJobStarts(t *testing.T) {
	h := roomy(t)
	job, raised, other := newJob(), newJob(), newJob()
	child := after(job)
	change := commandFor(raised, jobevent.CommandChange)
	nine := priorityOf(9)
	change.Change = &nine
	effects := h.must(h.Command(t.Context(), []jobevent.Command{commandFor(job, jobevent.CommandCancel), change}))
	h.must(h.Command(t.Context(), []jobevent.Command{commandFor(job, jobevent.CommandCancel)})) // again
	if len(effects.Jobs)+len(effects.Runs) > 0 {
		t.Errorf("before the job, %+v is published", effects)
	}
	effects = h.ingest(job, raised, other, child)
	h.wantRuns(effects, raised, other)
	if got := h.wantStatus(job, jobstate.Cancelled); got.LastCommand == nil || !got.LastCommand.Applied || got.Attempt != 0 {
		t.Errorf("the job shows %+v", got)
	}
	if got := h.request(raised); !strings.Contains(got.spec, `"priority":9,`) {
		t.Errorf("the changed job has %+v", got)
	}
	h.wantStatus(child, jobstate.Cancelled)
	h.settle(completed(raised, 1), completed(other, 1))
	h.ingest(job) // once more
	if n := h.count("early_commands"); n > 0 {
		t.Errorf("%d commands are left", n)
	}
	h.wantNothingLeft()
}

// Whether the job or its cancel comes first, or both at once: the cancel is answered by one of them.
func TestACancelThatRacesWithItsJobIsApplied(t *testing.T) {
	h := openFixture(t, Config{Lease: time.Minute, MaxLost: 3}, patient+"pool_max_conns=9")
	for range 30 {
		jobs := newJobs(4)
		var both sync.WaitGroup
		for i := range jobs {
			both.Go(func() { h.must(h.Ingest(t.Context(), jobs[i:i+1])) })
			both.Go(func() {
				h.must(h.Command(t.Context(), []jobevent.Command{commandFor(jobs[i], jobevent.CommandCancel)}))
			})
		}
		both.Wait()
		if n := h.count("jobs WHERE command_seq = 0"); n > 0 {
			t.Fatalf("%d cancels are lost", n)
		}
	}
}

// A cancel that meets the completion of its job is answered at once: that it came too late, or with the end.
func TestACommandThatMeetsTheCompletionOfItsJobIsAnsweredAtOnce(t *testing.T) {
	h := openFixture(t, Config{Lease: time.Minute, MaxLost: 3}, patient+"pool_max_conns=9")
	jobs := newJobs(1)
	h.ingest(jobs...)
	published := make(chan emit.Effects, 2)
	tx := h.begin() // holds up the completion and, behind it, the cancel
	if _, err := tx.Exec(t.Context(), "SELECT FROM jobs WHERE job_id = $1 FOR UPDATE", jobs[0].JobID); err != nil {
		t.Fatal(err)
	}
	go func() { published <- h.must(h.Settle(t.Context(), []Outcome{completed(jobs[0], 1)})) }()
	h.awaitLockWaits(1)
	go func() {
		published <- h.must(h.Command(t.Context(), []jobevent.Command{commandFor(jobs[0], jobevent.CommandCancel)}))
	}()
	h.awaitLockWaits(2)
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-published
	<-published
	if got := h.status(jobs[0]); got.Status != string(jobstate.Completed) || got.LastCommand == nil {
		t.Errorf("the job is %s, its last command %+v", got.Status, got.LastCommand)
	}
}
