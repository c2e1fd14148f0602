package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/load/bench"
	"github.com/jobweaver/jobweaver/local/load/figures"
	"github.com/jobweaver/jobweaver/local/load/rig"
)

func newBench() *cobra.Command {
	var quick bool
	o := bench.Options{}
	cmd := &cobra.Command{
		Use: "bench", Args: cobra.NoArgs,
		Short: "Measure this tree on this machine, beside River; starts all that it needs",
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Out = cmd.OutOrStdout()
			o.Settings.RiverSlots = rig.RiverWorkers
			if quick {
				shorten(cmd, &o)
			}
			return bench.Run(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&quick, "quick", false, "throughput and latency only, short: the guard for every change")
	flags.StringSliceVar(&o.Parts, "part", bench.Parts, "what to measure")
	flags.StringSliceVar(&o.Contestants, "contestants", bench.Contestants, "whom to measure beside River")
	flags.StringVar(&o.Dir, "dir", "", "where to make the folder of all data, on a disk; default: that of temporary files")
	flags.StringVar(&o.JSON, "json", "", "file that keeps results; parts that are not measured now stay in it")
	settings(cmd, &o.Settings)
	flags.IntSliceVar(&o.Rates, "rates", []int{100, 500, 2000}, "of the latency part, jobs a second")
	flags.DurationVar(&o.LatencyFor, "latency-for", 30*time.Second, "at each rate")
	flags.DurationVar(&o.Window, "window", 12*time.Second, "over which backlog and scale count")
	flags.DurationVar(&o.Hold, "hold", time.Minute, "how long the backlog part holds a transaction open")
	flags.IntVar(&o.BacklogMost, "backlog-most", 5_000_000, "jobs that wait at most")
	flags.DurationVar(&o.Soak, "soak", 10*time.Minute, "how long the soak lasts")
	flags.Float64Var(&o.SoakRate, "soak-rate", 0, "its jobs a second; 0: 70 % of the measured maximum")
	flags.IntVar(&o.SoakBatch, "soak-batch", 500, "its jobs in a POST: as many as the maximum is measured with")
	flags.IntVar(&o.OldJobs, "old-jobs", 1_000_000, "from which the retention part deletes")
	flags.IntVar(&o.Waiting, "waiting", 10_000, "jobs of the waits part that wait for an event at once")
	flags.StringSliceVar(&o.Neighbours, "neighbours", nil, "the cases of that part; default: all")
	flags.StringToStringVar(&o.Postgres, "postgres", nil, "settings of PostgreSQL beside those of make run, as name=value")
	return cmd
}

func settings(cmd *cobra.Command, s *figures.Settings) {
	flags := cmd.Flags()
	flags.IntVar(&s.Jobs, "jobs", 200_000, "timed jobs of a throughput round")
	flags.IntVar(&s.Warm, "warm", 5_000, "untimed jobs before them")
	flags.IntVar(&s.Rounds, "rounds", 3, "rounds of each contestant, River's around them")
	flags.IntVar(&s.Clients, "clients", 4, "that POST batches at once")
	flags.IntVar(&s.Batch, "batch", 500, "jobs in a POST")
	flags.IntVar(&s.Slots, "slots", 64, "of the worker")
	flags.IntVar(&s.SlotQueue, "slot-queue", 1000, "attempts that wait in the worker for a slot")
}

// shorten makes the run take less than two minutes, but keeps all options that were set explicitly.
func shorten(cmd *cobra.Command, o *bench.Options) {
	given := cmd.Flags().Changed
	if !given("part") {
		o.Parts = []string{"throughput", "latency"}
	}
	if !given("jobs") {
		o.Settings.Jobs = 20_000
	}
	if !given("warm") {
		o.Settings.Warm = 3_000
	}
	if !given("rates") {
		o.Rates = []int{100}
	}
	if !given("latency-for") {
		o.LatencyFor = 10 * time.Second
	}
}
