package schedulerdb

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/emit"
)

// watchLanes records how often each job changes its lane.
func (h fixture) watchLanes() {
	h.Helper()
	h.exec("CREATE TABLE lane_moves (job_id uuid)")
	h.exec(`CREATE FUNCTION note_lane() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN INSERT INTO lane_moves VALUES (NEW.job_id); RETURN NULL; END $$`)
	h.exec(`CREATE TRIGGER note_lane AFTER UPDATE OF lane ON jobs FOR EACH ROW
		WHEN (OLD.status = NEW.status) EXECUTE FUNCTION note_lane()`)
}

// laneMoves returns the number of lane changes since its last call, and the most of one job.
func (h fixture) laneMoves() (all, most int) {
	h.Helper()
	if err := h.pool.QueryRow(h.Context(), `SELECT coalesce(sum(n), 0), coalesce(max(n), 0)
		FROM (SELECT count(*) AS n FROM lane_moves GROUP BY job_id) moves`).Scan(&all, &most); err != nil {
		h.Fatal(err)
	}
	h.exec("DELETE FROM lane_moves")
	return all, most
}

// tick runs passes of the clock until it would sleep, and returns the run orders.
func (h fixture) tick() (out []emit.RunOrder) {
	h.Helper()
	for pass := 0; ; pass++ {
		effects, next, err := h.Due(h.Context(), time.Minute)
		out = append(out, h.must(effects, err).Runs...)
		if next > 0 {
			return out
		}
		if pass > 1000 {
			h.Fatal("the clock never sleeps")
		}
	}
}

// While ten thousand jobs wait, a limit is set, changed and removed. Each job changes its lane at most once for each
// set of controls, and jobs without a limit go out.
func TestALimitOfABacklogMovesEachJobOnce(t *testing.T) {
	h := newFixture(t)
	h.watchLanes()
	h.fill(10_000, "'PENDING'", "NULL", "NULL", "NULL") // of type A, in two queues
	h.exec("UPDATE jobs SET owner_id = 'acme' WHERE get_byte(uuid_send(job_id), 15) % 2 = 0")
	h.askAgain(0)
	h.control(atMost("type", "A", 1, 5))
	h.staff(10)
	if got := h.running(subject{"type", "A"}); got != 32 {
		t.Fatalf("%d of A run, want 16 of each of two queues without a worker", got)
	}
	other := newJob()
	out := h.ingest(other).Runs
	out = append(out, h.tick()...)
	if len(out) != 1 || out[0].JobID != other.JobID {
		t.Fatalf("%d went out", len(out))
	}
	if all, most := h.laneMoves(); most != 1 || all < 4000 {
		t.Errorf("%d moves, one job was moved %d times", all, most)
	}
	if h.ingest(newJob()); len(h.tick()) > 0 {
		t.Error("more went out")
	}
	if all, _ := h.laneMoves(); all > 0 {
		t.Errorf("%d closed jobs were looked at again", all)
	}
	h.wantFewer(5)
	h.laneMoves()
	h.control(atMost("type", "A", 2, 7), atMost("owner", "acme", 1, 3))
	h.wantFewer(7)
	if _, most := h.laneMoves(); most > 1 {
		t.Errorf("one job was moved %d times", most)
	}
	h.control(nothing("type", "A", 3), nothing("owner", "acme", 2))
	left := h.completeAll(h.inFlight())
	if all, _ := h.laneMoves(); all > 0 || left < 9800 {
		t.Errorf("without limits %d were moved, %d completed", all, left)
	}
	h.wantEmpty()
}

// inFlight returns all attempts that are out.
func (h fixture) inFlight() (out []emit.RunOrder) {
	h.Helper()
	rows, err := h.pool.Query(h.Context(), `SELECT job_id, attempt FROM jobs WHERE status IN ('QUEUED', 'RUNNING')
		UNION ALL SELECT job_id, attempt FROM members WHERE status = 'QUEUED'`)
	if err != nil {
		h.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var order emit.RunOrder
		if err := rows.Scan(&order.JobID, &order.Attempt); err != nil {
			h.Fatal(err)
		}
		out = append(out, order)
	}
	return out
}

// wantFewer completes attempts one by one, and asserts that the limit of type A is kept and used up.
func (h fixture) wantFewer(limit int) {
	h.Helper()
	for range 60 {
		for _, order := range h.inFlight()[:1] {
			h.settle(completed(jobevent.Created{JobID: order.JobID}, int(order.Attempt)))
		}
	}
	h.tick()
	var ofA, ofAcme int
	if err := h.pool.QueryRow(h.Context(), `SELECT count(*), count(owner_id) FROM jobs
		WHERE status IN ('QUEUED', 'RUNNING') AND job_type = 'A'`).Scan(&ofA, &ofAcme); err != nil {
		h.Fatal(err)
	}
	if ofA != limit {
		h.Errorf("%d of A run, want %d", ofA, limit)
	}
	if limit == 7 && ofAcme > 3 {
		h.Errorf("%d of acme run", ofAcme)
	}
}

// Of all jobs of a fairness key that may go out, the one with the best rank goes first, whatever its lane.
func TestTheBetterRankGoesFirstAcrossLanes(t *testing.T) {
	h := newFixture(t)
	h.staff(1)
	first := newJob()
	h.ingest(first)
	types, owners := []string{"A", "B", "C"}, []string{"", "x", "y"}
	setAll := func(version int64, running int) {
		h.control(atMost("type", "A", version, running), atMost("type", "B", version, 50), atMost("owner", "x", version, 50))
	}
	jobs := newJobs(300)
	for i := range jobs {
		jobs[i].JobType, jobs[i].OwnerID, jobs[i].FairnessKey = types[rand.IntN(3)], owners[rand.IntN(3)], "all"
		jobs[i].CreatedAt = time.Now().Add(-time.Duration(rand.IntN(1000)) * time.Second)
	}
	h.ingest(jobs[:100]...)
	setAll(1, 50)
	h.ingest(jobs[100:200]...)
	setAll(2, 0) // dispatching moves each job of A that it meets
	h.ingest(jobs[200:]...)
	var ranks []time.Time
	last := emit.RunOrder{JobID: first.JobID, Attempt: 1}
	for n := range 301 {
		effects := h.settle(completed(jobevent.Created{JobID: last.JobID}, 1))
		if n == 50 {
			setAll(3, 50)
			ranks = nil
		}
		if len(effects.Runs) == 0 && n < 300 {
			t.Fatalf("after %d jobs none goes out", n)
		}
		for _, order := range effects.Runs {
			last, ranks = order, append(ranks, order.Rank)
		}
		if n > 60 && !slices.IsSortedFunc(ranks[1:], time.Time.Compare) {
			t.Fatalf("not in the order of their ranks: %v", ranks)
		}
		if n < 50 && slices.ContainsFunc(jobs, func(j jobevent.Created) bool { return j.JobID == last.JobID && j.JobType == "A" }) {
			t.Fatal("one of a type of which none may run went out")
		}
	}
	h.wantEmpty()
}

// A job that waits again after an attempt is in the lane of its controls.
func TestAnInterruptedJobReturnsToItsLane(t *testing.T) {
	h := newFixture(t)
	h.staff(20)
	job, next := newJob(), newJob()
	h.ingest(job)
	h.control(atMost("type", "SIMULATION", 1, 1))
	next.CreatedAt = time.Now().Add(-time.Hour)
	h.ingest(next)
	effects := h.settle(ended(job, 1, "interrupted"))
	if len(effects.Runs) != 1 || effects.Runs[0].JobID != next.JobID {
		t.Fatalf("returned %+v", effects.Runs)
	}
	effects = h.settle(completed(next, 1))
	if len(effects.Runs) != 1 || effects.Runs[0].JobID != job.JobID || effects.Runs[0].JobID == uuid.Nil {
		t.Fatalf("returned %+v", effects.Runs)
	}
	h.settle(completed(job, 2))
	h.wantEmpty()
}

// There are more lanes than one query reads, and each allows one job at a time.
func TestHundredsOfOwnersEachHaveALimit(t *testing.T) {
	const owners = 250
	h := newFixture(t)
	h.staff(1000)
	var controls []jobevent.Control
	jobs := newJobs(3 * owners)
	for i := range jobs {
		jobs[i].OwnerID = "owner " + strconv.Itoa(i%owners)
		if i < owners {
			controls = append(controls, atMost("owner", jobs[i].OwnerID, 1, 0))
		}
	}
	h.control(controls...)
	if out := h.ingest(jobs...).Runs; len(out) > 0 {
		t.Fatalf("%d out", len(out))
	}
	for i := range controls {
		controls[i] = atMost("owner", controls[i].Name, 2, 1)
	}
	out := h.control(controls...).Runs
	if len(out) != owners {
		t.Errorf("%d out", len(out))
	}
	if n := h.completeAll(out); n != len(jobs) {
		t.Errorf("%d completed", n)
	}
	h.wantEmpty()
}
