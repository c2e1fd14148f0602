package installcmd

import (
	"bytes"
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/installation"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

func TestDatabasesAreComparedOnlyWithoutConnectedFunctions(t *testing.T) {
	t.Parallel()
	api, scheduler := pgtest.Database(t, migrations.API), pgtest.Database(t, migrations.Scheduler)
	function, err := apidb.Open(t.Context(), api)
	if err != nil {
		t.Fatal(err)
	}
	if err := function.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err = afterRestore(t.Context(), api, scheduler)
	if err == nil || !strings.Contains(err.Error(), "stop all of them first") {
		t.Errorf("beside a function: %v", err)
	}
	function.Close()
	report, err := afterRestore(t.Context(), api, scheduler)
	if err != nil {
		t.Fatal(err)
	}
	var printed bytes.Buffer
	if err := printRestored(&printed, report); err != nil || !strings.Contains(printed.String(), "compared 0 jobs") {
		t.Errorf("printed %q, %v", printed.String(), err)
	}
}

func TestARestoreOfOneInstallationLeavesTheOtherRunning(t *testing.T) {
	t.Parallel()
	database, urls := pgtest.Database(t, migrations.Worker), map[string]migrations.URLs{}
	for _, name := range []installation.Name{"a", "b"} {
		layout := migrations.Layout{Installation: name, Schemas: true}
		made, err := layout.Ensure(t.Context(), database)
		if err != nil {
			t.Fatal(err)
		}
		for _, set := range layout.Sets() {
			if err := migrations.Up(t.Context(), made.Of(set.Functions[0]), set, nil); err != nil {
				t.Fatal(err)
			}
		}
		urls[string(name)] = made
	}
	function, err := apidb.Open(t.Context(), urls["b"].API)
	if err != nil {
		t.Fatal(err)
	}
	defer function.Close()
	if err := function.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := afterRestore(t.Context(), urls["a"].API, urls["a"].Scheduler); err != nil {
		t.Errorf("beside a function of the other: %v", err)
	}
	if _, err := afterRestore(t.Context(), urls["b"].API, urls["b"].Scheduler); err == nil || !strings.Contains(err.Error(), "stop all of them first") {
		t.Errorf("beside a function: %v", err)
	}
}
