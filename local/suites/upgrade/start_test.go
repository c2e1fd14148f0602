package upgrade

import (
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/schedulerdb"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

// A deployment applies everything at once: Jobs, functions, servers, in any order.
func TestJobsWaitForTheirServersAndFunctionsForTheJobs(t *testing.T) {
	t.Parallel()
	h := open(t)
	if err := h.postgres.Stop(); err != nil {
		t.Fatal(err)
	}
	h.broker.kill()
	jobs := make(chan error, 2)
	go func() { jobs <- h.migrate(h.builds.today) }()
	go func() { jobs <- h.createTopics(h.builds.today) }()
	select {
	case err := <-jobs:
		t.Fatalf("a Job did not wait for its server: %v", err)
	case <-time.After(500 * time.Millisecond):
	}
	h.restartPostgres()
	h.startBroker()
	for range 2 {
		if err := <-jobs; err != nil {
			t.Fatal(err)
		}
	}

	show := h.hide(h.urls.Worker, workerdb.NewestOfSchema)
	p := h.begin(h.builds.today, "runjob")
	if err := awaitLine(p, "waiting for the migrations"); err != nil {
		t.Fatal(err)
	}
	show()
	if err := p.await(t.Context(), "readiness", http.StatusOK, readyWithin); err != nil {
		t.Errorf("the worker is not ready once the migrations have run: %v\n%s", err, p.tail())
	}
	if err := p.stop(); err != nil {
		t.Error(err)
	}

	h.hide(h.urls.Scheduler, schedulerdb.NewestOfSchema)
	late := h.begin(h.builds.today, "ingest")
	select {
	case <-late.ended:
	case <-time.After(readyWithin):
		t.Fatal("a function without its migrations neither works nor ends")
	}
	if logged := late.tail(); late.cmd.ProcessState.ExitCode() != 1 || !strings.Contains(logged, "run jobweaver migrate") {
		t.Errorf("it ended with %s: %s", late.cmd.ProcessState, logged)
	}
}

// hide gives the newest table, column or function of a schema another name until show is called.
func (h *fixture) hide(url, newest string) (show func()) {
	rename, name := "ALTER TABLE %s RENAME TO %s", newest
	if function, isOne := strings.CutSuffix(newest, "()"); isOne {
		rename, name = "ALTER FUNCTION %s RENAME TO %s", function
	} else if table, column, isOne := strings.Cut(newest, "."); isOne {
		rename, name = "ALTER TABLE "+table+" RENAME %s TO %s", column
	}
	h.exec(url, fmt.Sprintf(rename, name, "not_yet"))
	return func() { h.exec(url, fmt.Sprintf(rename, "not_yet", name)) }
}

// Each function works on one of the three databases, and their URLs differ in one word.
func TestAFunctionOnTheDatabaseOfAnotherDoesNotStart(t *testing.T) {
	t.Parallel()
	h := open(t)
	if err := h.migrate(h.builds.today); err != nil {
		t.Fatal(err)
	}
	sets := []migrations.Set{migrations.API, migrations.Scheduler, migrations.Worker}
	for _, needs := range sets {
		for _, given := range sets {
			if given.Name == needs.Name {
				continue
			}
			for _, function := range needs.Functions {
				p := h.launch(function+"-on-"+given.Name, exec.Command(filepath.Join(h.builds.today, function)), append([]string{
					"HOST=127.0.0.1", "AUTH=off", "PORT=0", "KAFKA_BROKERS=" + h.brokers,
					"DATABASE_URL=" + h.urls.Of(given.Functions[0]),
				}, h.env...)...)
				select {
				case <-p.ended:
				case <-time.After(readyWithin):
					t.Fatalf("%s started", p.name)
				}
				want := "has the schema of " + given.Database() + ", and " + needs.Database() + " is needed"
				if out := p.tail(); p.cmd.ProcessState.ExitCode() != 1 || !strings.Contains(out, want) {
					t.Errorf("%s ended with %s: %s", p.name, p.cmd.ProcessState, out)
				}
			}
		}
	}
}

func awaitLine(p *process, line string) error {
	for began := time.Now(); time.Since(began) < readyWithin; <-time.After(20 * time.Millisecond) {
		if strings.Contains(p.tail(), line) {
			return nil
		}
	}
	return &missing{line, p.tail()}
}

type missing struct{ line, logged string }

func (m *missing) Error() string { return "it never logged " + m.line + ": " + m.logged }
