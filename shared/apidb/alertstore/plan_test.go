package alertstore_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/alertstore"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

// At 500,000 tallies and 20,000 alerts of 1,000 owners without statistics, a pass visits a page of alerts and the
// tallies of their windows. It visits no job, so their number is of no importance.
func TestAPassVisitsAPageOfAlertsAndTheirWindows(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("one goroutine asks PostgreSQL: there is nothing to race")
	}
	s, plans := apidbtest.Watched(t)
	for _, sql := range []string{
		"alter table tallies set (autovacuum_enabled = off)",
		"alter table alerts set (autovacuum_enabled = off)",
		"alter table alert_notices set (autovacuum_enabled = off)",
		`insert into alerts (alert_id, owner_id, name, job_type, queue, error_code, failures, percent, window_minutes, quiet_minutes,
				destination, paused)
			select uuidv7(), 'o' || n % 1000, 'n' || n, '', '', '', 1000000, 0, 5, 60, '{"slack": "https://example.org/x"}', false
			from generate_series(1, 20000) n`,
		`insert into tallies (everyone, owner_id, grain, at, queue, job_type, what, n, kept)
			select false, 'o' || o, 'minute', date_trunc('minute', now()) - m * interval '1 min', 'default', 'T' || k % 2,
				(array['COMPLETED', 'FAILED'])[1 + k / 2], 1, 0
			from generate_series(0, 999) o, generate_series(0, 124) m, generate_series(0, 3) k`,
		`insert into alert_notices (alert_id, notice_id, state, failed, ended, job_id)
			select alert_id, uuidv7(), 'TEST', 0, 0, uuidv7() from alerts cross join generate_series(1, 5)`,
	} {
		if _, err := s.Pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	plans.Forget()
	if _, _, err := s.Alerts.Evaluate(t.Context(), alertstore.Rules{}); err != nil {
		t.Fatal(err)
	}
	acme := apidb.OwnerOf("o1")
	key := apidb.Key{Name: "n1"}
	if _, _, err := s.Alerts.Notices(t.Context(), acme, key, uuid.Max, 10); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Alerts.Test(t.Context(), nil, acme, key, nil, alertstore.Rules{}); err != nil {
		t.Fatal(err)
	}
	for _, firing := range []bool{false, true} {
		if _, _, err := s.Alerts.List(t.Context(), apidb.Everyone, alertstore.Filter{Firing: firing, Limit: 50}); err != nil {
			t.Fatal(err)
		}
	}
	for name, most := range map[string]float64{ // the most rows that each statement may visit
		"AlertsPage": 500, "AlertTallies": 500 * 6 * 4, "AlertsNamed": 2, "AlertLock": 1, "AlertNoticesList": 11,
		"AlertNoticesForget": 201, "AlertsList": 51, "AlertsFiring": 0,
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
				if n.Index == "" || n.Rows*n.Loops > most {
					t.Errorf("%s visits %s by %s %s: %v rows %v times", name, n.Relation, n.Type, n.Index, n.Rows, n.Loops)
				}
			})
		}
	}
}
