package serve_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/infra/laptop/localpostgres"
	"github.com/jobweaver/jobweaver/local/serve"
	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/testwait"
)

// locks counts the sessions that hold the lock of an installation.
func locks(t *testing.T, database string) string {
	t.Helper()
	return query(t, database, "select count(*) from pg_locks where granted and locktype = 'advisory' and objid = "+fmt.Sprint(serve.Place))
}

// It is stopped while it migrates or has just begun to, and while it wires each of some functions.
func TestAProcessThatIsStoppedWhileItStartsEndsWithoutAnError(t *testing.T) {
	long(t)
	database := server(t).URL()
	for range 2 {
		p := start(t, database, "")
		p.until("it answers", func() bool {
			status, _ := p.get("/health/liveness")
			return status == http.StatusOK
		})
		if code := p.stop(syscall.SIGTERM); code != 0 {
			t.Errorf("stopped early, it exits with %d", code)
		}
	}
	for _, function := range []string{"gateway", "dispatch", "runjob", "pull"} {
		p := start(t, database, "", processEnv+"_STOP_AT="+function)
		<-p.ended
		if code := p.cmd.ProcessState.ExitCode(); code != 0 {
			t.Errorf("stopped at %s, it exits with %d: %s", function, code, p.text())
		}
	}
}

func TestAPortInUseIsNamedBeforeAnythingElseHappens(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	p := start(t, "postgres://app@127.0.0.1:1/none", "", "PORT="+port)
	<-p.ended
	if code := p.cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(p.text(), "HOST and PORT: ") {
		t.Errorf("it exits with %d: %s", code, p.text())
	}
}

// The server is away at the start, and then for longer than the session of a process may be silent.
func TestOneOfTwoProcessesServesWheneverTheirServerDoes(t *testing.T) {
	long(t)
	s := server(t)
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	both := []*process{start(t, s.URL(), "", "AUTH=off"), start(t, s.URL(), "", "AUTH=off")}
	for _, p := range both {
		p.until("it waits", func() bool { return strings.Contains(p.text(), "waiting for the database") })
		if status, _ := p.get("/health/liveness"); status != http.StatusOK {
			t.Errorf("without a server it is not alive: %d", status)
		}
	}
	for range 2 {
		if err := s.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		for serving := oneOf(t, both); !serving.ran(hello()); {
			serving = oneOf(t, both) // the one before was back sooner, but the other one has the lock
		}
		testwait.Until(t, "one session has the lock", func() bool {
			n := locks(t, s.URL())
			if n > "1" {
				t.Fatalf("%s sessions have the lock", n)
			}
			return n == "1"
		})
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
		<-time.After(6 * time.Second) // see idleTimeout
	}
}

// oneOf returns a process that serves. The other one stands by, or has ended because it had the lock before.
func oneOf(t *testing.T, both []*process) (serving *process) {
	t.Helper()
	testwait.Until(t, "one of them serves", func() bool {
		for _, p := range both {
			if status, _ := p.get("/health/readiness"); status == http.StatusOK {
				serving = p
			}
		}
		return serving != nil
	})
	return serving
}

// ran runs a job on the process; false: the process has ended meanwhile.
func (p *process) ran(request client.JobRequest) bool {
	p.t.Helper()
	ctx, cancel := context.WithCancel(p.t.Context())
	defer cancel()
	go func() {
		select {
		case <-p.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	job, err := p.client("").Run(ctx, request)
	if err != nil && ctx.Err() != nil {
		return false
	}
	if err != nil || job.Status != client.Completed {
		p.t.Fatalf("a job is %+v, %v", job, err)
	}
	return true
}

// Its standby serves only once it has ended. So it serves while its workers drain, and then ends though clients go on.
func TestAProcessThatStopsServesUntilItsWorkersHaveEnded(t *testing.T) {
	t.Parallel()
	inside, release := make(chan struct{}), make(chan struct{})
	work := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(inside)
		<-release
	}))
	t.Cleanup(work.Close)
	p := start(t, server(t).URL(), "", "AUTH=off", "SHUTDOWN_DELAY=1s")
	p.untilReady()
	c := p.client("")
	if _, err := c.Submit(t.Context(), client.JobRequest{JobType: "FUNCTION", Payload: map[string]any{"url": work.URL}}); err != nil {
		t.Fatal(err)
	}
	<-inside
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.until("it drains", func() bool { return strings.Contains(p.text(), "worker stopping") })
	if status, body := p.get("/health/readiness"); status != http.StatusOK {
		t.Errorf("while its workers drain the probe answers %d %s", status, body)
	}
	if _, err := c.Submit(t.Context(), hello()); err != nil {
		t.Errorf("while its workers drain a job is refused: %v", err)
	}
	released := time.Now()
	close(release)
	for ended := false; !ended; {
		select {
		case <-p.ended:
			ended = true
		case <-time.After(20 * time.Millisecond):
			_, _ = c.Submit(t.Context(), hello())
		}
	}
	testwait.CheckPromptly(t, "the end after the last attempt", time.Since(released), 10*time.Second)
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("it exits with %d", code)
	}
}

// After a failover by DNS or a virtual address, the old server goes on answering its sessions, and takes no writes.
func TestTheLockOfAServerThatTakesNoWritesIsWorthNothing(t *testing.T) {
	t.Parallel()
	s := server(t)
	p := start(t, s.URL(), "", "AUTH=off")
	p.untilReady()
	setReadOnly(t, s, "on")
	p.until("it has let the lock go", func() bool { return locks(t, s.URL()) == "0" })
	setReadOnly(t, s, "off")
	p.until("it has the lock again", func() bool { return locks(t, s.URL()) == "1" })
	p.untilReady()
	if job, err := p.client("").Run(t.Context(), hello()); err != nil || job.Status != client.Completed {
		t.Errorf("a job is %+v, %v", job, err)
	}
}

func setReadOnly(t *testing.T, s *localpostgres.Server, value string) {
	t.Helper()
	run(t, s.URL(), "alter system set default_transaction_read_only = "+value)
	run(t, s.URL(), "select pg_reload_conf()")
}

// A process of the previous version that starts again must not take rights from those of the new version beside it.
func TestTheRightsThatANewerVersionHasGrantedStay(t *testing.T) {
	t.Parallel()
	database := server(t).URL()
	p := start(t, database, "", "AUTH=off")
	p.untilReady()
	if code := p.stop(syscall.SIGTERM); code != 0 {
		t.Errorf("it exits with %d", code)
	}
	api, err := migrations.WithDatabase(database, migrations.API.Database())
	if err != nil {
		t.Fatal(err)
	}
	run(t, api, `create table tomorrow (number int)`)
	run(t, api, `insert into goose_db_version (version_id, is_applied) values (99999, true)`)
	run(t, api, `grant select on tomorrow to jobweaver_gateway`)
	p = start(t, database, "", "AUTH=off")
	p.untilReady()
	if kept := query(t, api, `select has_table_privilege('jobweaver_gateway', 'tomorrow', 'select')::text`); kept != "true" {
		t.Error("it has taken a right away")
	}
}
