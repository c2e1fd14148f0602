package schedulerdb

import (
	"testing"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

// controlledStatements run only in an installation with controls.
var controlledStatements = []string{
	"ControlsList", "ControlsSave", "RunningByJob", "LanesPending", "JobsAfter", "JobsSendOut",
	"JobsChangeLane",
}

// With 80,000 jobs waiting, in lanes and outside, and without statistics, dispatching under controls visits only the
// rows that it needs.
func TestPlansOfControlledDispatchingUseIndexesWithoutStatistics(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("one goroutine asks PostgreSQL: there is nothing to race")
	}
	url := pgtest.Database(t, migrations.Scheduler)
	h, plans := newExplainedFixture(t, url)
	h.exec("ALTER TABLE jobs SET (autovacuum_enabled = off)")
	h.control(atMost("type", "A", 1, 1000), aSecond("type", "A", 2, 1000), pause("type", "B", 1), pause("owner", "x", 1),
		atMost("queue", "mail", 1, 50))
	h.fill(80_000, "'PENDING'", "NULL", "NULL", "NULL", // of type A
		"owner_id", "CASE WHEN n / 2 % 4 = 1 THEN 'x' END", "fairness_key", "'all'",
		"lane", `CASE n / 2 % 4 WHEN 1 THEN 'type:"A" owner:"x"' WHEN 2 THEN 'type:"A"' END`)
	h.fill(300, "'RUNNING'", "NULL", "now() + interval '15 s'", "11")
	h.fill(200, "'PENDING'", "NULL", "NULL", "NULL")
	h.exec(`UPDATE jobs SET job_type = 'B', fairness_key = 'all', rank = now() - interval '1 day'
		WHERE job_id IN (SELECT job_id FROM jobs WHERE lane IS NULL AND status = 'PENDING' ORDER BY job_id DESC LIMIT 200)`)
	h.askAgain(0)
	plans.Forget()
	effects, err := h.Heartbeat(t.Context(), []jobevent.Heartbeat{{
		WorkerID: "w1", Slots: 400, Partitions: map[string][]int32{"default": {0}, "mail": {1}},
	}})
	if h.must(effects, err); len(effects.Runs) == 0 || len(effects.Runs) > 50+50 {
		t.Fatalf("%d went out", len(effects.Runs))
	}
	jobs := newJobs(20)
	for i := range jobs {
		jobs[i].JobType, jobs[i].OwnerID = []string{"A", "B", "C"}[i%3], []string{"", "x"}[i%2]
		jobs[i].FairnessKey = "all" // several keys are read by other statements
	}
	h.ingest(jobs...)
	h.settle(completed(jobevent.Created{JobID: effects.Runs[0].JobID}, int(effects.Runs[0].Attempt)))
	h.due()
	h.control(pause("type", "D", 1))
	h.askAgain(0)
	seen := plans.Seen()
	for _, name := range controlledStatements {
		if len(seen[name]) == 0 {
			t.Errorf("%s did not run", name)
		}
	}
	checkVisits(t, seen)
}
