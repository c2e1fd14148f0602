// Package limit simulates one installation from measured costs, to find where it ends: which of its parts is busy all
// the time first, and at how many jobs a second.
package limit

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"
)

// Model has the costs of a job and the sizes of an installation.
type Model struct {
	Cores    int  // of each database, or of the one machine
	Together bool // one machine runs the databases, the functions and the embedded broker
	Keys     bool // many fairness keys wait
	Batch    int  // jobs in a POST
	Commit   time.Duration
	Hop      time.Duration // from the publisher of an event to its consumer
	Split    int           // partitions of the topics between functions

	Costs Costs
}

// Costs are µs of CPU a job, in batches.
type Costs struct {
	Insert, Project          float64 // api
	Ingest, Dispatch, Finish float64 // scheduler; dispatch under its lock
	KeysMore                 float64 // dispatch, if many keys wait
	Work                     float64 // worker
	Functions                float64 // all functions with the embedded broker
	Statement                float64 // a transaction, beside its jobs
}

// Measured are the costs on a quiet machine of two cores of an AMD EPYC (docs/performance.md, local/load/README.md).
var Measured = Costs{
	Insert: 10, Project: 15, Ingest: 14, Dispatch: 15, Finish: 12, KeysMore: 15, Work: 11, Functions: 65, Statement: 275,
}

// most is how many jobs a function takes at once.
const most = 500

// attempts is how many of them one record of a queue has.
const attempts = 64

// runPartitions is the number of partitions of a queue.
const runPartitions = 12

// Point is what happens at one rate.
type Point struct {
	Offered, Done float64 // jobs a second
	P50, P99      time.Duration
	Grows         float64            // the backlog, by so many jobs a second
	Busy          map[string]float64 // by part, the share of the time that it works

	allowed float64 // growth that is chance
}

// Parts are the parts of an installation, in the order of a table.
var Parts = []string{"lock", "api", "scheduler", "worker", "ingest", "outcome", "projection"}

// Holds reports whether the installation does what is offered.
func (p Point) Holds() bool { return p.Grows < p.allowed }

// Limit returns the part that is busiest.
func (p Point) Limit() string {
	return slices.MaxFunc(Parts, func(a, b string) int { return cmp.Compare(p.Busy[a], p.Busy[b]) })
}

// At simulates some seconds at a rate.
func (m Model) At(rate float64) Point {
	return m.build(rate).run()
}

// End returns the highest rate at which the installation does what is offered, to within 2 %.
func (m Model) End() Point {
	low, high := 500.0, 1000.0
	for m.At(high).Holds() {
		low, high = high, 2*high
	}
	for high/low > 1.02 {
		if middle := (low + high) / 2; m.At(middle).Holds() {
			low = middle
		} else {
			high = middle
		}
	}
	return m.At(low)
}

// Print writes the curve up to the end of the installation and beyond.
func (m Model) Print(w io.Writer) error {
	end := m.End()
	fmt.Fprintf(w, "%9s %9s %9s %9s", "offered/s", "done/s", "p50 start", "p99")
	for _, part := range Parts {
		fmt.Fprintf(w, " %10s", part)
	}
	fmt.Fprintln(w)
	for _, share := range []float64{0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 1, 1.1, 1.5} {
		p := m.At(share * end.Offered)
		fmt.Fprintf(w, "%9.0f %9.0f %6.1f ms %6.0f ms", p.Offered, p.Done, ms(p.P50), ms(p.P99))
		for _, part := range Parts {
			fmt.Fprintf(w, " %8.0f %%", 100*p.Busy[part])
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "%-41s", "alone, databases on one core")
	for _, part := range Parts {
		fmt.Fprintf(w, " %10.0f", m.Alone()[part])
	}
	fmt.Fprintln(w)
	_, err := fmt.Fprintf(w, "it ends at %.0f jobs/s: the busiest part is %s\n", end.Offered, end.Limit())
	return err
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Alone returns at how many jobs a second each part would end by itself, in full batches; databases on one core.
func (m Model) Alone() map[string]float64 {
	dispatch := m.Costs.Dispatch
	if m.Keys {
		dispatch += m.Costs.KeysMore
	}
	commit := float64(m.Commit.Microseconds())
	partition := func(cost float64) float64 {
		return float64(m.Split) * most * 1e6 / (m.Costs.Statement + most*cost + commit)
	}
	return map[string]float64{
		"lock":       most * 1e6 / (2*commit + most*dispatch),
		"api":        1e6 / (m.Costs.Insert + m.Costs.Project),
		"scheduler":  1e6 / (m.Costs.Ingest + dispatch + m.Costs.Finish),
		"worker":     1e6 / m.Costs.Work,
		"ingest":     partition(m.Costs.Ingest + dispatch),
		"outcome":    partition(m.Costs.Finish),
		"projection": partition(m.Costs.Project),
	}
}
