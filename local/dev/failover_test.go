package dev_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/infra/laptop/localpostgres"
	"github.com/jobweaver/jobweaver/local/dev"
	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/testwait"
)

// A failover by DNS or a virtual address, a provider that protects a full disk, and an operator do this. Sessions that
// began meanwhile stay read only until they end.
func TestEverythingWorksAgainSecondsAfterTheDatabasesWereReadOnly(t *testing.T) {
	t.Parallel()
	server, err := localpostgres.Start(t.Context(), localpostgres.Config{Dir: t.TempDir(), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	o := options(t, newFolder(t))
	o.DatabaseURL = server.URL()
	err = dev.Run(t.Context(), o, func(ctx context.Context, url string) error {
		f := &failover{t: t, url: url, api: client.New(url, "", client.WithRetries(0)), server: server.URL()}
		waiting := f.submit(ctx, 5*time.Second) // its attempt begins during the outage
		f.until(ctx, f.submit(ctx, 0))
		f.sql(ctx, "ALTER DATABASE jobweaver_%s SET default_transaction_read_only = on")
		f.sql(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'jobweaver_%s'")
		f.refused(ctx, "the database accepts no writes")
		f.sql(ctx, "ALTER DATABASE jobweaver_%s RESET default_transaction_read_only")
		began := time.Now()
		for {
			if _, err := f.api.Submit(ctx, job(0)); err == nil {
				break
			} else if time.Since(began) > 15*time.Second {
				return err
			}
		}
		f.until(ctx, f.submit(ctx, 0))
		f.until(ctx, waiting)
		t.Logf("jobs ended %s after the databases were writable", time.Since(began))
		if time.Since(began) > 30*time.Second {
			t.Errorf("jobs ended only %s after the databases were writable", time.Since(began))
		}
		f.health(ctx, "UP", "")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// failover is an installation whose databases a test makes read only.
type failover struct {
	t           *testing.T
	url, server string
	api         *client.Client
}

func job(delay time.Duration) client.JobRequest {
	return client.JobRequest{
		JobType: "SIMULATION", Delay: delay, Payload: json.RawMessage(`{"steps": [{"type": "LOG", "message": "hi"}]}`),
	}
}

func (f *failover) submit(ctx context.Context, delay time.Duration) (id string) {
	f.t.Helper()
	accepted, err := f.api.Submit(ctx, job(delay))
	if err != nil {
		f.t.Fatal(err)
	}
	return accepted.JobID
}

func (f *failover) until(ctx context.Context, id string) {
	f.t.Helper()
	ended, err := client.Follow(ctx, f.api, id, func(*client.Job) {})
	if err != nil || ended.Status != "COMPLETED" {
		f.t.Fatalf("job %s: %+v, %v", id, ended, err)
	}
}

// sql runs a statement for each of the three databases.
func (f *failover) sql(ctx context.Context, statement string) {
	f.t.Helper()
	conn, err := pgx.Connect(ctx, f.server)
	if err != nil {
		f.t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	for _, database := range []string{"api", "scheduler", "worker"} {
		if _, err := conn.Exec(ctx, fmt.Sprintf(statement, database)); err != nil {
			f.t.Fatal(err)
		}
	}
}

// refused checks that the gateway refuses jobs and reports why.
func (f *failover) refused(ctx context.Context, why string) {
	f.t.Helper()
	for began := time.Now(); ; { // the first requests meet sessions that have just ended
		_, err := f.api.Submit(ctx, job(0))
		refused := new(client.Error)
		if !errors.As(err, &refused) || refused.Status != http.StatusServiceUnavailable || time.Since(began) > 10*time.Second {
			f.t.Fatalf("a job is answered with %v", err)
		}
		if refused.Message == why {
			break
		}
	}
	f.health(ctx, "DOWN", why)
}

// health checks what GET /api/health shows within 10 s.
func (f *failover) health(ctx context.Context, status, why string) {
	f.t.Helper()
	began := time.Now()
	testwait.Until(f.t, "health "+status, func() bool {
		var got struct {
			Status     string
			Components struct {
				DB struct{ Status, Reason string }
			}
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.url+"/api/health", http.NoBody)
		if err != nil {
			f.t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(req)
		if err == nil {
			err = errors.Join(json.NewDecoder(res.Body).Decode(&got), res.Body.Close())
		}
		return err == nil && got.Status == status && got.Components.DB.Reason == why
	})
	if took := time.Since(began); took > 10*time.Second {
		f.t.Errorf("health is %s only after %s", status, took)
	}
}
