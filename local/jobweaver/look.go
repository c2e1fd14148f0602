package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

func newWorkers() *cobra.Command {
	type worker struct {
		WorkerID    string
		Live        bool
		Stopping    bool
		SeenAt      time.Time
		Queues      []string
		Slots, Busy int
		Rate        float64
	}
	return verb("workers", "List the workers", 0, func(cmd *cobra.Command, _ []string) error {
		return show(cmd, path("workers"), func(w io.Writer, page struct{ Workers []worker }) error {
			return table(w, "WORKER\tLIVE\tQUEUES\tBUSY\tSLOTS\tRATE\tSEEN", "no workers", len(page.Workers), func(i int) []any {
				x := page.Workers[i]
				return []any{x.WorkerID, x.Live && !x.Stopping, strings.Join(x.Queues, ","), x.Busy, x.Slots,
					strconv.FormatFloat(x.Rate, 'f', 1, 64), at(&x.SeenAt)}
			})
		})
	})
}

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

// spans are the windows of a figure, the shortest first.
func spans[T any](figures map[string]T) []string {
	return slices.SortedFunc(maps.Keys(figures), func(a, b string) int {
		short, _ := time.ParseDuration(a)
		long, _ := time.ParseDuration(b)
		return cmp.Or(cmp.Compare(short, long), strings.Compare(a, b))
	})
}

// duration is so many milliseconds to 0.1 ms, or above a second to 10 ms.
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

func newStats() *cobra.Command {
	var jobType, queue string
	cmd := verb("stats", "Show the number of jobs, their throughput and how long they take", 0,
		func(cmd *cobra.Command, _ []string) error {
			values := url.Values{}
			for name, value := range map[string]string{"type": jobType, "queue": queue} {
				if value != "" {
					values.Set(name, value)
				}
			}
			return show(cmd, path("stats")+"?"+values.Encode(), showStats)
		})
	cmd.Flags().StringVar(&jobType, "type", "", "only of this job type")
	cmd.Flags().StringVar(&queue, "queue", "", "only of this queue")
	return cmd
}

func showStats(w io.Writer, s stats) error {
	err := table(w, "TYPE\t"+strings.Join(statuses, "\t"), "no jobs", len(s.Types), func(i int) []any {
		row := []any{s.Types[i].JobType}
		for _, state := range statuses {
			row = append(row, s.Types[i].Jobs[state])
		}
		return row
	})
	if err != nil {
		return err
	}
	if o := s.OldestWaiting; o != nil {
		fmt.Fprintf(w, "\noldest waiting: %s, for %s\n", line(o.JobID), time.Duration(o.AgeMs)*time.Millisecond)
	}
	if s.AsOf != nil {
		fmt.Fprintf(w, "\nwaiting jobs as of %s, those that have ended as of now", at(s.AsOf))
	}
	for _, span := range spans(s.Throughput.PerSecond) {
		r := s.Throughput.PerSecond[span]
		fmt.Fprintf(w, "\nlast %s, a second: %.2f accepted, %.2f completed, %.2f failed, %.2f cancelled",
			line(span), r.Accepted, r.Completed, r.Failed, r.Cancelled)
	}
	for _, span := range spans(s.Latency) {
		l := s.Latency[span]
		fmt.Fprintf(w, "\nlast %s, p50 p95 p99: to start %s, run %s, to end %s",
			line(span), l.AcceptToStart, l.Run, l.AcceptToEnd)
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
