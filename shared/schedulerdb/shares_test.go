package schedulerdb

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/nullable"
	"github.com/jobweaver/jobweaver/shared/pgtest"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/emit"
)

func jobsOf(key string, n int) []jobevent.Created {
	jobs := newJobs(n)
	for i := range jobs {
		jobs[i].OwnerID = key
	}
	return jobs
}

// settleOneByOne completes the attempts that are out, one at a time, until n jobs have started since then. It returns
// their owners in the order of their starts.
func (h fixture) settleOneByOne(out []emit.RunOrder, n int) (starts []string) {
	h.Helper()
	for len(starts) < n {
		if len(out) == 0 {
			h.Fatalf("nothing is out after %d starts", len(starts))
		}
		effects := h.settle(completed(jobevent.Created{JobID: out[0].JobID}, int(out[0].Attempt)))
		out = append(out[1:], effects.Runs...)
		for _, order := range effects.Runs {
			starts = append(starts, order.OwnerID)
		}
	}
	return starts
}

func TestTheJobOfAQuietOwnerDoesNotWaitBehindABusyOne(t *testing.T) {
	h := newFixture(t)
	h.staff(4)
	out := h.ingest(jobsOf("busy", 400)...).Runs
	h.ingest(jobsOf("quiet", 1)...)
	starts := h.settleOneByOne(out, 2)
	if starts[0] != "quiet" && starts[1] != "quiet" {
		t.Errorf("started %v", starts)
	}
	h.completeAll(h.inFlight())
	h.wantEmpty()
}

func TestOwnersStartJobsByTheirWeights(t *testing.T) {
	h := newFixture(t)
	h.control(jobevent.Control{Kind: jobevent.ControlKey, Name: "b", Version: 1, Weight: 3})
	h.staff(5)
	out := h.ingest(jobsOf("a", 100)...).Runs
	h.ingest(jobsOf("b", 100)...)
	h.ingest(newJobs(100)...) // of no owner: they share the empty key
	counts := map[string]int{}
	for _, owner := range h.settleOneByOne(out, 100) {
		counts[owner]++
	}
	if counts["a"] != 20 || counts["b"] != 60 || counts[""] != 20 {
		t.Errorf("starts %v", counts)
	}
}

// The limit for each fairness key applies to all keys without naming them, and a key's own limit replaces it.
func TestALimitOfEachFairnessKeyIsExact(t *testing.T) {
	h := newFixture(t)
	h.control(atMost(jobevent.ControlKey, jobevent.AnyName, 1, 2), atMost(jobevent.ControlKey, "k3", 1, 5))
	h.staff(100)
	var out []emit.RunOrder
	for i := range 5 {
		out = append(out, h.ingest(jobsOf(fmt.Sprint("k", i), 20)...).Runs...)
	}
	want := func(runs int) {
		t.Helper()
		rows, err := h.pool.Query(t.Context(), `SELECT fairness_key, count(*) FROM attempts_out GROUP BY 1 ORDER BY 1`)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		all := 0
		for rows.Next() {
			var key string
			var n int
			if err := rows.Scan(&key, &n); err != nil {
				t.Fatal(err)
			}
			if most := map[bool]int{true: 5, false: 2}[key == "k3"]; n != most {
				t.Errorf("%d of %s are out, want %d", n, key, most)
			}
			all += n
		}
		if all != runs {
			t.Errorf("%d are out, want %d", all, runs)
		}
	}
	want(4*2 + 5)
	starts := h.settleOneByOne(out, 20)
	want(4*2 + 5)
	if len(starts) != 20 {
		t.Errorf("%d started", len(starts))
	}
	h.control(nothing(jobevent.ControlKey, jobevent.AnyName, 2))
	if drift := h.drift(); drift.ChangesCounts() {
		t.Errorf("drift %+v", drift)
	}
	h.completeAll(h.inFlight())
	h.wantEmpty()
}

// A binary of the release before writes the ledger without its keys. The next count finds them again.
func TestACountFindsTheFairnessKeysThatALedgerLacks(t *testing.T) {
	h := newFixture(t)
	h.staff(1)
	h.ingest(jobsOf("a", 3)...)
	h.ingest(jobsOf("b", 3)...)
	h.exec("UPDATE dispatch_state SET n = n + 1, more = '{}'")
	if h.ledger().UsesShares("default") {
		t.Fatal("the ledger still has its keys")
	}
	h.askAgain(0)
	if !h.ledger().UsesShares("default") {
		t.Error("the count did not find the keys")
	}
}

// waitingByKey returns the waiting jobs of each fairness key, the best first.
func (h fixture) waitingByKey() map[string][]uuid.UUID {
	h.Helper()
	rows, err := h.pool.Query(h.Context(), "SELECT job_id, fairness_key FROM jobs WHERE status = 'PENDING' ORDER BY rank, job_id")
	if err != nil {
		h.Fatal(err)
	}
	defer rows.Close()
	waiting := map[string][]uuid.UUID{}
	for rows.Next() {
		var id uuid.UUID
		var key string
		if err := rows.Scan(&id, &key); err != nil {
			h.Fatal(err)
		}
		waiting[key] = append(waiting[key], id)
	}
	return waiting
}

// settleFirst completes the first n attempts, and returns those that go out then.
func (h fixture) settleFirst(out []emit.RunOrder, n int) []emit.RunOrder {
	h.Helper()
	outcomes := make([]Outcome, n)
	for i, order := range out[:n] {
		outcomes[i] = completed(jobevent.Created{JobID: order.JobID}, int(order.Attempt))
	}
	return h.settle(outcomes...).Runs
}

// lastTurn returns the key with the last start; nil: none since the queue was empty.
func (h fixture) lastTurn() (key *string) {
	h.Helper()
	err := h.pool.QueryRow(h.Context(),
		"SELECT more -> 'rounds' -> 'default' ->> 'key' FROM dispatch_state ORDER BY n DESC LIMIT 1").Scan(&key)
	if err != nil {
		h.Fatal(err)
	}
	return key
}

// inTurn returns the next n jobs, one of each key in turn after the key with the last start.
func inTurn(waiting map[string][]uuid.UUID, last string, n int) (next []uuid.UUID) {
	for len(next) < n && len(waiting) > 0 {
		turns := slices.Sorted(maps.Keys(waiting))
		at, isThere := slices.BinarySearch(turns, last)
		if isThere {
			at++
		}
		last = turns[at%len(turns)]
		next = append(next, waiting[last][0])
		if waiting[last] = waiting[last][1:]; len(waiting[last]) == 0 {
			delete(waiting, last)
		}
	}
	return next
}

// Keys of all numbers of jobs come, run out and come again, while steps of all sizes dispatch. Each step dispatches
// the jobs that a plain walk round the keys would.
func TestEachStepDispatchesTheJobsWhoseTurnItIs(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			h := newFixture(t)
			h.staff(20)
			compared := 0
			for step := range 40 {
				var jobs []jobevent.Created
				for range random.IntN(10) {
					jobs = append(jobs, jobsOf(fmt.Sprint("k", random.IntN(1+20*random.IntN(2))), random.IntN(12))...)
				}
				for i := range jobs {
					jobs[i].Priority = random.IntN(3)
				}
				if step%10 < 7 {
					h.ingest(jobs...)
				}
				out := h.inFlight()
				n := min(len(out), 1+random.IntN(20))
				before := h.ledger()
				last := h.lastTurn()
				want := inTurn(h.waitingByKey(), nullable.Value(last), n)
				var got []uuid.UUID
				for _, order := range h.settleFirst(out, n) {
					got = append(got, order.JobID)
				}
				if last != nil && before.UsesShares("default") {
					slices.SortFunc(want, compareIDs)
					slices.SortFunc(got, compareIDs)
					if compared++; !slices.Equal(got, want) {
						t.Fatalf("step %d dispatched %d jobs, want %d others", step, len(got), len(want))
					}
				}
			}
			if compared < 10 {
				t.Errorf("only %d steps took turns", compared)
			}
			h.completeAll(h.inFlight())
			h.wantEmpty()
		})
	}
}

// Once the jobs of all other keys are gone, rank alone orders the queue again.
func TestTheLastKeyLeftTakesNoTurns(t *testing.T) {
	h := newFixture(t)
	h.staff(10)
	out := h.ingest(jobsOf("a", 10)...).Runs
	h.ingest(append(jobsOf("a", 10), jobsOf("b", 60)...)...)
	for step, usesShares := range []bool{true, true, false, false} {
		out = h.settleFirst(out, len(out))
		if len(out) != 10 || h.ledger().UsesShares("default") != usesShares {
			t.Fatalf("step %d dispatched %d jobs, uses shares: %v", step, len(out), !usesShares)
		}
	}
	h.completeAll(out)
	h.wantEmpty()
}

// A step passes over the jobs that another transaction has locked. Other ones use the room.
func TestOtherJobsUseTheRoomOfLockedOnes(t *testing.T) {
	h := newFixture(t)
	h.staff(10)
	out := h.ingest(jobsOf("a", 10)...).Runs
	h.ingest(append(jobsOf("a", 20), jobsOf("b", 20)...)...)
	out = h.settleFirst(out, 10) // the ledger knows whose turn was the last
	tx := h.begin()
	locked := h.waitingByKey()["b"][:3]
	if _, err := tx.Exec(t.Context(), "SELECT FROM jobs WHERE job_id = any ($1) FOR UPDATE", locked); err != nil {
		t.Fatal(err)
	}
	if out = h.settleFirst(out, 10); len(out) < 8 { // five of each key without the locks, and then more of a
		t.Errorf("%d jobs went out", len(out))
	}
	for _, order := range out {
		if slices.Contains(locked, order.JobID) {
			t.Error("a locked job went out")
		}
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.completeAll(out)
	h.askAgain(0) // the holder has rolled back, so only a count finds a job that was passed over
	h.completeAll(h.inFlight())
	h.wantEmpty()
}

// A job that another transaction has locked is passed over, and goes out later.
func TestALockedJobKeepsNoFairnessKeyFromItsTurn(t *testing.T) {
	h := newFixture(t)
	h.staff(1)
	out := h.ingest(jobsOf("a", 2)...).Runs
	locked := jobsOf("b", 1)
	h.ingest(locked...)
	h.ingest(jobsOf("c", 1)...)
	tx := h.begin()
	if _, err := tx.Exec(t.Context(), "SELECT FROM jobs WHERE job_id = $1 FOR UPDATE", locked[0].JobID); err != nil {
		t.Fatal(err)
	}
	if starts := h.settleOneByOne(out, 1); starts[0] == "b" {
		t.Fatalf("started %v", starts)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.askAgain(0) // the holder has rolled back, so only a count finds the job
	h.completeAll(h.inFlight())
	h.wantEmpty()
}

// With 80,000 jobs of 10,000 keys waiting, and without statistics, a step reads the rows of the next keys only.
func TestThePlanOfSharesReadsTheNextKeysOnly(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("one goroutine asks PostgreSQL: there is nothing to race")
	}
	url := pgtest.Database(t, migrations.Scheduler)
	h, plans := newExplainedFixture(t, url)
	h.exec("ALTER TABLE jobs SET (autovacuum_enabled = off)")
	h.fill(80_000, "'PENDING'", "NULL", "NULL", "NULL",
		"fairness_key", "'key-' || floor(random() * 10000)", "lane", `CASE WHEN random() < 0.25 THEN 'type:"A"' END`)
	h.control(atMost(jobevent.ControlKey, jobevent.AnyName, 1, 1), atMost("type", "A", 1, 1000))
	h.askAgain(0)
	plans.Forget()
	effects, err := h.Heartbeat(t.Context(), []jobevent.Heartbeat{{
		WorkerID: "w", Slots: 200, Partitions: map[string][]int32{"default": {0}},
	}})
	if h.must(effects, err); len(effects.Runs) == 0 {
		t.Fatal("nothing went out")
	}
	h.askAgain(0)
	seen := plans.Seen()
	for _, name := range []string{"KeysBest", "KeysPending", "JobsSendOut"} {
		if len(seen[name]) == 0 {
			t.Errorf("%s did not run", name)
		}
	}
	checkVisits(t, seen)
}

// The same holds without a control, in a queue with 10,000 keys and in one with three.
func TestThePlanOfTurnsReadsTheNextKeysOnly(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("one goroutine asks PostgreSQL: there is nothing to race")
	}
	h, plans := newExplainedFixture(t, pgtest.Database(t, migrations.Scheduler))
	h.exec("ALTER TABLE jobs SET (autovacuum_enabled = off)")
	h.fill(80_000, "'PENDING'", "NULL", "NULL", "NULL",
		"fairness_key", "'key-' || CASE WHEN n % 2 = 0 THEN floor(random() * 10000) ELSE n / 2 % 3 END")
	h.heartbeat("w", 200, []int32{0})
	h.askAgain(0)
	h.exec("UPDATE workers SET partitions = '{\"mail\": [1], \"default\": [0]}', slots = 400")
	h.askAgain(0)
	plans.Forget()
	for _, served := range []string{`{"default": [0]}`, `{"mail": [1]}`} {
		h.exec("UPDATE workers SET partitions = $1", served)
		h.settleFirst(h.inFlight(), 200)
	}
	if seen := plans.Seen(); len(seen["KeysBest"]) < 2 || len(seen["JobsAfter"]) == 0 {
		t.Errorf("KeysBest ran %d times, JobsAfter %d times", len(seen["KeysBest"]), len(seen["JobsAfter"]))
	}
	checkVisits(t, plans.Seen())
}
