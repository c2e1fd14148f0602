package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/load/limit"
)

func newLimit() *cobra.Command {
	m := limit.Model{Costs: limit.Measured}
	cmd := &cobra.Command{
		Use: "limit", Args: cobra.NoArgs, Short: "Simulate where one installation ends, from the measured costs of a job",
		RunE: func(cmd *cobra.Command, _ []string) error { return m.Print(cmd.OutOrStdout()) },
	}
	flags := cmd.Flags()
	flags.IntVar(&m.Cores, "cores", 16, "of each of the three databases")
	flags.BoolVar(&m.Together, "together", false, "these cores run all databases and all functions")
	flags.BoolVar(&m.Keys, "keys", true, "jobs of many fairness keys wait")
	flags.IntVar(&m.Batch, "batch", 500, "jobs in a POST")
	flags.DurationVar(&m.Commit, "commit", time.Millisecond, "how long a commit takes, with its replica")
	flags.DurationVar(&m.Hop, "hop", 2*time.Millisecond, "from the publisher of an event to its consumer")
	flags.IntVar(&m.Split, "partitions", 3, "of the topics between functions")
	return cmd
}

func newSize() *cobra.Command {
	return &cobra.Command{
		Use: "size", Args: cobra.NoArgs,
		Short: "Print what 10 to 10,000 jobs a second need, from the measured costs of a job",
		RunE:  func(cmd *cobra.Command, _ []string) error { return limit.PrintSizes(cmd.OutOrStdout()) },
	}
}
