package main

import (
	"context"
	"fmt"
	"time"

	"github.com/riverqueue/river"
)

const (
	insertBatch = 5_000
	lookEvery   = 20 * time.Millisecond
)

type throughput struct {
	Jobs       int     `json:"jobs"`
	Seconds    float64 `json:"seconds"`
	Inserted   float64 `json:"inserted_s"` // seconds until the last insert
	JobsPerS   float64 `json:"jobs_per_s"`
	ProcessCPU float64 `json:"cpu_s"` // of this process, which inserts and works
	Pool       int32   `json:"pool"`  // connections
}

// throughput measures the time from the first insert until every job is completed in the database, because
// River's completer writes after the workers have finished.
func (b *bench) throughput(ctx context.Context, jobs, warm int) (throughput, error) {
	result := throughput{Jobs: jobs, Pool: b.pool.Config().MaxConns}
	if warm > 0 {
		if err := b.insert(ctx, warm); err != nil {
			return result, err
		}
		if err := b.completed(ctx, warm); err != nil {
			return result, err
		}
	}
	if _, err := b.pool.Exec(ctx, "CHECKPOINT"); err != nil {
		return result, fmt.Errorf("checkpoint: %w", err)
	}
	before, err := ownUsage()
	if err != nil {
		return result, err
	}
	fmt.Println("begin") // the bench counts the server's work from here
	begin := time.Now()
	if err := b.insert(ctx, jobs); err != nil {
		return result, err
	}
	result.Inserted = time.Since(begin).Seconds()
	if err := b.completed(ctx, warm+jobs); err != nil {
		return result, err
	}
	result.Seconds = time.Since(begin).Seconds()
	result.JobsPerS = float64(jobs) / result.Seconds
	after, err := ownUsage()
	result.ProcessCPU = (after.cpu - before.cpu).Seconds()
	return result, err
}

func (b *bench) insert(ctx context.Context, jobs int) error {
	batch := make([]river.InsertManyParams, insertBatch)
	for i := range batch {
		batch[i].Args = noopArgs{Num: i, Pad: b.pad}
	}
	for left := jobs; left > 0; left -= insertBatch {
		if _, err := b.client.InsertManyFast(ctx, batch[:min(left, insertBatch)]); err != nil {
			return fmt.Errorf("insert jobs: %w", err)
		}
	}
	return nil
}

// completed waits until this many jobs are completed. It looks for an open job by an index, and counts only when there
// is none.
func (b *bench) completed(ctx context.Context, jobs int) error {
	const open = `SELECT EXISTS (SELECT FROM river_job WHERE state = 'available')
		OR EXISTS (SELECT FROM river_job WHERE state = 'running')`
	const count = `SELECT count(*), count(*) FILTER (WHERE state = 'completed') FROM river_job`
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		var some bool
		if err := b.pool.QueryRow(ctx, open).Scan(&some); err != nil {
			return fmt.Errorf("look for open jobs: %w", err)
		}
		if !some {
			var all, done int
			err := b.pool.QueryRow(ctx, count).Scan(&all, &done)
			if err == nil && (all != jobs || done != jobs) {
				err = fmt.Errorf("%d of %d jobs, %d completed", all, jobs, done)
			}
			return err
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
