package schedulerdb

import (
	"fmt"
	"testing"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobevent/emit"
	"github.com/jobweaver/jobweaver/shared/pgtest"
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
		rows, err := h.pool.Query(t.Context(), `SELECT fairness_key, count(*) FROM jobs WHERE status = 'QUEUED' GROUP BY 1 ORDER BY 1`)
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

// With 200,000 jobs of 10,000 keys waiting, and without statistics, a step reads the rows of the next keys only.
func TestThePlanOfSharesReadsTheNextKeysOnly(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("one goroutine asks PostgreSQL: there is nothing to race")
	}
	url := pgtest.Database(t, migrations.Scheduler)
	h, plans := newExplainedFixture(t, url)
	h.exec("ALTER TABLE jobs SET (autovacuum_enabled = off)")
	h.fill(200_000, "'PENDING'", "NULL", "NULL", "NULL",
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
