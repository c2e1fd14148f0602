package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/local/client"
)

const (
	batchSize = 500
	follow    = 16 // jobs at once
)

func newThroughput(api func() *client.Client) *cobra.Command {
	var jobs, clients, rounds int
	cmd := &cobra.Command{
		Use: "throughput", Args: cobra.NoArgs,
		Short: "No-op jobs by batch POST, until the API shows the last of them COMPLETED",
		RunE: func(cmd *cobra.Command, _ []string) error {
			for range rounds {
				if err := throughput(cmd.Context(), api(), jobs, clients); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().IntVar(&jobs, "jobs", 20_000, "how many")
	cmd.Flags().IntVar(&clients, "clients", 4, "how many submit at once")
	cmd.Flags().IntVar(&rounds, "rounds", 3, "how often")
	return cmd
}

func throughput(ctx context.Context, c *client.Client, jobs, clients int) error {
	begin := time.Now()
	ids, err := submitBatches(ctx, c, jobs, clients)
	if err != nil {
		return err
	}
	accepted := time.Since(begin)
	if err := drained(ctx, c); err != nil {
		return err
	}
	took := time.Since(begin)
	for i := 0; i < len(ids); i += max(len(ids)/100, 1) {
		if err := completed(ctx, c, ids[i]); err != nil {
			return err
		}
	}
	fmt.Printf("throughput jobs=%d clients=%d accepted_s=%.2f completed_s=%.2f jobs_per_s=%.0f\n",
		jobs, clients, accepted.Seconds(), took.Seconds(), float64(jobs)/took.Seconds())
	return nil
}

func submitBatches(ctx context.Context, c *client.Client, jobs, clients int) ([]string, error) {
	var mu sync.Mutex
	var ids []string
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(clients)
	for left := jobs; left > 0; left -= batchSize {
		body := []byte(`{"jobs":[` + strings.TrimSuffix(strings.Repeat(noop+",", min(left, batchSize)), ",") + `]}`)
		all.Go(func() error {
			var answer struct {
				Results []struct {
					Status int    `json:"status"`
					JobID  string `json:"jobId"`
				} `json:"results"`
			}
			if _, err := c.Do(ctx, http.MethodPost, "/api/jobs/batch", "application/json", body, &answer); err != nil {
				return fmt.Errorf("submit batch: %w", err)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, r := range answer.Results {
				if r.Status != http.StatusAccepted {
					return fmt.Errorf("submit batch: a job got %d", r.Status)
				}
				ids = append(ids, r.JobID)
			}
			return nil
		})
	}
	err := all.Wait()
	return ids, err
}

// drained waits until the API lists no job that has not ended: the house is ours alone.
func drained(ctx context.Context, c *client.Client) error {
	for _, status := range []string{"SCHEDULED", "PENDING", "QUEUED", "RUNNING", "RETRYING"} {
		for {
			jobs, _, _, err := c.List(ctx, url.Values{"status": {status}, "limit": {"1"}})
			if err != nil {
				return fmt.Errorf("list jobs: %w", err)
			}
			if len(jobs) == 0 {
				break
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	return nil
}

func completed(ctx context.Context, c *client.Client, id string) error {
	for {
		job, err := c.Get(ctx, id, 30*time.Second)
		switch {
		case err != nil:
			return fmt.Errorf("follow job %s: %w", id, err)
		case job.Status == "COMPLETED":
			return nil
		case job.Terminal():
			return fmt.Errorf("job %s ended %s", id, job.Status)
		}
	}
}
