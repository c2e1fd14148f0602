package schedulestore_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/schedulestore"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

// At 100,000 ticks without statistics, statements for a schedule visit only its own ticks, and its jobs by their
// keys.
func TestAScheduleSeesItsOwnTicks(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("one goroutine asks PostgreSQL: there is nothing to race")
	}
	s, plans := apidbtest.Watched(t)
	for _, sql := range []string{
		"alter table jobs set (autovacuum_enabled = off)",
		"alter table schedules set (autovacuum_enabled = off)",
		"alter table schedule_ticks set (autovacuum_enabled = off)",
		`insert into schedules (schedule_id, owner_id, name, cron, time_zone, anchor_at, job, overlap, missed, paused, next_at)
			select uuidv7(), '', 's' || n, '@every 1h', 'UTC', now(),
				'{"jobType": "SIMULATION", "payload": {"steps": [{"type": "LOG", "message": "hi"}]}}', 'skip', 'one', n % 2 = 0,
				now() + n * interval '1 s'
			from generate_series(-1, 98) n`,
		`insert into jobs (job_id, job_type, queue, payload, spec, trace_id, status)
			select uuidv7(), 'X', 'default', '{}', '{"priority":0,"maxRetryCount":3,"timeoutMs":1000}', uuidv7(), 'PENDING' from generate_series(1, 100000) n`,
		`insert into schedule_ticks (schedule_id, at, outcome, job_id)
			select schedule_id, now() - (n / 100 + 1) * interval '1 min', 'fired', job_id
			from (select job_id, row_number() over () as n from jobs) as jobs
			join (select schedule_id, row_number() over () as m from schedules) as schedules on m = n % 100 + 1`,
		"update schedule_ticks set at = at - interval '31 days' where at < now() - interval '16 hours'",
	} {
		if _, err := s.Pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	plans.Forget()
	if _, _, err := s.Schedules.Fire(t.Context(), schedulestore.Rules{}, time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Schedules.DeleteOldTicks(t.Context(), uuid.Nil); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Schedules.Resume(t.Context(), nil, apidb.Everyone, apidb.Key{Name: "s2"}, nil); err != nil {
		t.Fatal(err)
	}
	for name, most := range map[string]float64{ // the most rows of ticks and jobs that each statement may visit
		"SchedulesDue": 0, "ScheduleNext": 0, "ScheduleBegin": 1, "ScheduleJobsNotEnded": 100, "TicksForget": 100_000,
	} {
		seen := plans.Seen()[name]
		if len(seen) == 0 {
			t.Errorf("%s did not run", name)
		}
		for _, plan := range seen {
			plan.Walk(func(n pgtest.Node) {
				if n.Relation == "" || n.Type == "ModifyTable" {
					return
				}
				if n.Index == "" || n.Relation != "schedules" && n.Rows*n.Loops > most {
					t.Errorf("%s visits %s by %s %s: %v rows %v times", name, n.Relation, n.Type, n.Index, n.Rows, n.Loops)
				}
			})
		}
	}
}
