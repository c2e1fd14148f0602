package installcmd

import (
	"bytes"
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

func TestDatabasesAreComparedOnlyWhileNoFunctionWorksOnThem(t *testing.T) {
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
	var said bytes.Buffer
	if err := printRestored(&said, report); err != nil || !strings.Contains(said.String(), "looked at 0 jobs") {
		t.Errorf("it returned %q, %v", said.String(), err)
	}
}
