package main

import (
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

type percentiles struct {
	Count               int64
	P50Ms, P95Ms, P99Ms *float64
}

func newStats() *cobra.Command {
	var jobType, queue string
	cmd := verb("stats", "Show how many jobs there are, how fast they go and how long they take", 0,
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
	for _, span := range slices.Sorted(maps.Keys(s.Throughput.PerSecond)) {
		r := s.Throughput.PerSecond[span]
		fmt.Fprintf(w, "\nlast %s, a second: %.2f accepted, %.2f completed, %.2f failed, %.2f cancelled",
			line(span), r.Accepted, r.Completed, r.Failed, r.Cancelled)
	}
	for _, span := range slices.Sorted(maps.Keys(s.Latency)) {
		l := s.Latency[span]
		fmt.Fprintf(w, "\nlast %s, p50 p95 p99 ms: to start %s, run %s, to end %s",
			line(span), l.AcceptToStart, l.Run, l.AcceptToEnd)
	}
	_, err = fmt.Fprintln(w)
	return err
}

func (p percentiles) String() string {
	if p.P50Ms == nil || p.P95Ms == nil || p.P99Ms == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f %.1f %.1f", *p.P50Ms, *p.P95Ms, *p.P99Ms)
}
