package statstore

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// Health holds the numbers of the health page.
type Health struct {
	PendingJobs   int64 // SCHEDULED, PENDING, RETRYING
	DeadJobs      int64 // FAILED
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
	if err := s.db.Writable(ctx); err != nil {
		return Health{}, err
	}
	jobs, err := s.q.JobFigures(ctx, mostAtOnce+1)
	if err != nil {
		return Health{}, apidb.Classify("count jobs", err)
	}
	h := Health{PendingJobs: jobs.Unconfirmed + jobs.Waiting, DeadJobs: jobs.Dead}
	if max(jobs.Unconfirmed, jobs.Waiting, jobs.Dead) > mostAtOnce {
		if err := s.readCensus(ctx, &h); err != nil {
			return Health{}, err
		}
	}
	workers, err := s.q.WorkerFigures(ctx)
	if err != nil {
		return Health{}, apidb.Classify("count slots", err)
	}
	h.ActiveThreads, h.PoolSize = workers.Busy, workers.Slots
	return h, nil
}

// readCensus takes the numbers of jobs from the last census, if there is one: that costs nothing, however many jobs
// there are.
func (s *Store) readCensus(ctx context.Context, h *Health) error {
	last, err := s.q.JobCountsOf(ctx, gen.JobCountsOfParams{Everyone: true})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return apidb.Classify("read counts of jobs", err)
	}
	live, err := storedCounts(last.Counts)
	if err != nil {
		return err
	}
	ended, err := storedCounts(last.Ended)
	if err != nil {
		return err
	}
	*h = Health{}
	for _, count := range append(live, ended...) {
		switch count.Status { //nolint:exhaustive // the page has no others
		case jobstate.Scheduled, jobstate.Pending, jobstate.Retrying:
			h.PendingJobs += count.N
		case jobstate.Failed:
			h.DeadJobs += count.N
		}
	}
	return nil
}
