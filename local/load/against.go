package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/load/apiload"
	"github.com/jobweaver/jobweaver/local/load/figures"
)

// simulated is a job whose handler does next to nothing, on any installation.
const simulated = `{"jobType":"SIMULATION","payload":{"steps":[{"type":"LOG","message":"no-op"}]}}`

// against adds the flags of the commands that measure a running installation.
func against(cmd *cobra.Command, url, request *string) *cobra.Command {
	cmd.Args = cobra.NoArgs
	cmd.Flags().StringVar(url, "url", "http://localhost:8080", "the gateway")
	cmd.Flags().StringVar(request, "job", simulated, "the JobRequest")
	return cmd
}

func newThroughput() *cobra.Command {
	var url, request string
	var jobs, clients, batch, rounds int
	cmd := &cobra.Command{
		Use:   "throughput",
		Short: "Jobs by batch POST to a running installation, until its API shows the last of them COMPLETED",
		RunE: func(cmd *cobra.Command, _ []string) error {
			api := apiload.New(url)
			defer api.Close()
			for range rounds {
				took, err := api.Throughput(cmd.Context(), request, jobs, clients, batch)
				if err != nil {
					return err
				}
				fmt.Printf("throughput jobs=%d clients=%d accepted_s=%.2f completed_s=%.2f jobs_per_s=%.0f\n", jobs, clients,
					took.Accepted.Seconds(), took.Completed.Seconds(), float64(jobs)/took.Completed.Seconds())
			}
			return nil
		},
	}
	cmd.Flags().IntVar(&jobs, "jobs", 20_000, "how many")
	cmd.Flags().IntVar(&clients, "clients", 4, "how many submit at once")
	cmd.Flags().IntVar(&batch, "batch", 500, "jobs in a POST")
	cmd.Flags().IntVar(&rounds, "rounds", 3, "how often")
	return against(cmd, &url, &request)
}

func newLatency() *cobra.Command {
	var url, request string
	var rate int
	var duration time.Duration
	cmd := &cobra.Command{
		Use:   "latency",
		Short: "Single POSTs at a steady rate to a running installation",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return latency(cmd.Context(), url, apiload.Steady{Request: request, Rate: rate, For: duration, Follow: 100})
		},
	}
	cmd.Flags().IntVar(&rate, "rate", 100, "jobs a second")
	cmd.Flags().DurationVar(&duration, "for", 30*time.Second, "how long")
	return against(cmd, &url, &request)
}

func latency(ctx context.Context, url string, s apiload.Steady) error {
	api := apiload.New(url)
	defer api.Close()
	l, err := api.Latency(ctx, s)
	if err != nil {
		return err
	}
	fmt.Printf("post_answer_at_%d        %s\n", s.Rate, figures.Distribute(l.Post))
	fmt.Printf("post_to_start_at_%d      %s\n", s.Rate, figures.Distribute(l.Start))
	fmt.Printf("post_to_completed_at_%d  %s\n", s.Rate, figures.Distribute(l.Completed))
	if l.Refused > 0 {
		fmt.Printf("refused with 503         %d\n", l.Refused)
	}
	return nil
}
