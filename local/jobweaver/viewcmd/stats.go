// Package viewcmd has the commands that show an installation: stats, workers, types, hooks and the audit log; and mcp,
// which shows it to agents.
package viewcmd

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
)

type stats struct {
	AsOf  *time.Time
	Types []struct {
		JobType string
		Jobs    map[string]int64
	}
	OldestWaiting *struct {
		JobID string
		AgeMs int64
	}
	Throughput struct {
		PerSecond map[string]struct{ Accepted, Completed, Failed, Cancelled float64 }
	}
	Latency map[string]struct {
		AcceptToStart, Run, AcceptToEnd percentiles
	}
}

// spans returns the windows of the figures, shortest first.
func spans[T any](figures map[string]T) []string {
	return slices.SortedFunc(maps.Keys(figures), func(a, b string) int {
		short, _ := time.ParseDuration(a)
		long, _ := time.ParseDuration(b)
		return cmp.Or(cmp.Compare(short, long), strings.Compare(a, b))
	})
}

// duration prints milliseconds to 0.1 ms, or above a second to 10 ms.
func duration(ms float64) string {
	d := time.Duration(ms * float64(time.Millisecond))
	if d > time.Second {
		return d.Round(10 * time.Millisecond).String()
	}
	return d.Round(100 * time.Microsecond).String()
}

type percentiles struct {
	Count               int64
	P50Ms, P95Ms, P99Ms *float64
}

// NewStats makes the command stats.
func NewStats() *cobra.Command {
	var jobType, queue string
	cmd := cli.Verb("stats", "Show the number of jobs, their throughput and how long they take", 0,
		func(cmd *cobra.Command, _ []string) error {
			values := url.Values{}
			for name, value := range map[string]string{"type": jobType, "queue": queue} {
				if value != "" {
					values.Set(name, value)
				}
			}
			return cli.Show(cmd, cli.Path("stats")+"?"+values.Encode(), showStats)
		})
	cmd.Flags().StringVar(&jobType, "type", "", "only of this job type")
	cmd.Flags().StringVar(&queue, "queue", "", "only of this queue")
	return cmd
}

func showStats(w io.Writer, s stats) error {
	err := cli.Table(w, "TYPE\t"+strings.Join(cli.Statuses, "\t"), "no jobs", len(s.Types), func(i int) []any {
		row := []any{s.Types[i].JobType}
		for _, state := range cli.Statuses {
			row = append(row, s.Types[i].Jobs[state])
		}
		return row
	})
	if err != nil {
		return err
	}
	if o := s.OldestWaiting; o != nil {
		fmt.Fprintf(w, "\noldest waiting: %s, for %s\n", cli.Line(o.JobID), time.Duration(o.AgeMs)*time.Millisecond)
	}
	if s.AsOf != nil {
		fmt.Fprintf(w, "\nwaiting jobs as of %s, those that have ended as of now", cli.At(s.AsOf))
	}
	for _, span := range spans(s.Throughput.PerSecond) {
		r := s.Throughput.PerSecond[span]
		fmt.Fprintf(w, "\nlast %s, a second: %.2f accepted, %.2f completed, %.2f failed, %.2f cancelled",
			cli.Line(span), r.Accepted, r.Completed, r.Failed, r.Cancelled)
	}
	for _, span := range spans(s.Latency) {
		l := s.Latency[span]
		fmt.Fprintf(w, "\nlast %s, p50 p95 p99: to start %s, run %s, to end %s",
			cli.Line(span), l.AcceptToStart, l.Run, l.AcceptToEnd)
	}
	_, err = fmt.Fprintln(w)
	return err
}

func (p percentiles) String() string {
	if p.P50Ms == nil || p.P95Ms == nil || p.P99Ms == nil {
		return "-"
	}
	return fmt.Sprintf("%s %s %s", duration(*p.P50Ms), duration(*p.P95Ms), duration(*p.P99Ms))
}
