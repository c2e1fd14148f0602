package gateway_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/functions/gateway"
)

// One owner sends more slow reads and batches than there are connections. Other owners, whose keys have to be read first,
// still get responses.
//
// Without shares of connections, one owner could make the API unavailable.
func TestSlowRequestsOfAnOwnerLeaveConnectionsToOthers(t *testing.T) {
	t.Parallel()
	// Each slow request waits for the lock until the request's own limit, which is longer than others may wait.
	h := openWith(t, func(cfg *gateway.Config) { cfg.Auth = gateway.AuthOn }, "lock_timeout=60s")
	slow := h.as("slow", "admin")
	slow.get("/api/jobs").want(http.StatusOK)
	conn, err := pgx.Connect(t.Context(), h.dbURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "lock table jobs in access exclusive mode"); err != nil {
		t.Fatal(err)
	}
	var all errgroup.Group
	for range 10 {
		all.Go(func() error {
			if r := slow.get("/api/jobs?tag=none"); r.status != http.StatusOK && r.status != http.StatusTooManyRequests {
				t.Errorf("a slow list answers %d %s", r.status, r.body)
			}
			return nil
		})
		all.Go(func() error {
			r := slow.post("/api/jobs/batch", `{"jobs": [`+plainJob+`,`+plainJob+`]}`)
			if r.status != http.StatusOK && r.status != http.StatusTooManyRequests {
				t.Errorf("a slow batch answers %d %s", r.status, r.body)
			}
			return nil
		})
	}
	// The gateway itself looks for due fan-outs and held jobs now and then.
	waiting := func() (n int) {
		h.sql(`select count(*) from pg_locks join pg_stat_activity using (pid)
			where not granted and relation = 'jobs'::regclass and datname = current_database()
				and query !~ 'name: (FanOut|Held)'`, &n)
		return n
	}
	for deadline := time.Now().Add(10 * time.Second); waiting() < 2; {
		if time.Now().After(deadline) {
			t.Fatal("nothing hangs")
		}
	}
	began := time.Now()
	for _, path := range []string{"/api/me", "/api/schedules", "/api/keys"} {
		h.as("other", "admin").get(path).want(http.StatusOK)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("others waited for %s", took)
	}
	if n := waiting(); n > 2 {
		t.Errorf("%d connections wait for one owner", n)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	_ = all.Wait()
	slow.get("/api/jobs?tag=none").want(http.StatusOK)
}
