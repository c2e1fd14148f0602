// Command load measures JobWeaver.
//
//	load bench --quick                      all of it at once, beside River: what make bench-quick runs
//	load bench --part backlog,scale         some of it
//	load bench --part peers                 beside Asynq, Faktory, pg-boss, Graphile Worker; needs redis-server, npm
//	load throughput --url …                 a running installation: no-op jobs in batches
//	load latency --url … --rate 100         and single ones at a steady rate
//	load fill --database …                  copies of ended jobs, to measure what reads them
//	load processes                          one process of jobweaver serve beside a process for each function
//	load limit                              where one installation ends, simulated
//	load size                               what 10 to 10,000 jobs a second need
//	load plot draws docs/performance/results.json
//
// The other commands are roles that the bench plays in processes of their own.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	root := &cobra.Command{Use: "load", Short: "Measure JobWeaver through its public API", SilenceUsage: true}
	root.AddCommand(newBench(), newPlot(), newThroughput(), newLatency(), newFill(), newProcesses(), newLimit(), newSize(),
		newSystem(), newWorker(), newBroker(), newRelay(), newIngress())
	err := root.ExecuteContext(ctx)
	stop()
	if err != nil {
		os.Exit(1)
	}
}
