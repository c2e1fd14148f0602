package serve_test

import (
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/pgtest/pgbouncer"
)

// Sessions of a pooler have no parameters of their start, no prepared statements, no LISTEN and no locks of their own.
func TestAnInstallationRunsBehindAPooler(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"session", "transaction"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			direct := server(t).URL()
			pooled := pgbouncer.Start(t, direct, mode)
			first := start(t, pooled, "", "DATABASE_DIRECT_URL="+direct)
			first.untilReady()
			c := first.client(first.key())
			standby := start(t, pooled, "", "DATABASE_DIRECT_URL="+direct)
			standby.until("it stands by", func() bool { return strings.Contains(standby.text(), "standing by") })
			runs(t, c)
			checkSessions(t, direct)
			if code := first.stop(syscall.SIGKILL); code != -1 {
				t.Errorf("it exits with %d", code)
			}
			standby.untilReady()
			runs(t, standby.client(first.key()))
			if code := standby.stop(syscall.SIGTERM); code != 0 {
				t.Errorf("it exits with %d", code)
			}

			if mode == "transaction" {
				renewsSessions(t, pooled, direct)
			}
			alone := start(t, direct, "") // the role keeps its settings, which no longer matter
			alone.untilReady()
			runs(t, alone.client(first.key()))
		})
	}
}

// runs completes jobs of several kinds.
func runs(t *testing.T, c *client.Client) {
	t.Helper()
	for name, request := range map[string]client.JobRequest{
		"a job":       hello(),
		"a later one": {JobType: "SIMULATION", Payload: hello().Payload, Delay: time.Second},
	} {
		if job, err := c.Run(t.Context(), request); err != nil || job.Status != client.Completed {
			t.Errorf("%s is %+v, %v", name, job, err)
		}
	}
	requests := make([]client.JobRequest, 50)
	for i := range requests {
		requests[i] = hello()
	}
	results, err := c.SubmitBatch(t.Context(), requests)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if job, err := c.Wait(t.Context(), r.JobID); err != nil || job.Status != client.Completed {
			t.Errorf("one of many is %+v, %v", job, err)
		}
	}
}

// checkSessions checks what all sessions of the pooler have, and that functions listen beside it.
func checkSessions(t *testing.T, direct string) {
	t.Helper()
	listening := query(t, direct, `select count(*) from pg_stat_activity where application_name = 'jobweaver-direct'
		and query like 'LISTEN%'`)
	if n, _ := strconv.Atoi(listening); n < 5 {
		t.Errorf("%s functions listen", listening)
	}
	for _, setting := range []string{"lock_timeout=3s", "enable_seqscan=off", "idle_in_transaction_session_timeout=3s"} {
		if n := query(t, direct, `select count(*) from pg_db_role_setting where '`+setting+`' = any (setconfig)`); n != "3" {
			t.Errorf("%s databases have %s", n, setting)
		}
	}
}

// Another client of the pooler has changed a session for all.
func renewsSessions(t *testing.T, pooled, direct string) {
	t.Helper()
	u, err := url.Parse(pooled)
	if err != nil {
		t.Fatal(err)
	}
	u.Path, u.RawQuery = "/jobweaver_api", "default_query_exec_mode=exec"
	run(t, u.String(), "set lock_timeout = '99s'")
	p := start(t, pooled, "", "DATABASE_DIRECT_URL="+direct)
	p.untilReady()
	if found := query(t, u.String(), "show lock_timeout"); found != "3s" || !strings.Contains(p.text(), "idle sessions of the pooler are ended") {
		t.Errorf("the sessions have %s", found)
	}
	p.stop(syscall.SIGTERM)
}

// The error is that of the first start, with what to do.
func TestAPoolerWithoutTheAddressOfItsServerIsNamed(t *testing.T) {
	t.Parallel()
	pooled := pgbouncer.Start(t, server(t).URL(), "transaction")
	p := start(t, pooled, "")
	<-p.ended
	if !strings.Contains(p.text(), "DATABASE_DIRECT_URL") {
		t.Errorf("it printed %s", p.text())
	}
}
