package callbackstore_test

import (
	"strings"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

// At 50,000 jobs without statistics, each with a callback of an attempt that is over, the walks over callbacks visit
// those only that are not answered.
func TestWalksOverCallbacksVisitWhatIsNotAnswered(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("one goroutine asks PostgreSQL: there is nothing to race")
	}
	s, plans := apidbtest.Watched(t)
	for _, sql := range []string{
		"alter table jobs set (autovacuum_enabled = off)",
		"alter table callbacks set (autovacuum_enabled = off)",
		"alter table commands set (autovacuum_enabled = off)",
		`insert into jobs (job_id, job_type, queue, payload, spec, trace_id, status, version, snapshot,
				created_at, updated_at)
			select uuidv7(-interval '9 days' + n * interval '1 s'), 'X', 'default', '{}', '{"priority":0,"maxRetryCount":3,"timeoutMs":1000}', gen_random_uuid(),
				(array['COMPLETED', 'WAITING'])[1 + n % 2], 1, '{}',
				now() - interval '9 days' + n * interval '1 s', now() - interval '9 days' + n * interval '1 s'
			from generate_series(1, 50000) n`,
		`insert into callbacks (job_id, attempt, outcome, body_hash, answered_at)
			select job_id, 1, 'completed', '', now() from jobs`,
		`insert into callbacks (job_id, attempt, outcome, body_hash, received_at)
			select job_id, 2, 'completed', '', updated_at from jobs where status = 'WAITING' order by job_id desc limit 50`,
		"insert into commands (job_id, number, command, by_whom) select job_id, 1, 'retry', 'me' from jobs where status = 'COMPLETED'",
	} {
		if _, err := s.Pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	plans.Forget()
	if err := s.Callbacks.Answer(t.Context()); err != nil {
		t.Fatal(err)
	}
	callbacks, _, err := s.Callbacks.Unconfirmed(t.Context(), apidb.Page{Until: time.Now(), Limit: 1000})
	if err != nil || len(callbacks) != 50 {
		t.Errorf("%d callbacks are not confirmed, %v", len(callbacks), err)
	}
	for name, most := range map[string]float64{"CallbacksAnswer": 50, "CallbacksUnconfirmed": 50, "WebhooksForget": 0} {
		if len(plans.Seen()[name]) == 0 {
			t.Errorf("%s was not run", name)
		}
		for _, plan := range plans.Seen()[name] {
			plan.Walk(func(n pgtest.Node) {
				if strings.Contains(n.Type, "Seq Scan") || strings.Contains(n.Type, "Bitmap") {
					t.Errorf("%s reads all of %s", name, n.Relation)
				}
				rows := n.Loops * (n.Rows + n.Removed)
				if strings.HasPrefix(n.Type, "Index") && rows > most {
					t.Errorf("%s visits %.0f rows of %s by %s, %.0f are enough", name, rows, n.Relation, n.Index, most)
				}
			})
		}
	}
}
