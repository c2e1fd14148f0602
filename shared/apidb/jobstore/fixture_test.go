package jobstore_test

import (
	"testing"

	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

type fixture struct{ *apidbtest.Fixture }

func open(t testing.TB) *fixture {
	t.Helper()
	return &fixture{apidbtest.New(t)}
}

// watched is a fixture that records how the server plans its statements.
func watched(t *testing.T) (*fixture, *pgtest.Plans) {
	t.Helper()
	f, plans := apidbtest.Watched(t)
	return &fixture{f}, plans
}
