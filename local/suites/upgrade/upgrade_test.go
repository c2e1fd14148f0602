package upgrade

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
)

// newer is a migration of a later version than today's: it only adds.
const newer = `
	ALTER TABLE %[1]s ADD COLUMN of_tomorrow text NOT NULL DEFAULT 'x';
	CREATE TABLE tomorrow (of_tomorrow text);
	INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, true)`

// All functions of the older version run on the older schema, and jobs flow. Today's Jobs update the schema and the
// topics under them, by four processes at once, twice. Then each function is rolled to today's version, one after
// another, and back, on a schema that is newer than either: so each function has exchanged events with each function
// of the other version, in both directions. Every job ends as it should, and each of its attempts has run once.
func TestFunctionsAreRolledToTodaysAndBackWhileJobsFlow(t *testing.T) {
	t.Parallel()
	h := open(t, "OUTBOUND_ALLOW=127.0.0.0/8", "SHUTDOWN_DELAY=100ms")
	if err := h.migrate(h.builds.older); err != nil {
		t.Fatal(err)
	}
	if err := h.createTopics(h.builds.older); err != nil {
		t.Fatal(err)
	}
	h.startAll(h.builds.older)
	f := h.flow()
	h.jobs(h.builds.today)
	h.jobs(h.builds.today)
	for _, function := range functions() {
		h.roll(h.builds.today, function)
	}
	h.addOfTomorrow()
	h.jobs(h.builds.today)
	for _, function := range functions() {
		h.roll(h.builds.older, function)
	}
	// An event of one version that the other cannot read is published again by sweepers until a function can read it.
	if late := f.end(); late {
		t.Error("too many jobs ended late")
	}
	h.wantNoErrorLogs(3 * len(functions()))
	if names := f.names(); len(names) != len(shapes) {
		t.Errorf("only %v were submitted", names)
	}
}

// addOfTomorrow migrates the databases to a later version than today's.
func (h *fixture) addOfTomorrow() {
	h.t.Helper()
	for url, table := range map[string]string{
		h.urls.API: "jobs", h.urls.Scheduler: "jobs", h.urls.Worker: "execution_attempts",
	} {
		h.exec(url, fmt.Sprintf(newer, table))
	}
}

// wantNoErrorLogs reads all logs, of which there are so many at least. An event that another build cannot read would become a dead letter, and
// the sweepers would make up for it, so that every job would still end as it should.
func (h *fixture) wantNoErrorLogs(least int) {
	h.t.Helper()
	logs, err := filepath.Glob(filepath.Join(h.dir, "*.log"))
	if err != nil || len(logs) < least {
		h.t.Fatalf("there are only the logs %v: %v", logs, err)
	}
	for _, path := range logs {
		text, err := os.ReadFile(path)
		if err != nil {
			h.t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, `"level":"ERROR"`) || strings.Contains(line, " rejected") {
				h.t.Errorf("%s: %s", filepath.Base(path), line)
				break // one line of each process is enough
			}
		}
	}
}

// startAll starts every function at once, as kubectl apply does.
func (h *fixture) startAll(bin string) {
	h.t.Helper()
	var all errgroup.Group
	for _, function := range functions() {
		p := h.begin(bin, function)
		h.running[function] = p
		all.Go(func() error { return p.await(context.Background(), "readiness", 200, readyWithin) })
	}
	if err := all.Wait(); err != nil {
		h.t.Fatal(err)
	}
}
