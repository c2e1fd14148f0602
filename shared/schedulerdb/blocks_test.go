package schedulerdb

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/dispatch"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/emit"
)

// roomy returns a fixture whose worker has room for all jobs during the whole test.
func roomy(t *testing.T) fixture {
	h := newFixture(t)
	h.heartbeat("w", 100_000, []int32{0, 1, 2})
	h.exec("UPDATE workers SET seen_at = now() + interval '1 h'")
	return h
}

func after(jobs ...jobevent.Created) jobevent.Created {
	job := newJob()
	for _, before := range jobs {
		job.After = append(job.After, before.JobID)
	}
	return job
}

// orderedJobs returns jobs of one ordering key, numbered as by the API while none of them has ended.
func orderedJobs(key string, n int) []jobevent.Created {
	jobs := newJobs(n)
	for i := range jobs {
		jobs[i].OrderingKey, jobs[i].OrderNumber = key, int64(10+i)
		if i > 0 {
			jobs[i].OrderAfter = &jobs[i-1].JobID
		}
	}
	return jobs
}

// wantRuns asserts that attempts of exactly these jobs go out.
func (h fixture) wantRuns(effects emit.Effects, jobs ...jobevent.Created) {
	h.Helper()
	var want, got []string
	for _, job := range jobs {
		want = append(want, job.JobID.String())
	}
	for _, run := range effects.Runs {
		got = append(got, run.JobID.String())
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		h.Fatalf("attempts of %v go out, want %v", got, want)
	}
}

// wantNothingLeft asserts that no job waits for another, in the rows and in the ledger.
func (h fixture) wantNothingLeft() {
	h.Helper()
	var dependencies, gaps, blocked int
	err := h.pool.QueryRow(h.Context(), `SELECT (SELECT count(*) FROM dependencies), (SELECT count(*) FROM order_gaps),
		(SELECT count(*) FROM jobs WHERE blocked_by IS NOT NULL OR waits_for IS NOT NULL)`).Scan(&dependencies, &gaps, &blocked)
	if err != nil || dependencies+gaps+blocked > 0 {
		h.Errorf("%d dependencies, %d gaps and %d blocked jobs are left, %v", dependencies, gaps, blocked, err)
	}
	var more string
	if err := h.pool.QueryRow(h.Context(), "SELECT (more::jsonb - 'controls' - 'entered')::text FROM dispatch_state").Scan(&more); err != nil || more != "{}" {
		h.Errorf("the ledger has %s, %v", more, err)
	}
}

func TestAJobRunsWhenItsDependenciesHaveCompleted(t *testing.T) {
	h := roomy(t)
	a, b := newJob(), newJob()
	c := after(a, b)
	h.ingest(a)
	h.wantRuns(h.ingest(c)) // b has not arrived yet
	h.wantRuns(h.ingest(b), b)
	h.wantRuns(h.settle(completed(a, 1)))
	h.wantRuns(h.settle(completed(a, 1)))
	h.wantStatus(c, jobstate.Pending)
	h.wantRuns(h.settle(completed(b, 1)), c)
	h.wantRuns(h.settle(completed(c, 1)))
	late := after(a, c)
	h.wantRuns(h.ingest(late), late)
	h.wantNothingLeft()
}

func TestAJobIsCancelledWhenADependencyDoesNotComplete(t *testing.T) {
	h := roomy(t)
	a := newJob()
	b, anyway := after(a), after(a)
	anyway.RunAnyway = true
	c := after(b)
	h.ingest(c, b, anyway, a)
	failed := ended(a, 1, jobstate.KindFailed)
	failed.Retryable = false
	effects := h.settle(failed)
	h.wantRuns(effects, anyway)
	if len(effects.Jobs) != 3 {
		t.Errorf("%d jobs are published, want three that have ended", len(effects.Jobs))
	}
	for _, job := range []jobevent.Created{b, c} {
		s := h.wantStatus(job, jobstate.Cancelled)
		if s.LastError == nil || s.LastError.ErrorCode != "SCHEDULER.DEPENDENCY_FAILED" || s.FinishedAt == nil {
			t.Errorf("%+v", s)
		}
	}
	late := after(c)
	if effects := h.ingest(late); len(effects.Runs) != 0 || len(effects.Jobs) != 1 || effects.Jobs[0].Status != "CANCELLED" {
		t.Errorf("a job after one that was cancelled returned %+v", effects)
	}
	h.settle(completed(anyway, 1))
	h.wantNothingLeft()
}

func TestAnUnusableJobCountsAsAFailedDependency(t *testing.T) {
	h := roomy(t)
	id := uuid.Must(uuid.NewV7())
	waits := after(jobevent.Created{JobID: id})
	keyed := orderedJobs("k", 1)[0]
	keyed.OrderAfter = &id
	h.wantRuns(h.ingest(waits, keyed))
	effects, err := h.IngestUnusable(t.Context(), jobevent.Created{JobID: id, TraceID: uuid.New()}, "bad")
	h.wantRuns(h.must(effects, err), keyed)
	h.wantStatus(waits, jobstate.Cancelled)
	h.settle(completed(keyed, 1))
	h.wantNothingLeft()
}

func TestACancelledJobWaitsForNoJobAndReleasesItsDependents(t *testing.T) {
	h := roomy(t)
	a := newJob()
	b := after(a)
	c := after(b)
	c.RunAnyway = true
	h.ingest(a, b, c)
	h.wantRuns(h.order(b, 1, "cancel"), c)
	h.wantStatus(b, jobstate.Cancelled)
	h.wantRuns(h.order(b, 2, "retry"), b) // a retry does not wait for dependencies
	h.settle(completed(a, 1))
	h.settle(completed(b, 1), completed(c, 1))
	h.wantNothingLeft()
}

func TestADelayedJobWaitsForItsTimeAndItsDependencies(t *testing.T) {
	h := roomy(t)
	a := newJob()
	b := after(a)
	runAt := time.Now().Add(time.Hour)
	b.RunAt = &runAt
	c := after(a)
	c.RunAt = &runAt
	h.ingest(a, b, c)
	h.tamper("UPDATE jobs SET due_at = now() WHERE job_id = $1", b.JobID)
	h.wantRuns(h.due())
	h.wantStatus(b, jobstate.Pending)
	h.wantRuns(h.settle(completed(a, 1)), b)
	h.wantStatus(c, jobstate.Scheduled)
	h.tamper("UPDATE jobs SET due_at = now() WHERE job_id = $1", c.JobID)
	h.wantRuns(h.due(), c)
	h.settle(completed(b, 1), completed(c, 1))
	h.wantNothingLeft()
}

func TestTenThousandJobsDependOnOneAndOneOnTenThousand(t *testing.T) {
	h := roomy(t)
	const n = 10_000
	first := newJob()
	middle := make([]jobevent.Created, n)
	for i := range middle {
		middle[i] = after(first)
	}
	last := after(middle...)
	h.ingest(first)
	h.ingest(last)
	for part := range slices.Chunk(middle, 500) {
		h.ingest(part...)
	}
	out := h.settle(completed(first, 1)).Runs
	for next := time.Duration(0); next <= dispatch.ReleasePause; {
		var effects emit.Effects
		var err error
		if effects, next, err = h.Due(t.Context(), time.Second); err != nil {
			t.Fatal(err)
		}
		out = append(out, effects.Runs...)
	}
	if len(out) != n {
		t.Fatalf("%d of %d went out", len(out), n)
	}
	for part := range slices.Chunk(middle, 500) {
		outcomes := make([]Outcome, len(part))
		for i, job := range part {
			outcomes[i] = completed(job, 1)
		}
		out = h.settle(outcomes...).Runs
	}
	if len(out) != 1 || out[0].JobID != last.JobID {
		t.Fatalf("after the last one %d go out", len(out))
	}
	h.settle(completed(last, 1))
	h.wantNothingLeft()
}

func TestJobsOfOneKeyRunOneAfterAnother(t *testing.T) {
	h := roomy(t)
	jobs, others := orderedJobs("k", 4), orderedJobs("other", 2)
	h.wantRuns(h.ingest(jobs[0], jobs[1], others[0], others[1]), jobs[0], others[0])
	h.wantRuns(h.ingest(jobs[3])) // the third has not arrived yet
	h.wantRuns(h.settle(ended(jobs[0], 1, jobstate.KindFailed)))
	h.wantStatus(jobs[0], jobstate.Retrying)
	h.wantRuns(h.settle(completed(others[0], 1)), others[1])
	h.tamper("UPDATE jobs SET due_at = now() WHERE status = 'RETRYING'")
	h.wantRuns(h.due(), jobs[0])
	h.wantRuns(h.settle(ended(jobs[0], 2, jobstate.KindLost)), jobs[0])
	h.wantRuns(h.settle(completed(jobs[0], 3)), jobs[1])
	h.wantRuns(h.settle(completed(jobs[1], 1)))
	h.wantRuns(h.ingest(jobs[2]), jobs[2])
	h.wantRuns(h.settle(completed(jobs[2], 1)), jobs[3])
	h.wantRuns(h.settle(completed(jobs[3], 1), completed(others[1], 1)))
	h.wantNothingLeft()
}

func TestTheSameOrderingKeyOfAnotherOwnerIsAnotherKey(t *testing.T) {
	h := roomy(t)
	mine, theirs := orderedJobs("k", 2), orderedJobs("k", 2)
	for i := range theirs {
		theirs[i].OwnerID = "acme"
	}
	h.wantRuns(h.ingest(append(mine, theirs...)...), mine[0], theirs[0])
	h.wantRuns(h.settle(completed(theirs[0], 1)), theirs[1])
}

func TestACancelFreesTheKeyAndARetryWaitsForItsTurn(t *testing.T) {
	h := roomy(t)
	jobs := orderedJobs("k", 4)
	h.ingest(jobs...)
	h.wantRuns(h.order(jobs[1], 1, "cancel")) // it waits for its turn: the first still has it
	h.wantRuns(h.order(jobs[0], 1, "cancel"))
	h.wantRuns(h.settle(ended(jobs[0], 1, jobstate.KindCancelled)), jobs[2])
	h.wantRuns(h.order(jobs[0], 2, "retry"))
	h.wantStatus(jobs[0], jobstate.Pending)
	h.wantRuns(h.settle(completed(jobs[2], 1)), jobs[0])
	h.wantRuns(h.settle(completed(jobs[0], 2)), jobs[3])
	h.wantRuns(h.settle(completed(jobs[3], 1)))
	h.wantRuns(h.order(jobs[1], 2, "retry"), jobs[1])
	h.settle(completed(jobs[1], 1))
	h.wantNothingLeft()
}

func TestOrderedJobsMayArriveInAnyOrder(t *testing.T) {
	h := roomy(t)
	jobs := orderedJobs("k", 30)
	for i := range jobs[1:] {
		h.wantRuns(h.ingest(jobs[len(jobs)-1-i]))
	}
	h.wantRuns(h.ingest(jobs[0]), jobs[0])
	for i := range jobs[1:] {
		h.wantRuns(h.settle(completed(jobs[i], 1)), jobs[i+1])
	}
	h.settle(completed(jobs[29], 1))
	h.wantNothingLeft()
}

func TestTheWatchdogReleasesJobsThatAFunctionLeftBlocked(t *testing.T) {
	h := roomy(t)
	a, keyed := newJob(), orderedJobs("k", 2)
	b := after(a)
	h.ingest(a, b, keyed[0], keyed[1])
	// As if the function that settled them had died after a commit that released no job.
	h.exec("UPDATE jobs SET status = 'COMPLETED', finished_at = now(), output = '1' WHERE job_id = any ($1)",
		[]uuid.UUID{a.JobID, keyed[0].JobID})
	h.wantRuns(h.askAgain(0), b, keyed[1])
}

// Some of the jobs that wait for a job may have ended or may be missing.
func TestDependenciesOfEndedAndMissingJobsAreDropped(t *testing.T) {
	h := roomy(t)
	a := newJob()
	b, gone, anyway := after(a), after(a), after(a)
	anyway.RunAnyway = true
	h.ingest(a, b, gone, anyway)
	h.order(gone, 1, "cancel")
	h.exec("DELETE FROM jobs WHERE job_id = $1", gone.JobID)
	h.wantRuns(h.settle(ended(a, 1, jobstate.KindCancelled)), anyway)
	h.wantStatus(b, jobstate.Cancelled)
	h.settle(completed(anyway, 1))
	h.wantNothingLeft()
}

// A transaction that releases jobs skips locked rows. The clock releases them soon afterwards.
func TestALockedJobIsReleasedLater(t *testing.T) {
	h := roomy(t)
	a := newJob()
	b := after(a)
	h.ingest(a, b)
	holder := h.begin()
	if _, err := holder.Exec(t.Context(), "SELECT FROM jobs WHERE job_id = $1 FOR UPDATE", b.JobID); err != nil {
		t.Fatal(err)
	}
	h.wantRuns(h.settle(completed(a, 1)))
	if _, next, err := h.Due(t.Context(), time.Minute); err != nil || next > dispatch.ReleasePause {
		t.Errorf("the clock sleeps for %s, %v", next, err)
	}
	if err := holder.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.wantRuns(h.due(), b)
	h.settle(completed(b, 1))
	h.wantNothingLeft()
}

func TestARetriedJobDoesNotReleaseItsDependents(t *testing.T) {
	h := roomy(t)
	a := newJob()
	b := after(a)
	h.ingest(a, b)
	holder := h.begin()
	if _, err := holder.Exec(t.Context(), "SELECT FROM jobs WHERE job_id = $1 FOR UPDATE", b.JobID); err != nil {
		t.Fatal(err)
	}
	failed := ended(a, 1, jobstate.KindFailed)
	failed.Retryable = false
	h.settle(failed)
	h.wantRuns(h.order(a, 1, "retry"), a)
	if err := holder.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, next, err := h.Due(t.Context(), time.Minute); err != nil || next < time.Second {
		t.Errorf("the clock sleeps for %s, %v", next, err)
	}
	h.wantRuns(h.settle(completed(a, 2)), b)
}

func TestADelayedJobKeepsTheTurn(t *testing.T) {
	h := roomy(t)
	jobs := orderedJobs("k", 2)
	runAt := time.Now().Add(time.Hour)
	jobs[0].RunAt = &runAt
	h.wantRuns(h.ingest(jobs...))
	h.tamper("UPDATE jobs SET due_at = now() WHERE status = 'SCHEDULED'")
	h.wantRuns(h.due(), jobs[0])
	h.wantRuns(h.settle(completed(jobs[0], 1)), jobs[1])
}

// The unusable job arrives before its predecessor: jobs behind it wait for that predecessor all the same.
func TestJobsBehindAnUnusableJobWaitForTheJobsBeforeIt(t *testing.T) {
	h := roomy(t)
	jobs := orderedJobs("k", 3)
	first, unusable, last := jobs[0], jobs[1], jobs[2]
	h.wantRuns(h.ingest(last))
	effects, err := h.IngestUnusable(t.Context(), unusable, "no good")
	h.wantRuns(h.must(effects, err))
	h.wantRuns(h.ingest(first), first)
	h.wantRuns(h.settle(completed(first, 1)), last)
	h.settle(completed(last, 1))
	h.wantNothingLeft()
}
