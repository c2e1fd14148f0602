package statstore

import (
	"context"
	"time"

	"github.com/jobweaver/jobweaver/shared/apidb"
)

// Health holds the numbers of the health page.
type Health struct {
	PendingJobs   int64 // SCHEDULED, PENDING, RETRYING; without a status and with one counted up to MaxFigure each
	DeadJobs      int64 // FAILED; counted up to MaxFigure
	ActiveThreads int64 // of the workers seen in the last 10 s
	PoolSize      int64
}

// healthAge is how old the numbers may be: many health checks come at the same time.
const healthAge = time.Second

// Health returns numbers that are at most a second old.
func (s *Store) Health(ctx context.Context) (Health, error) {
	return s.health.Get(ctx, healthAge, s.readHealth)
}

func (s *Store) readHealth(ctx context.Context) (Health, error) {
	jobs, err := s.q.JobFigures(ctx, apidb.MaxFigure)
	if err != nil {
		return Health{}, apidb.Classify("count jobs", err)
	}
	workers, err := s.q.WorkerFigures(ctx)
	if err != nil {
		return Health{}, apidb.Classify("count slots", err)
	}
	return Health{
		PendingJobs: jobs.Unconfirmed + jobs.Waiting, DeadJobs: jobs.Dead,
		ActiveThreads: workers.Busy, PoolSize: workers.Slots,
	}, nil
}
