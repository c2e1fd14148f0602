package schedulerdb

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/pgtest"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/emit"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/internal/gen"
)

// cohorts returns how many cohorts there are, and how many jobs wait in them.
func (h fixture) cohorts() (cohorts, members int) {
	h.Helper()
	const statement = "SELECT (SELECT count(*) FROM cohorts), (SELECT count(*) FROM members WHERE status = 'PENDING')"
	if err := h.pool.QueryRow(h.Context(), statement).
		Scan(&cohorts, &members); err != nil {
		h.Fatal(err)
	}
	return cohorts, members
}

func (h fixture) wantMembers(want int) {
	h.Helper()
	if _, members := h.cohorts(); members != want {
		h.Fatalf("%d jobs wait in cohorts, want %d", members, want)
	}
}

func runsOf(effects emit.Effects) []uuid.UUID {
	ids := make([]uuid.UUID, len(effects.Runs))
	for i, run := range effects.Runs {
		ids[i] = run.JobID
	}
	return ids
}

// hold keeps all jobs waiting, and resume lets them out to a worker with that many slots.
func (h fixture) hold() { h.control(pause(jobevent.ControlQueue, "default", 1)) }

func (h fixture) resume(slots int) emit.Effects {
	h.staff(slots)
	return h.control(nothing(jobevent.ControlQueue, "default", 2))
}

func TestJobsOfARequestShareRowsWhileTheyWait(t *testing.T) {
	h := newFixture(t)
	jobs := newJobs(150)
	jobs[7].Payload = json.RawMessage(`{"seventh": true}`)
	h.hold()
	h.ingest(jobs...)
	if cohorts, members := h.cohorts(); cohorts != 3 || members != 150 {
		t.Fatalf("%d cohorts of %d jobs", cohorts, members)
	}
	var got []uuid.UUID
	for effects := h.resume(20); len(effects.Runs) > 0; {
		var outcomes []Outcome
		for _, run := range effects.Runs {
			job := jobs[len(got)]
			if run.JobID != job.JobID || run.TraceID != job.TraceID || string(run.Payload) != string(job.Payload) ||
				run.Attempt != 1 || *run.Partition != 0 || !run.Rank.Equal(job.CreatedAt.Truncate(time.Microsecond)) {
				t.Fatalf("run order %d: %+v of %+v", len(got), run, job)
			}
			got, outcomes = append(got, run.JobID), append(outcomes, completed(job, 1))
		}
		effects = h.settle(outcomes...)
	}
	if len(got) != 150 {
		t.Errorf("%d started", len(got))
	}
	h.wantMembers(0)
	history := h.wantStatus(jobs[149], jobstate.Completed).History
	if len(history) != 3 || history[0].To != "PENDING" || history[1].To != "QUEUED" || history[2].From != "QUEUED" {
		t.Errorf("%+v", history)
	}
}

func TestJobsThatDifferInMoreGetRowsOfTheirOwn(t *testing.T) {
	h := newFixture(t)
	h.hold()
	later, key := time.Now().Add(time.Hour), "k"
	for name, differ := range map[string]func(*jobevent.Created){
		"an expiry":    func(c *jobevent.Created) { c.ExpiresAt = &later },
		"a start":      func(c *jobevent.Created) { c.RunAt = &later },
		"a key":        func(c *jobevent.Created) { c.OrderingKey, c.OrderNumber = key, 1 },
		"a dependency": func(c *jobevent.Created) { c.After = []uuid.UUID{uuid.New()} },
		"a flow":       func(c *jobevent.Created) { c.FlowID = uuid.New() },
		"an event":     func(c *jobevent.Created) { c.Event = json.RawMessage(`{"source":"/a","id":"1"}`) },
		"a build":      func(c *jobevent.Created) { c.KeepBuild = true },
	} {
		jobs := newJobs(9)
		for i := range jobs {
			differ(&jobs[i])
		}
		if h.ingest(jobs...); name == "" {
			t.Fatal()
		}
		if _, members := h.cohorts(); members != 0 {
			t.Errorf("jobs with %s share a row", name)
			h.exec("DELETE FROM cohorts")
		}
	}
	jobs := newJobs(12)
	for i := range jobs {
		jobs[i].Priority = i % 3 // three ranks
	}
	h.ingest(jobs...)
	if cohorts, members := h.cohorts(); cohorts != 3 || members != 12 {
		t.Errorf("%d cohorts of %d jobs of three priorities", cohorts, members)
	}
	large := newJobs(8)
	for i := range large {
		large[i].Payload = json.RawMessage(`"` + strings.Repeat("x", mostPayload/5) + `"`)
	}
	h.ingest(large...)
	if cohorts, members := h.cohorts(); cohorts != 5 || members != 20 {
		t.Errorf("with large payloads %d cohorts of %d jobs", cohorts, members)
	}
}

func TestARepeatedRequestMeetsItsCohort(t *testing.T) {
	h := newFixture(t)
	jobs := newJobs(70)
	h.hold()
	h.ingest(jobs...)
	h.resume(10)
	effects := h.ingest(jobs...)
	if len(effects.Runs) > 0 || len(effects.Jobs) != 70 {
		t.Errorf("%d runs, %d statuses", len(effects.Runs), len(effects.Jobs))
	}
	pending := 0
	for _, job := range effects.Jobs {
		if job.Status == string(jobstate.Pending) && job.Version == 1 {
			pending++
		}
	}
	if pending != 60 {
		t.Errorf("%d are PENDING", pending)
	}
	h.wantMembers(60)
	if effects, err := h.IngestUnusable(t.Context(), jobs[69], "garbage"); err != nil || effects.Jobs[0].Status != "PENDING" {
		t.Errorf("%+v, %v", effects.Jobs, err)
	}
	h.wantMembers(60)
}

func TestACommandGivesAMemberARowOfItsOwn(t *testing.T) {
	h := newFixture(t)
	jobs := newJobs(10)
	h.hold()
	h.ingest(jobs...)
	if got := h.wantStatus(jobs[3], jobstate.Pending); got.Version != 1 || len(got.History) != 1 {
		t.Errorf("%+v", got)
	}
	if events := h.report(jobs[3], 1); len(events) != 0 {
		t.Errorf("%d events about a known version", len(events))
	}
	h.wantMembers(10)
	h.order(jobs[3], 1, jobevent.CommandCancel)
	h.wantStatus(jobs[3], jobstate.Cancelled)
	h.wantMembers(9)
	h.order(jobs[0], 1, jobevent.CommandCancel)
	h.wantMembers(8)
	if got, want := runsOf(h.resume(2)), []uuid.UUID{jobs[1].JobID, jobs[2].JobID}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// A waiting job goes out in the order of its rank, whether it shares a row or not.
func TestRanksOrderCohortsAndOtherJobs(t *testing.T) {
	h := newFixture(t)
	var want []uuid.UUID
	base := time.Now().Add(-time.Minute)
	h.hold()
	for i := range 6 {
		jobs := newJobs(1 + 9*(i%2))
		for j := range jobs {
			jobs[j].CreatedAt = base.Add(time.Duration(i) * time.Second)
			want = append(want, jobs[j].JobID)
		}
		h.ingest(jobs...)
	}
	h.wantMembers(30)
	got := runsOf(h.resume(7))
	for len(got) < len(want) {
		sent := len(got)
		got = append(got, runsOf(h.settle(completed(jobevent.Created{JobID: got[sent-1]}, 1)))...)
		if len(got) == sent {
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d of %d went out, or in another order", len(got), len(want))
	}
}

// The jobs of an owner who comes later share the queue with those of cohorts, and a control finds them.
func TestCohortsTakePartInSharesAndLanes(t *testing.T) {
	h := newFixture(t)
	first, second := newJobs(3000), newJobs(20)
	for i := range first {
		first[i].JobType = "A"
	}
	for i := range second {
		second[i].OwnerID, second[i].JobType = "acme", "B"
	}
	h.hold()
	h.ingest(first...)
	h.ingest(second...)
	h.wantMembers(3000)
	runs := h.resume(20).Runs
	owners := map[string]int{}
	for _, run := range runs {
		owners[run.OwnerID]++
	}
	if owners[""] != 10 || owners["acme"] != 10 {
		t.Errorf("%v", owners)
	}
	h.control(jobevent.Control{Kind: jobevent.ControlType, Name: "A", Version: 3, Paused: true})
	var outcomes []Outcome
	for _, run := range runs {
		outcomes = append(outcomes, completed(jobevent.Created{JobID: run.JobID}, 1))
	}
	runs = h.settle(outcomes...).Runs
	for range 10 { // the clock goes on as long as a step may have missed a job
		effects, _, err := h.Due(t.Context(), time.Minute)
		runs = append(runs, h.must(effects, err).Runs...)
	}
	for _, run := range runs {
		if run.OwnerID != "acme" {
			t.Fatal("a job of a paused type started")
		}
	}
	if len(runs) != 10 {
		t.Errorf("%d of the other owner started", len(runs))
	}
	h.wantMembers(0)
	h.control(jobevent.Control{Kind: jobevent.ControlType, Name: "A", Version: 4})
	if n := h.count("jobs WHERE status = 'PENDING' and job_type = 'A'"); n != 3000-10-10 {
		t.Errorf("%d wait", n)
	}
}

func TestARestoredDatabaseHasNoCohorts(t *testing.T) {
	h := newFixture(t)
	jobs := newJobs(300)
	h.hold()
	h.ingest(jobs...)
	restored, err := h.Restored().Jobs(t.Context(), uuid.Nil, 1000)
	if err != nil || len(restored) != 300 {
		t.Fatal(len(restored), err)
	}
	h.wantMembers(0)
	h.askAgain(0)
	if n := len(h.resume(300).Runs); n != 300 {
		t.Errorf("%d went out", n)
	}
}

func (h fixture) wantOutTogether(want int) {
	h.Helper()
	if n := h.count("members WHERE status = 'QUEUED'"); n != want {
		h.Fatalf("%d jobs are out in cohorts, want %d", n, want)
	}
}

func TestJobsThatFindRoomShareARowWhileTheyAreOut(t *testing.T) {
	h := newFixture(t)
	h.heartbeat("w1", 60, allPartitions)
	jobs := newJobs(70)
	runs := h.ingest(jobs...).Runs
	h.wantOutTogether(60)
	h.wantMembers(10)
	if n := h.count("jobs"); n > 0 || len(runs) != 60 {
		t.Errorf("%d runs, %d rows of jobs", len(runs), n)
	}
	if got := h.wantStatus(jobs[7], jobstate.Queued); got.Version != 1 || len(got.History) != 1 || got.Attempt != 1 {
		t.Errorf("%+v", got)
	}
	var outcomes []Outcome
	for i, run := range runs {
		if *run.Partition < 0 || run.JobID != jobs[i].JobID {
			t.Fatalf("%+v", run)
		}
		o := completed(jobs[i], 1)
		o.Output = json.RawMessage(fmt.Sprint(i))
		outcomes = append(outcomes, o)
	}
	outcomes = append(outcomes, completed(jobs[65], 1), completed(jobs[3], 2)) // of a job that waits, and of a later attempt
	if got := h.settle(outcomes[10:]...).Runs; len(got) != 11 {                // with the order of jobs[3], once more
		t.Errorf("%d went out", len(got))
	}
	h.settle(outcomes[:10]...)
	for i, job := range jobs[:60] {
		if got := h.wantStatus(job, jobstate.Completed); string(got.Output) != fmt.Sprint(i) || got.Version != 2 {
			t.Fatalf("job %d: %+v", i, got)
		}
	}
	h.wantOutTogether(10)
	if h.completeAll(h.inFlight()); h.count("cohorts")+h.count("dispatched")+h.count("jobs") > 0 {
		t.Error("rows are left")
	}
	h.wantEmpty()
}

func TestWhatHappensToOneJobThatIsOutGivesItARow(t *testing.T) {
	h := newFixture(t)
	h.heartbeat("w1", 20, []int32{0, 1})
	jobs := newJobs(20)
	h.ingest(jobs...)
	now := time.Now()
	h.heartbeat("w1", 20, []int32{0, 1}, jobevent.ListedAttempt{JobID: jobs[0].JobID, Attempt: 1},
		jobevent.ListedAttempt{JobID: jobs[1].JobID, Attempt: 1, StartedAt: &now})
	h.wantOutTogether(18)
	h.wantStatus(jobs[0], jobstate.Queued)
	h.wantStatus(jobs[1], jobstate.Running)
	h.order(jobs[2], 1, jobevent.CommandCancel)
	if n := h.count("jobs WHERE cancel_requested_at IS NOT NULL"); n != 1 {
		t.Errorf("%d jobs have a cancel", n)
	}
	h.settle(ended(jobs[3], 1, "failed"), completed(jobs[4], 1), ended(jobs[2], 1, "cancelled"))
	h.wantOutTogether(15)
	h.wantStatus(jobs[2], jobstate.Cancelled)
	h.wantStatus(jobs[4], jobstate.Completed)
	if got := h.status(jobs[3]); got.Status == string(jobstate.Queued) {
		t.Errorf("%+v", got)
	}
	if drift := h.drift(); !drift.Empty() {
		t.Errorf("drift %+v", drift)
	}
}

// A job leaves its cohort after it was searched, and before the ledger is locked.
func TestACompletionFindsAJobThatLeavesItsCohort(t *testing.T) {
	h := openFixture(t, Config{Lease: time.Minute, MaxLost: 3}, patient+"pool_max_conns=9")
	h.heartbeat("w1", 20, []int32{0})
	jobs := newJobs(20)
	h.ingest(jobs...)
	h.heartbeat("w1", 20, []int32{0}, jobevent.ListedAttempt{JobID: jobs[2].JobID, Attempt: 1},
		jobevent.ListedAttempt{JobID: jobs[3].JobID, Attempt: 1}, jobevent.ListedAttempt{JobID: jobs[4].JobID, Attempt: 1})
	many := []Outcome{completed(jobs[5], 1), completed(jobs[6], 1), completed(jobs[7], 1), completed(jobs[8], 1)}
	var rest []Outcome // all that are out together
	for _, job := range jobs[9:] {
		rest = append(rest, completed(job, 1))
	}
	for n, outcomes := range [][]Outcome{
		{completed(jobs[0], 1)},
		{completed(jobs[1], 1), ended(jobs[2], 1, "interrupted")},
		many,
		rest,
	} {
		tx := h.begin()
		q := gen.New(tx)
		if _, err := q.DispatchLock(t.Context()); err != nil {
			t.Fatal(err)
		}
		leaving := outcomes[0].JobID
		if err := leave(t.Context(), q, []uuid.UUID{leaving}); err != nil {
			t.Fatal(err)
		}
		published := make(chan emit.Effects, 1)
		go func() { published <- h.must(h.Settle(t.Context(), outcomes)) }()
		h.awaitLockWaits(1)
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if effects := <-published; len(effects.Jobs) < len(outcomes) {
			t.Errorf("case %d: %d statuses", n, len(effects.Jobs))
		}
		h.wantStatus(jobevent.Created{JobID: leaving}, jobstate.Completed)
	}
	if drift := h.drift(); !drift.Empty() {
		t.Errorf("drift %+v", drift)
	}
}

func TestCompletionsThatAreDeliveredTwiceAtOnce(t *testing.T) {
	h := openFixture(t, Config{Lease: time.Minute, MaxLost: 3}, patient+"pool_max_conns=9")
	h.heartbeat("w1", 20, []int32{0})
	jobs := newJobs(20)
	h.ingest(jobs...)
	var outcomes []Outcome
	for _, job := range jobs[:10] {
		outcomes = append(outcomes, completed(job, 1))
	}
	tx := h.begin()
	if _, err := gen.New(tx).DispatchLock(t.Context()); err != nil {
		t.Fatal(err)
	}
	published := make(chan emit.Effects, 2)
	for n := range 2 {
		go func() { published <- h.must(h.Settle(t.Context(), slices.Clone(outcomes))) }()
		h.awaitLockWaits(n + 1)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if effects := <-published; len(effects.Jobs) != 10 || effects.Jobs[0].Version != 2 {
			t.Errorf("%d statuses", len(effects.Jobs))
		}
	}
	h.wantOutTogether(10)
	if drift := h.drift(); !drift.Empty() {
		t.Errorf("drift %+v", drift)
	}
}

// A cohort from which few go out at a time would have a part for each.
func TestACohortFromWhichJobsGoOutOneByOneGetsRows(t *testing.T) {
	h := newFixture(t)
	h.hold()
	jobs := newJobs(64)
	h.ingest(jobs...)
	out := h.resume(10).Runs
	h.wantMembers(54)
	h.settle(completed(jobs[0], 1))
	h.wantMembers(0)
	h.wantOutTogether(10)
	if n := h.completeAll(h.inFlight()); n != 63 || len(out) != 10 {
		t.Errorf("%d more completed", n)
	}
	h.wantEmpty()
}

// With 20,000 cohorts in each of two queues and no statistics, every statement finds its cohorts by an index.
func TestPlansOfCohortsUseIndexes(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("one goroutine asks PostgreSQL: there is nothing to race")
	}
	h, plans := newExplainedFixture(t, pgtest.Database(t, migrations.Scheduler))
	h.exec("ALTER TABLE cohorts SET (autovacuum_enabled = off)")
	h.hold()
	jobs := newJobs(200)
	h.ingest(jobs...)
	h.tamper(`INSERT INTO cohorts (first_id, rank, waiting, queue, job_type, spec, owner_id, fairness_key, created_at,
			updated_at, history, job_ids, trace_ids, payloads)
		SELECT uuidv7(), rank + n * interval '1 ms', 3, (ARRAY['default', 'mail'])[1 + n % 2], job_type, spec, owner_id, fairness_key, created_at, updated_at, history, ARRAY[uuidv7(), uuidv7()], ARRAY[uuidv7(), uuidv7()], '{1,2}'
		FROM (SELECT * FROM cohorts ORDER BY first_id LIMIT 1) c, generate_series(1, 40000) n`)
	plans.Forget()
	out := h.resume(100).Runs
	h.ingest(jobs[100:]...)
	h.ingest(newJobs(20)...)
	other := newJobs(20)
	for i := range other {
		other[i].Queue = "idle"
	}
	h.heartbeat("w2", 20, []int32{0})
	h.exec("UPDATE workers SET partitions = '{\"idle\": [0]}' WHERE worker_id = 'w2'")
	h.ingest(other...)
	h.order(jobs[150], 1, jobevent.CommandCancel)
	h.report(jobs[151], 0)
	h.settle(completed(jobevent.Created{JobID: out[0].JobID}, 1))
	h.askAgain(0)
	another := newJobs(1)
	another[0].OwnerID = "acme"
	h.ingest(another...)
	h.settle(completed(jobevent.Created{JobID: out[1].JobID}, 1))
	h.heartbeat("w1", 200, []int32{0}, jobevent.ListedAttempt{JobID: out[2].JobID, Attempt: 1})
	h.moveLeases(-time.Hour)
	h.askAgain(0)
	for _, name := range []string{
		"JobsDispatch", "CohortsInsert", "CohortsNear", "CohortBest", "MembersNamed", "MembersBest", "MembersLeave", "QueuesPending",
		"DispatchedInsert", "MembersComplete", "MembersRemove", "MembersUnlisted", "JobsRunOrders", "InFlight",
	} {
		if len(plans.Seen()[name]) == 0 {
			t.Errorf("%s did not run", name)
		}
	}
	checkVisits(t, plans.Seen())
}

// Jobs that a restored database lacks are stored as new ones, and then brought to the state that the API knows.
func TestAJobOfACohortIsAdopted(t *testing.T) {
	h := newFixture(t)
	jobs := newJobs(9)
	h.hold()
	h.ingest(jobs...)
	published := h.status(jobs[4])
	published.Version, published.Status, published.Attempt = 4, string(jobstate.Completed), 1
	snapshot, err := json.Marshal(published)
	if err != nil {
		t.Fatal(err)
	}
	adopted, err := h.Restored().Adopt(t.Context(), []json.RawMessage{snapshot}, jobs[4:5], make([]time.Time, 1))
	if err != nil || !slices.Equal(adopted, []uuid.UUID{jobs[4].JobID}) {
		t.Fatal(adopted, err)
	}
	h.wantStatus(jobs[4], jobstate.Completed)
	if n, err := h.Restored().Cancel(t.Context(), []uuid.UUID{jobs[5].JobID}); err != nil || n != 1 {
		t.Error(n, err)
	}
	h.wantStatus(jobs[5], jobstate.Cancelled)
	h.wantMembers(7)
}
