package logstore_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/logstore"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

// At 50,000 jobs with logs and without statistics, reading the end of a log and walking over old logs visit no more
// than they return.
func TestReadingLogsVisitsWhatItReturns(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("one goroutine asks PostgreSQL: there is nothing to race")
	}
	s, plans := apidbtest.Watched(t)
	for _, sql := range []string{
		"alter table jobs set (autovacuum_enabled = off)",
		"alter table attempt_logs set (autovacuum_enabled = off)",
		`insert into jobs (job_id, job_type, queue, payload, spec, trace_id, status, version, snapshot)
			select uuidv7(-interval '9 days' + n * interval '1 s'), 'X', 'default', '{}', '{"priority":0,"maxRetryCount":3,"timeoutMs":1000}', gen_random_uuid(), 'FAILED', 1, '{}'
			from generate_series(1, 50000) n`,
		"insert into attempt_logs (job_id, attempt, first_line, lines) select job_id, 1, 0, '[]' from jobs",
	} {
		if _, err := s.Pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	logged := apidbtest.One[uuid.UUID](t, s, "select job_id from jobs order by job_id desc limit 1")
	plans.Forget()
	if _, err := s.Logs.Expire(t.Context(), time.Now(), 24*time.Hour, uuid.Nil, 1000); err != nil {
		t.Fatal(err)
	}
	if end, err := s.Logs.End(t.Context(), logged); err != nil || end.Attempt != 1 {
		t.Errorf("a log ends at %+v, %v", end, err)
	}
	if _, _, _, err := s.Logs.After(t.Context(), logged, logstore.Place{}, 1); err != nil {
		t.Fatal(err)
	}
	for name, most := range map[string]float64{"LogsExpire": 1_200, "LogsEnd": 1, "LogsAfter": 1} {
		if len(plans.Seen()[name]) == 0 {
			t.Errorf("%s was not run", name)
		}
		for _, plan := range plans.Seen()[name] {
			plan.Walk(func(n pgtest.Node) {
				if strings.Contains(n.Type, "Seq Scan") || strings.Contains(n.Type, "Bitmap") {
					t.Errorf("%s reads all of %s", name, n.Relation)
				}
				if rows := n.Loops * (n.Rows + n.Removed); strings.HasPrefix(n.Type, "Index") && rows > most {
					t.Errorf("%s visits %.0f rows of %s by %s, %.0f are enough", name, rows, n.Relation, n.Index, most)
				}
			})
		}
	}
}
