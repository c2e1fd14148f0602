package apiload

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// sampled is how many jobs of a run are checked one by one at its end.
const sampled = 100

// Throughput is how long a number of jobs took.
type Throughput struct {
	Accepted  time.Duration // until the last POST was answered
	Completed time.Duration // until the API showed no job that had not ended
}

// Throughput submits jobs in batches from clients connections and waits until the API shows all of them COMPLETED.
func (a *API) Throughput(ctx context.Context, request string, jobs, clients, batch int) (Throughput, error) {
	begin := time.Now()
	last, err := a.Fill(ctx, request, jobs, clients, batch)
	if err != nil {
		return Throughput{}, err
	}
	result := Throughput{Accepted: time.Since(begin)}
	if err := a.Drained(ctx); err != nil {
		return result, err
	}
	result.Completed = time.Since(begin)
	// The lists do not show whether a job failed.
	for i := 0; i < len(last); i += len(last)/sampled + 1 {
		if _, err := a.Completed(ctx, last[i]); err != nil {
			return result, err
		}
	}
	failed, _, err := a.List(ctx, "limit=1&status=FAILED")
	if err == nil && len(failed) > 0 {
		err = fmt.Errorf("job %s has failed", failed[0].JobID)
	}
	return result, err
}

// Fill submits jobs in batches from concurrent clients. It returns the id of each batch's last job.
func (a *API) Fill(ctx context.Context, request string, jobs, clients, batch int) (last []string, err error) {
	whole := Batch(request, batch)
	return a.FillWith(ctx, func(n int) []byte {
		if n == batch {
			return whole
		}
		return Batch(request, n)
	}, jobs, clients, batch)
}

// FillWith submits jobs as Fill does, in batches of n jobs that body makes.
func (a *API) FillWith(
	ctx context.Context, body func(n int) []byte, jobs, clients, batch int,
) (last []string, err error) {
	var mu sync.Mutex
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(clients)
	for left := jobs; left > 0 && ctx.Err() == nil; left -= batch {
		n := min(left, batch)
		all.Go(func() error {
			id, err := a.insist(ctx, body(n), n)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			last = append(last, id)
			return nil
		})
	}
	err = all.Wait()
	return last, err
}

// insist repeats a batch while the installation has no room for it: that time counts.
func (a *API) insist(ctx context.Context, body []byte, n int) (last string, err error) {
	for {
		last, err = a.SubmitBatch(ctx, body, n)
		if err == nil || !errors.Is(err, ErrRefused) {
			break
		}
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	if err != nil {
		return "", fmt.Errorf("submit batch: %w", err)
	}
	return last, nil
}
