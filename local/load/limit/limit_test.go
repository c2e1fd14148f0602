package limit

import (
	"bytes"
	"math"
	"os"
	"strings"
	"testing"
	"time"
)

// large has so many cores and partitions that only the lock ends it.
var large = Model{Cores: 64, Batch: 500, Commit: time.Millisecond, Split: 64, Costs: Measured}

func near(t *testing.T, what string, got, want, part float64) {
	t.Helper()
	if math.Abs(got-want) > part*want {
		t.Errorf("%s: %.0f, want %.0f", what, got, want)
	}
}

// The lock is held twice for each batch, with a commit each, and for the dispatch of each job.
func TestTheLockEndsAnInstallationWhereTheFormulaHasIt(t *testing.T) {
	t.Parallel()
	m := large
	m.Split, m.Costs.Dispatch = 1, 150 // one partition always has a whole batch
	m.Costs.Ingest, m.Costs.Finish, m.Costs.Insert, m.Costs.Project, m.Costs.Statement = 0, 0, 0, 0, 0
	end := m.End()
	near(t, "the end", end.Offered, 1/(2*m.Commit.Seconds()/500+150e-6), 0.1)
	if end.Busy["lock"] < 0.97 {
		t.Errorf("the lock is busy for %.2f of the time", end.Busy["lock"])
	}
}

func TestTheCoresOfADatabaseEndAnInstallation(t *testing.T) {
	t.Parallel()
	m := large
	m.Cores, m.Costs.Work, m.Costs.Statement = 1, 200, 0
	end := m.End()
	near(t, "the end", end.Offered, 1/200e-6, 0.1)
	if end.Limit() != "worker" {
		t.Errorf("the busiest part is %s", end.Limit())
	}
}

// The bench measured 13,000 jobs a second on the machine on which the costs were measured, docs/performance.md.
func TestOneMachineEndsWhereItWasMeasured(t *testing.T) {
	t.Parallel()
	m := Model{
		Cores: 2, Together: true, Batch: 500, Commit: time.Millisecond, Hop: time.Millisecond / 2, Split: 3, Costs: Measured,
	}
	near(t, "the end", m.End().Offered, 13_000, 0.1)
}

func TestBeyondTheEndNoMoreIsDone(t *testing.T) {
	t.Parallel()
	m := Model{Cores: 16, Keys: true, Batch: 500, Commit: time.Millisecond, Split: 3, Costs: Measured}
	end := m.End()
	beyond := m.At(2 * end.Offered)
	if beyond.Holds() || beyond.Done > 1.15*end.Offered || beyond.P50 < 4*end.P50 {
		t.Errorf("at the end %+v, beyond %+v", end, beyond)
	}
	var out bytes.Buffer
	if err := m.Print(&out); err != nil || !strings.Contains(out.String(), "it ends at ") || strings.Count(out.String(), "\n") != 12 {
		t.Errorf("%v: %s", err, &out)
	}
}

// The page has the table of the command, so that neither changes alone.
func TestOperationsHasTheSizesThatTheCommandPrints(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	var table bytes.Buffer
	if err := PrintSizes(&table); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "\n\n"+table.String()+"\n") || !strings.Contains(string(page), PricesOf) {
		t.Errorf("docs/operations.md lacks\n%s", &table)
	}
}
