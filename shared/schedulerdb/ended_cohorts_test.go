package schedulerdb

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/pgtest"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/emit"
)

// wantEndedTogether asserts how many rows of ended_cohorts there are, and how many jobs they have.
func (h fixture) wantEndedTogether(rows, jobs int) {
	h.Helper()
	if r, j := h.count("ended_cohorts"), h.count("members WHERE status = 'COMPLETED'"); r != rows || j != jobs {
		h.Fatalf("%d rows have %d completed jobs, want %d and %d", r, j, rows, jobs)
	}
}

// endedTogether returns jobs that completed together, long ago if days is not zero.
func (h fixture) endedTogether(n, days int) []jobevent.Created {
	h.Helper()
	jobs := newJobs(n)
	at := firstIDAt(time.Now().Add(-time.Duration(days) * day))
	for i := range jobs {
		if days > 0 && i%jobevent.BlockSize == 0 {
			copy(jobs[i].JobID[:6], at[:6])
		} else if days > 0 {
			jobs[i].JobID = jobevent.InBlock(jobs[i-1].JobID, i%jobevent.BlockSize)
		}
	}
	h.heartbeat("w1", n, allPartitions)
	if out := h.ingest(jobs...).Runs; len(out) != n || h.count("members WHERE status = 'QUEUED'") != n {
		h.Fatalf("%d are out", len(out))
	}
	before, jobsBefore := h.count("ended_cohorts"), h.count("members WHERE status = 'COMPLETED'")
	outcomes := make([]Outcome, n)
	for i, job := range jobs {
		outcomes[i] = completed(job, 1)
	}
	h.settle(outcomes...)
	if h.wantEndedTogether(before+(n+jobevent.BlockSize-1)/jobevent.BlockSize, jobsBefore+n); days > 0 {
		h.exec("UPDATE ended_cohorts SET ended_at = ended_at - $1 * interval '1 d'", days)
	}
	return jobs
}

func TestJobsThatCompleteTogetherShareARow(t *testing.T) {
	h := newFixture(t)
	h.heartbeat("w1", 100, allPartitions)
	jobs := newJobs(70)
	h.ingest(jobs...)
	start := time.Date(2026, 1, 2, 3, 4, 5, 120_000_300, time.FixedZone("", 3600))
	var outcomes []Outcome
	for i, job := range jobs {
		o := completed(job, 1)
		o.WorkerID, o.RanBy = []string{"w1", "w2"}[i%2], []string{"", "pull \"1\""}[i%2]
		if finish := start.Add(time.Duration(i) * time.Second); i > 2 {
			o.StartedAt, o.FinishedAt = &start, &finish
		}
		if i%10 == 5 {
			o.Output = json.RawMessage(fmt.Sprintf(`{"n": %d, "ü": "\u2028\""}`, i))
		}
		outcomes = append(outcomes, o)
	}
	outcomes[69].StartedAt = nil
	slices.Reverse(outcomes)
	first := map[string]string{}
	for _, e := range h.events(h.settle(slices.Clone(outcomes)...)) {
		first[e.Subject()] = e.ID() + string(e.Data())
	}
	if h.wantEndedTogether(4, 70); len(first) != 70 || h.count("jobs")+h.count("ended")+h.count("cohorts")+h.count("dispatched") > 0 {
		t.Fatalf("%d events", len(first))
	}
	h.wantEmpty()
	// What was delivered before is answered with the same event.
	again, repeated := h.ingest(jobs...), h.settle(outcomes...)
	var reported []jobevent.Item
	for _, job := range jobs {
		reported = append(reported, h.report(job, 1)...)
	}
	for name, events := range map[string][]jobevent.Item{"ingest": h.events(again), "outcome": h.events(repeated), "report": reported} {
		if len(events) != 70 {
			t.Errorf("%s returned %d events", name, len(events))
		}
		for _, e := range events {
			if got := e.ID() + string(e.Data()); got != first[e.Subject()] {
				t.Fatalf("%s returned\n%s, want\n%s", name, got, first[e.Subject()])
			}
		}
	}
	if len(again.Runs)+len(repeated.Runs)+len(h.report(jobs[3], 2)) > 0 {
		t.Error("a completed job went out again, or is not known")
	}
	if got := h.wantStatus(jobs[65], jobstate.Completed); string(got.Output) != `{"n":65,"ü":"\u2028\""}` || got.Version != 2 ||
		got.History[1].WorkerID != `pull "1"` || !got.History[1].FinishedAt.Equal(start.Add(65*time.Second).Truncate(time.Microsecond)) {
		t.Errorf("%+v", got)
	}
	h.wantEndedTogether(4, 70)
}

func TestACommandMovesAJobThatCompletedInACohortBack(t *testing.T) {
	h := newFixture(t)
	jobs := h.endedTogether(70, 0)
	before := h.status(jobs[5])
	h.order(jobs[5], 1, jobevent.CommandCancel) // too late
	if got := h.wantStatus(jobs[5], jobstate.Completed); got.LastCommand.Applied || got.Version != before.Version+1 ||
		len(got.History) != len(before.History)+1 || !got.FinishedAt.Equal(*before.FinishedAt) {
		t.Errorf("%+v after %+v", got, before)
	}
	h.wantIn(jobs[5], 1, 0)
	h.wantIn(jobs[7], 0, 1)
	h.wantEndedTogether(1, 6)
	h.order(jobs[5], 2, jobevent.CommandDelete)
	h.order(jobs[6], 1, jobevent.CommandDelete)
	if a, b := h.deletedVersion(jobs[5]), h.deletedVersion(jobs[6]); a != 4 || b != 3 {
		t.Errorf("versions %d and %d", a, b)
	}
	h.order(jobs[64], 1, jobevent.CommandDelete)
	h.wantEndedTogether(0, 0)
	h.wantStatus(jobs[7], jobstate.Completed)
	h.wantStatus(jobs[69], jobstate.Completed)
	if drift := h.drift(); !drift.Empty() {
		t.Errorf("drift %+v", drift)
	}
}

// Jobs that wait for one that is in a cohort find its end and its output there, whichever comes first.
func TestJobsWaitForThoseThatCompleteInCohorts(t *testing.T) {
	h := newFixture(t)
	h.heartbeat("w1", 100, allPartitions)
	jobs := newJobs(20)
	h.ingest(jobs...)
	early := using(jobs[3], jobs[4])
	if runs := h.ingest(early).Runs; len(runs) > 0 {
		t.Fatal("it starts before the others have ended")
	}
	var outcomes []Outcome
	for i, job := range jobs {
		outcomes = append(outcomes, completedWith(emit.RunOrder{JobID: job.JobID, Attempt: 1}, fmt.Sprint(i)))
	}
	started := h.settle(outcomes...).Runs
	h.wantEndedTogether(1, 20)
	late := using(jobs[4], jobs[3])
	for want, parents := range map[string][]jobevent.Parent{
		"3, 4": h.parents(started, early), "4, 3": h.parents(h.ingest(late).Runs, late),
	} {
		if len(parents) != 2 || fmt.Sprintf("%s, %s", parents[0].Output, parents[1].Output) != want || parents[0].Attempt != 1 {
			t.Errorf("want the outputs %s, got %+v", want, parents)
		}
	}
	h.order(jobs[3], 1, jobevent.CommandDelete)
	later := using(jobs[3], jobs[4])
	if parents := h.parents(h.ingest(later).Runs, later); string(parents[0].Output) != "null" || string(parents[1].Output) != "4" {
		t.Errorf("%+v", parents)
	}
	h.wantNothingLeft()
}

func TestJobsThatCompletedInCohortsAreRetired(t *testing.T) {
	h := newFixture(t)
	young := h.endedTogether(140, 0)
	h.exec("CREATE TABLE kept AS SELECT * FROM ended_cohorts; DELETE FROM ended_cohorts")
	old := h.endedTogether(200, 9)
	h.exec("INSERT INTO ended_cohorts SELECT * FROM kept")
	h.order(old[70], 1, jobevent.CommandCancel) // moves it to jobs
	h.exec("UPDATE jobs SET finished_at = now()")
	h.order(old[199], 1, jobevent.CommandDelete)
	published := map[uuid.UUID]int{}
	for range 2 {
		h.walk(Retention{Completed: 7 * day, Forget: 8 * day}, 1e6, published)
	}
	for i, job := range old {
		if want := i != 70 && i != 199; (published[job.JobID] == 1) != want || len(published) != 198 {
			t.Fatalf("job %d of %d was published %d times", i, len(published), published[job.JobID])
		}
	}
	if h.wantEndedTogether(3, 140); h.count("ended_cohorts") != 3 || h.count("ended WHERE deleted_at IS NOT NULL AND version = 3") != 198 {
		t.Errorf("%d rows, %d tombstones", h.count("ended_cohorts"), h.count("ended"))
	}
	if got := h.deletedVersion(old[0]); got != 3 {
		t.Errorf("version %d", got)
	}
	if runs := h.ingest(old...).Runs; len(runs) > 0 { // delivered again
		t.Errorf("%d deleted jobs start again", len(runs))
	}
	h.exec("UPDATE ended SET deleted_at = deleted_at - interval '9 d'")
	if h.walk(Retention{Completed: 7 * day, Forget: 8 * day}, 1e6, published); h.count("ended") > 0 {
		t.Errorf("%d tombstones are left", h.count("ended"))
	}
	h.wantStatus(young[7], jobstate.Completed)
}

// Pages end, wherever the rows of a block are, and miss none.
func TestPagesOfCohortsThatEndedMissNone(t *testing.T) {
	h := newFixture(t)
	h.fillEndedCohorts(300, "10 d")
	h.exec(`INSERT INTO ended_cohorts SELECT (jsonb_populate_record(e, jsonb_build_object('places', 10::bigint << (n * 4)))).*
		FROM (SELECT e FROM ended_cohorts e ORDER BY block_id LIMIT 1 OFFSET 150) one, generate_series(0, 7) n`)
	h.fillOld(500, "30 m")
	for _, keep := range []Retention{{Forget: 8 * day}, {Completed: 20 * day, Forget: 8 * day}} {
		published := map[uuid.UUID]int{}
		if h.walk(keep, 1000, published); len(published) > 0 || h.count("ended_cohorts") != 308 {
			t.Fatalf("%d were deleted too early", len(published))
		}
	}
	published := map[uuid.UUID]int{}
	if h.walk(Retention{Completed: 7 * day, Forget: 8 * day}, 1000, published); h.count("ended_cohorts") > 0 {
		t.Errorf("%d rows are left", h.count("ended_cohorts"))
	}
}

// Commands and retention take jobs from the same rows at once: each job is in one place, and is deleted once.
func TestCommandsMeetRetention(t *testing.T) {
	h := openFixture(t, Config{Lease: time.Hour, MaxLost: 3}, patient+"pool_max_conns=9")
	jobs := h.endedTogether(640, 9)
	deleted := make(chan uuid.UUID, len(jobs)*2)
	var group sync.WaitGroup
	note := func(effects emit.Effects) {
		for _, job := range effects.Jobs {
			if job.DeletedAt != nil && job.Version == 3 {
				deleted <- job.JobID
			}
		}
	}
	for range 3 {
		order := rand.Perm(len(jobs))[:150]
		group.Go(func() {
			for some := range slices.Chunk(order, 5) {
				var commands []jobevent.Command
				for _, i := range some {
					commands = append(commands, jobevent.Command{JobID: jobs[i].JobID, Number: 1, Command: jobevent.CommandDelete, By: "tester"})
				}
				note(h.must(h.Command(t.Context(), commands)))
			}
		})
	}
	group.Go(func() {
		for after, more := (uuid.UUID{}), true; more; {
			effects, done, err := h.Retire(t.Context(), aMonth, after, 20)
			note(h.must(effects, err))
			after, more = done.Last, done.More
		}
	})
	group.Wait()
	published := map[uuid.UUID]int{}
	h.walk(aMonth, 1e6, published)
	close(deleted)
	for id := range deleted {
		published[id]++
	}
	if len(published) != len(jobs) {
		t.Errorf("%d of %d were published as deleted", len(published), len(jobs))
	}
	if n := h.count("all_jobs WHERE deleted_at IS NOT NULL AND version = 3"); n != len(jobs) || h.count("all_jobs") != n || h.count("ended_cohorts") > 0 {
		t.Errorf("%d tombstones of %d rows", n, h.count("all_jobs"))
	}
}

// Retiring does not wait for a transaction that has the row locked.
func TestALockedCohortIsLeftForTheNextWalk(t *testing.T) {
	h := newFixture(t)
	h.endedTogether(20, 9)
	tx := h.begin()
	if _, err := tx.Exec(t.Context(), "SELECT FROM ended_cohorts FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	published := map[uuid.UUID]int{}
	if h.walk(aMonth, 1e6, published); len(published) > 0 {
		t.Errorf("%d were deleted", len(published))
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if h.walk(aMonth, 1e6, published); len(published) != 20 {
		t.Errorf("%d were deleted", len(published))
	}
}

func TestARestoredDatabaseHasNoCohortsThatEnded(t *testing.T) {
	h := newFixture(t)
	jobs := h.endedTogether(300, 0)
	published := h.status(jobs[4])
	restored, err := h.Restored().Jobs(t.Context(), uuid.Nil, 1000)
	if err != nil || len(restored) != 300 || restored[4].JobID != jobs[4].JobID || restored[4].Version != 2 {
		t.Fatal(len(restored), err)
	}
	h.wantEndedTogether(0, 0)
	if got := h.wantStatus(jobs[4], jobstate.Completed); got.Version != published.Version || len(got.History) != 2 {
		t.Errorf("%+v, want %+v", got, published)
	}
}

// A job is accepted again while retention moves it from its cohort to ended, at each moment of the search for it.
func TestARepeatedJobMeetsRetention(t *testing.T) {
	for _, table := range []string{"cohorts", "dispatched"} { // at which the search waits
		t.Run(table, func(t *testing.T) {
			h := openFixture(t, Config{Lease: time.Minute, MaxLost: 3}, patient+"pool_max_conns=9")
			jobs := h.endedTogether(20, 9)
			h.heartbeat("w1", 100, allPartitions)
			var warm sync.WaitGroup
			for range 20 {
				warm.Go(func() { h.must(h.Ingest(t.Context(), jobs)) }) // all sessions prepare the statements
			}
			warm.Wait()
			tx := h.begin()
			if _, err := tx.Exec(t.Context(), "LOCK TABLE "+table+" IN ACCESS EXCLUSIVE MODE"); err != nil {
				t.Fatal(err)
			}
			repeated := make(chan emit.Effects, 1)
			go func() { repeated <- h.must(h.Ingest(t.Context(), jobs)) }()
			h.awaitLockWaits(1)
			if _, done, err := h.Retire(t.Context(), aMonth, uuid.Nil, 1000); err != nil || done.Deleted != 20 {
				t.Errorf("%+v, %v", done, err)
			}
			if err := tx.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			if runs := (<-repeated).Runs; len(runs) > 0 || h.count("members") > 0 || h.count("ended") != 20 {
				t.Errorf("%d jobs that completed start again", len(runs))
			}
		})
	}
}

// Nothing is left of deleted jobs, so that their ids can be used again.
func TestTheIDsOfDeletedJobsCanBeUsedAgain(t *testing.T) {
	h := newFixture(t)
	jobs := h.endedTogether(5, 0)
	for _, job := range jobs {
		h.order(job, 1, jobevent.CommandDelete)
	}
	h.wantEndedTogether(0, 0)
	if n := h.count("jobs WHERE payload::text <> 'null' OR output IS NOT NULL"); n > 0 {
		t.Errorf("%d payloads are left", n)
	}
	h.exec("DELETE FROM jobs") // as JobsForget does
	if runs := h.ingest(jobs...).Runs; len(runs) != 5 {
		t.Fatalf("%d start", len(runs))
	}
	outcomes := make([]Outcome, len(jobs))
	for i, job := range jobs {
		outcomes[i] = completed(job, 1)
	}
	h.settle(outcomes...)
	h.wantEndedTogether(1, 5)
}

// A job arrives in a cohort between the command's look into the cohorts and its look for the job's row.
func TestACommandMeetsTheArrivalOfItsJob(t *testing.T) {
	h := openFixture(t, Config{Lease: time.Minute, MaxLost: 3}, patient+"pool_max_conns=9")
	other, jobs := newJob(), newJobs(4)
	h.ingest(other)
	tx := h.begin()
	if _, err := tx.Exec(t.Context(), "SELECT FROM jobs WHERE job_id = $1 FOR UPDATE", other.JobID); err != nil {
		t.Fatal(err)
	}
	applied := make(chan emit.Effects, 1)
	go func() {
		applied <- h.must(h.Command(t.Context(), []jobevent.Command{
			commandFor(other, jobevent.CommandCancel), commandFor(jobs[1], jobevent.CommandCancel),
		}))
	}()
	h.awaitLockWaits(1)
	h.ingest(jobs...)
	if h.count("members") != 4 {
		t.Fatal("the jobs do not share a row")
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-applied
	if n := h.count("jobs WHERE status = 'CANCELLED' OR cancel_requested_at IS NOT NULL"); n != 2 {
		t.Errorf("%d are cancelled", n)
	}
}

// Ids that clients choose may differ only in the last bit.
func TestAnIDDoesNotAnswerForItsNeighbour(t *testing.T) {
	h := newFixture(t)
	h.heartbeat("w1", 10, allPartitions)
	jobs := newJobs(5)
	outcomes := make([]Outcome, 5)
	for i := range jobs {
		jobs[i].JobID[15] |= 1
		outcomes[i] = completed(jobs[i], 1)
	}
	h.ingest(jobs...)
	h.settle(outcomes...)
	h.wantEndedTogether(1, 5)
	other := jobs[2]
	other.JobID[15] &^= 1
	h.order(other, 1, jobevent.CommandCancel) // is kept until the job comes
	if effects, err := h.IngestUnusable(t.Context(), other, "garbage"); err != nil || len(effects.Jobs) != 1 || effects.Jobs[0].JobID != other.JobID {
		t.Errorf("%+v, %v", effects.Jobs, err)
	}
	h.wantStatus(other, jobstate.Failed)
	h.wantEndedTogether(1, 5)
}

// What is read for one job is bounded.
func TestLargeOutputsShareNoRow(t *testing.T) {
	h := newFixture(t)
	h.heartbeat("w1", 64, allPartitions)
	jobs := newJobs(64)
	h.ingest(jobs...)
	outcomes := make([]Outcome, 64)
	for i, job := range jobs {
		outcomes[i] = completed(job, 1)
		if i >= 10 {
			outcomes[i].Output = json.RawMessage(fmt.Sprintf("%q", strings.Repeat(fmt.Sprint(i%10), mostPayload*2/5)))
		}
	}
	h.settle(outcomes...)
	h.wantEndedTogether(27, 64) // pairs, the first ten jobs with the first one
	for i, job := range jobs {
		if got := h.wantStatus(job, jobstate.Completed); !bytes.Equal(got.Output, outcomes[i].Output) {
			t.Fatalf("job %d has another output", i)
		}
	}
}

// With 20,000 rows of jobs that completed together and no statistics, every statement finds its rows by the key.
func TestPlansOfCohortsThatEndedUseIndexes(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("one goroutine asks PostgreSQL: there is nothing to race")
	}
	h, plans := newExplainedFixture(t, pgtest.Database(t, migrations.Scheduler))
	h.exec("ALTER TABLE ended_cohorts SET (autovacuum_enabled = off)")
	h.fillEndedCohorts(20_000, "10 d")
	jobs := h.endedTogether(300, 0)
	plans.Forget()
	h.order(jobs[0], 1, jobevent.CommandDelete)
	h.ingest(jobs[:100]...)
	h.ingest(using(jobs[3], jobs[4]))
	h.report(jobs[5], 0)
	if _, _, err := h.Retire(t.Context(), aMonth, uuid.Nil, 1000); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"EndedMembersLeave", "MembersNamed", "CohortsNear", "JobsEnds", "EndedCohortsOld", "EndedCohortsRetire"} {
		if len(plans.Seen()[name]) == 0 {
			t.Errorf("%s did not run", name)
		}
	}
	checkVisits(t, plans.Seen())
}
