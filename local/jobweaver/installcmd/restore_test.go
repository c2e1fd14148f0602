package installcmd

import (
	"bytes"
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/apidb"
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
