// Command load measures a running JobWeaver through its public API: how many no-op jobs a second it
// takes to their end, and how soon after its POST a job's handler starts.
//
//	load throughput --jobs 20000 --clients 4
//	load latency --rate 100 --for 30s
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/client"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	var url string
	root := &cobra.Command{Use: "load", Short: "Measure a running JobWeaver through its public API", SilenceUsage: true}
	root.PersistentFlags().StringVar(&url, "url", "http://localhost:8080", "the gateway")
	api := func() *client.Client { return client.New(url, os.Getenv("JOBWEAVER_API_KEY")) }
	root.AddCommand(newThroughput(api), newLatency(api))
	err := root.ExecuteContext(ctx)
	stop()
	if err != nil {
		os.Exit(1)
	}
}

// noop is a job whose handler does next to nothing.
const noop = `{"jobType":"SIMULATION","payload":{"steps":[{"type":"LOG","message":"no-op"}]}}`

// quantiles prints a distribution in milliseconds on one line.
func quantiles(name string, d []time.Duration) {
	slices.Sort(d)
	at := func(q float64) float64 {
		return float64(d[min(int(q*float64(len(d))), len(d)-1)].Microseconds()) / 1000
	}
	fmt.Printf("%-24s n=%d p50=%.1f p95=%.1f p99=%.1f max=%.1f ms\n", name, len(d), at(.5), at(.95), at(.99), at(1))
}
