package bench

import (
	"strings"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/local/load/figures"
	"github.com/jobweaver/jobweaver/local/load/rig"
)

func TestAFeederReplacesWhatIsDone(t *testing.T) {
	t.Parallel()
	f := &feeder{waiting: 1000, batch: 500}
	for i, c := range []struct {
		done int
		want bool
	}{{0, true}, {0, true}, {0, false}, {1, true}, {1, false}, {500, false}, {501, true}} {
		if got := f.take(c.done); got != c.want {
			t.Errorf("step %d: one more is %v", i, got)
		}
	}
}

func TestWhatWasCountedIsDividedByTheJobs(t *testing.T) {
	t.Parallel()
	before := rig.Counts{WALBytes: 1000, Transactions: 5, Statements: map[rig.Statement]rig.Called{
		{Database: "a", Text: "select 1"}: {Calls: 7, Rows: 7, Millis: 1},
	}}
	after := rig.Counts{WALBytes: 21000, Transactions: 25, Statements: map[rig.Statement]rig.Called{
		{Database: "a", Text: "select 1"}: {Calls: 7, Rows: 7, Millis: 1},
		{Database: "a", Text: "with a as (\n\tselect 1 for update of b)\nupdate jobs set x = 1"}: {Calls: 5, Rows: 10, Millis: 2},
		{Database: "b", Text: "begin"}: {Calls: 15, Millis: 4},
	}}
	c := &figures.Cost{Jobs: 10}
	fillCost(c, after.Minus(before), []rig.Table{
		{Database: "a", Name: "jobs", Inserts: 10, Updates: 20, HotUpdates: 5, Bytes: 1000, IndexBytes: 500},
		{Database: "b", Name: "attempts", Inserts: 10, Deletes: 10, Bytes: 100},
	})
	if c.WALBytes != 2000 || c.Transactions != 2 || c.Statements != 2 || c.RowWrites != 5 || c.DatabaseBytes != 160 {
		t.Errorf("got %s", counts(c))
	}
	if len(c.TopStatements) != 2 || c.TopStatements[0].Text != "begin" || c.TopStatements[1].Text != "update jobs: with a as ( select 1 for update of b) update jobs set x = 1" {
		t.Errorf("top statements %+v", c.TopStatements)
	}
	if c.Tables[0].HotUpdates != .5 || c.Tables[0].Updates != 2 {
		t.Errorf("table %+v", c.Tables[0])
	}
}

func TestTheGuardPrintsNoneForWhatWasNotMeasured(t *testing.T) {
	t.Parallel()
	r := figures.Results{
		Throughput: &figures.Throughput{Ratios: map[string]figures.Spread{embedded: {Median: 1.5, Min: 1, Max: 2}}},
		Latency: []figures.Latency{
			{Contestant: figures.Yardstick, Rate: 100, Start: figures.Distribution{P50: 9, P99: 9}},
			{Contestant: embedded, Rate: 500, Start: figures.Distribution{P50: 9, P99: 9}},
			{Contestant: embedded, Rate: 100, Start: figures.Distribution{P50: 1.25, P99: 7}},
		},
	}
	var out strings.Builder
	guard(&out, r)
	if want := "ratio_embedded=1.500 ratio_apache=none start_p50_ms=1.2 start_p99_ms=7.0\n"; out.String() != want {
		t.Errorf("got %q", out.String())
	}
}

func TestBacklogsAreCapped(t *testing.T) {
	t.Parallel()
	b := &bench{Options: Options{BacklogMost: 700, Window: time.Second}}
	for _, c := range b.backlogCases() {
		if c.waiting > 700 || c.scheduled > 700 {
			t.Errorf("%+v", c)
		}
	}
}
