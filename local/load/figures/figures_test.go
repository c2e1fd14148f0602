package figures_test

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/local/load/figures"
)

func TestQuantilesAreValuesThatWereMeasured(t *testing.T) {
	t.Parallel()
	var hundred []time.Duration
	for i := range 100 {
		hundred = append(hundred, time.Duration(100-i)*time.Millisecond)
	}
	for name, c := range map[string]struct {
		of   []time.Duration
		want figures.Distribution
	}{
		"none":         {nil, figures.Distribution{}},
		"one":          {[]time.Duration{3 * time.Millisecond}, figures.Distribution{N: 1, P50: 3, P95: 3, P99: 3, Max: 3}},
		"two":          {[]time.Duration{2e6, 1e6}, figures.Distribution{N: 2, P50: 1, P95: 2, P99: 2, Max: 2}},
		"one to 100":   {hundred, figures.Distribution{N: 100, P50: 50, P95: 95, P99: 99, Max: 100}},
		"microseconds": {[]time.Duration{1234567}, figures.Distribution{N: 1, P50: 1.234, P95: 1.234, P99: 1.234, Max: 1.234}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := figures.Distribute(c.of); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestTheMedianOfAnEvenNumberLiesBetween(t *testing.T) {
	t.Parallel()
	if got, want := figures.SpreadOf([]float64{4, 1, 3, 2}), (figures.Spread{Median: 2.5, Min: 1, Max: 4}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := figures.SpreadOf(nil); got != (figures.Spread{}) {
		t.Errorf("of none: %+v", got)
	}
}

func TestRiverStandsBesideEveryRound(t *testing.T) {
	t.Parallel()
	got := figures.Plan(2, []string{"embedded", "apache"})
	want := []string{"river", "embedded", "river", "apache", "river", "embedded", "river", "apache", "river"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

func TestARoundIsHeldAgainstTheRiversAroundIt(t *testing.T) {
	t.Parallel()
	rounds := []figures.Round{
		{Contestant: "embedded", JobsPerS: 5},
		{Contestant: "river", JobsPerS: 10},
		{Contestant: "embedded", JobsPerS: 30},
		{Contestant: "apache", JobsPerS: 15},
		{Contestant: "river", JobsPerS: 20},
		{Contestant: "embedded", JobsPerS: 10},
	}
	for name, want := range map[string][]float64{"embedded": {.5, 2, .5}, "apache": {1}, "none": nil} {
		if got := figures.Ratios(rounds, name); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	if got := figures.Ratios(rounds[:1], "embedded"); got != nil {
		t.Errorf("without a River: %v", got)
	}
}

func TestCPUIsTheMeanOfTheRounds(t *testing.T) {
	t.Parallel()
	rounds := []figures.Round{
		{Contestant: "a", CPU: map[string]float64{"functions": 100, "postgres": 50}},
		{Contestant: "b", CPU: map[string]float64{"functions": 1}},
		{Contestant: "a", CPU: map[string]float64{"functions": 200, "postgres": 70}},
	}
	got := figures.MeanCPU(rounds, "a")
	if got["functions"] != 150 || got["postgres"] != 60 {
		t.Errorf("got %v", got)
	}
}

func TestRatesAndGapsOfInstants(t *testing.T) {
	t.Parallel()
	zero := time.Unix(1000, 0)
	at := func(ms ...int) (list []time.Time) {
		for _, ms := range ms {
			list = append(list, zero.Add(time.Duration(ms)*time.Millisecond))
		}
		return list
	}
	to := zero.Add(time.Second)
	if got := figures.RateBetween(at(-1, 0, 500, 999, 1000), zero, to); got != 3 {
		t.Errorf("rate %v", got)
	}
	for name, c := range map[string]struct {
		instants []time.Time
		want     time.Duration
	}{
		"none":                {nil, time.Second},
		"in the middle":       {at(900, 100, 200), 700 * time.Millisecond},
		"at the beginning":    {at(600, 900), 600 * time.Millisecond},
		"at the end":          {at(100, 200), 800 * time.Millisecond},
		"others do not count": {at(-500, 500, 1500), 500 * time.Millisecond},
	} {
		if got := figures.LongestGap(c.instants, zero, to); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

func TestResultsAreKeptAndFoundAgain(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "results.json")
	none, err := figures.Read(file)
	if err != nil || none.Soak != nil {
		t.Fatalf("of no file: %+v, %v", none, err)
	}
	kept := figures.Results{Soak: &figures.Soak{Rate: 7}}
	if err := kept.Keep(file); err != nil {
		t.Fatal(err)
	}
	found, err := figures.Read(file)
	if err != nil || found.Soak == nil || found.Soak.Rate != 7 || found.Idle != nil {
		t.Errorf("found %+v, %v", found, err)
	}
}
