package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/local/client"
)

func newLatency(api func() *client.Client) *cobra.Command {
	var rate int
	var duration time.Duration
	cmd := &cobra.Command{
		Use: "latency", Args: cobra.NoArgs,
		Short: "Single POSTs at a steady rate: POST answer, and POST to handler start",
		RunE:  func(cmd *cobra.Command, _ []string) error { return latency(cmd.Context(), api(), rate, duration) },
	}
	cmd.Flags().IntVar(&rate, "rate", 100, "jobs a second")
	cmd.Flags().DurationVar(&duration, "for", 30*time.Second, "how long")
	return cmd
}

// sent is one POST.
type sent struct {
	id     string
	at     time.Time
	answer time.Duration
}

func latency(ctx context.Context, c *client.Client, rate int, duration time.Duration) error {
	jobs, err := submitSteadily(ctx, c, rate, duration)
	if err != nil {
		return err
	}
	answers := make([]time.Duration, len(jobs))
	starts := make([]time.Duration, len(jobs))
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(follow)
	for i, job := range jobs {
		answers[i] = job.answer
		all.Go(func() error {
			if err := completed(ctx, c, job.id); err != nil {
				return err
			}
			done, err := c.Get(ctx, job.id, 0)
			if err != nil {
				return err
			}
			if done.StartedAt == nil {
				return fmt.Errorf("job %s shows no start", job.id)
			}
			// Same machine, same clock: the worker's startedAt can be held against ours.
			starts[i] = done.StartedAt.Sub(job.at)
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		return err
	}
	quantiles(fmt.Sprintf("post_answer_at_%d", rate), answers)
	quantiles(fmt.Sprintf("post_to_start_at_%d", rate), starts)
	return nil
}

// submitSteadily posts at the given rate whether or not answers keep up, so that a slow answer delays
// nobody else's measurement.
func submitSteadily(ctx context.Context, c *client.Client, rate int, duration time.Duration) ([]sent, error) {
	var mu sync.Mutex
	var jobs []sent
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	all, ctx := errgroup.WithContext(ctx)
	for range int(duration.Seconds() * float64(rate)) {
		select {
		case <-ctx.Done():
			return nil, all.Wait()
		case <-tick.C:
		}
		at := time.Now()
		all.Go(func() error {
			accepted, err := c.Submit(ctx, []byte(noop))
			if err != nil {
				return fmt.Errorf("submit: %w", err)
			}
			mu.Lock()
			defer mu.Unlock()
			jobs = append(jobs, sent{accepted.JobID, at, time.Since(at)})
			return nil
		})
	}
	err := all.Wait()
	return jobs, err
}
