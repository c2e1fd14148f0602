package deliverystore_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/deliverystore"
	"github.com/jobweaver/jobweaver/shared/apidb/statusstore"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

// At 200,000 deliveries without statistics, most of them due to one host and the rest to a thousand others, the
// statements for due deliveries, lists and deletion visit no more rows than they return.
func TestDeliveringVisitsWhatItTakesOnly(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("one goroutine asks PostgreSQL: there is nothing to race")
	}
	s, plans := apidbtest.Watched(t)
	for _, sql := range []string{
		"alter table deliveries set (autovacuum_enabled = off)",
		`insert into deliveries (job_id, version, owner_id, job_status, url, job, snapshot, status, next_at, finished_at)
			select uuidv7(-interval '9 days' + n * interval '0.5 s'), 1, 'o' || n / 50000, 'FAILED',
				case when n % 10 = 0 then 'http://h' || n / 10 % 100 || '/' else 'http://dead/' end, '{}', '{}',
				case when n % 4 = 0 then 'DELIVERED' else 'PENDING' end, case when n % 4 > 0 then now() - interval '1 h' end,
				case when n % 4 = 0 then now() - n * interval '1 s' end
			from generate_series(1, 200000) n`,
	} {
		if _, err := s.Pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	plans.Forget()
	hosts, next, err := s.Deliveries.Turns(t.Context(), deliverystore.Page{
		FromOwner: "o", After: map[string]string{"o2": "h5"}, MaxOwners: 3, MaxHosts: 20,
	})
	if err != nil || len(hosts) != 60 || !hosts[59].Due || next != "o3" {
		t.Fatalf("got %v, %s, %v", hosts, next, err)
	}
	if wait, ok, err := s.Deliveries.Next(t.Context()); wait > 0 || !ok || err != nil {
		t.Errorf("the next is due in %s, %v, %v", wait, ok, err)
	}
	claimed, err := s.Deliveries.Claim(t.Context(), map[deliverystore.Place]int{{"o1", "dead"}: 8, hosts[59].Place: 8, {"o1", "none"}: 8}, time.Minute)
	if err != nil || len(claimed) != 16 {
		t.Fatalf("claimed %d, %v", len(claimed), err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(s.Deliveries.Settle(t.Context(), claimed[0], deliverystore.Tried{Status: deliverystore.Delivered}))
	must(s.Deliveries.Release(t.Context(), claimed[1]))
	for _, status := range []deliverystore.Status{"", deliverystore.Pending, deliverystore.Failed} {
		_, _, err := s.Deliveries.List(t.Context(), apidb.Everyone, deliverystore.Filter{Status: status, Limit: 100})
		must(err)
	}
	own, _, err := s.Deliveries.List(t.Context(), apidb.OwnerOf("o1"), deliverystore.Filter{Limit: 30})
	if err != nil || len(own) != 30 {
		t.Errorf("an owner has %d deliveries, %v", len(own), err)
	}
	_, err = s.Deliveries.OfJob(t.Context(), apidb.Everyone, claimed[0].JobID, 10)
	must(err)
	_, err = s.Deliveries.Retry(t.Context(), nil, apidb.Everyone, claimed[0].JobID, 1)
	must(err)
	n, err := s.Deliveries.DeleteOld(t.Context(), time.Hour, 1000)
	if err != nil || n != 1000 {
		t.Errorf("forgot %d, %v", n, err)
	}
	id := uuid.New()
	_, err = s.Statuses.ApplyStatuses(t.Context(), []statusstore.PublishedStatus{{JSON: []byte(`{}`), Status: jobevent.Status{JobID: id, Version: 1, Status: "FAILED"}}})
	must(err)
	for name, most := range map[string]float64{
		"DeliveryOwners": 61, "DeliveryTurns": 61, "DeliveryNext": 1, "DeliveriesClaim": 16, "DeliverySettle": 1, "DeliveryRelease": 1, "DeliveriesList": 101,
		"DeliveriesListByStatus": 101, "DeliveriesListOwned": 93, "DeliveriesOfJob": 1, "DeliveryRetry": 1, "DeliveriesForget": 1000, "JobsApplyStatus": 1,
	} {
		if len(plans.Seen()[name]) == 0 {
			t.Errorf("%s was not run", name)
		}
		for _, plan := range plans.Seen()[name] {
			plan.Walk(func(n pgtest.Node) {
				if strings.Contains(n.Type, "Seq Scan") || strings.Contains(n.Type, "Bitmap") || n.Type == "Sort" && most > 100 {
					t.Errorf("%s reads all of %s (%s)", name, n.Relation, n.Type)
				}
				if rows := n.Loops * (n.Rows + n.Removed); slices.Contains([]string{"Index Scan", "Index Only Scan"}, n.Type) && rows > most {
					t.Errorf("%s visits %.0f rows of %s by %s, %.0f are enough", name, rows, n.Relation, n.Index, most)
				}
			})
		}
	}
}
