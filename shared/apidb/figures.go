package apidb

import (
	"context"
	"time"
)

// Figures is what a person asks first.
type Figures struct {
	PendingJobs   int64 // SCHEDULED, PENDING, RETRYING; counted up to MaxFigure each, heard of or not
	DeadJobs      int64 // FAILED; counted up to MaxFigure
	ActiveThreads int64 // of the workers seen in the last 10 s
	PoolSize      int64
}

// MaxFigure bounds what a count costs on a table of millions.
const MaxFigure = 100_000

// figuresAge is how old figures may be: health checks come in crowds.
const figuresAge = time.Second

// Figures gives figures that are at most a second old.
func (s *Store) Figures(ctx context.Context) (Figures, error) {
	return s.figures.Get(ctx, figuresAge, s.readFigures)
}

func (s *Store) readFigures(ctx context.Context) (Figures, error) {
	jobs, err := s.q.JobFigures(ctx, MaxFigure)
	if err != nil {
		return Figures{}, Classify("count jobs", err)
	}
	workers, err := s.q.WorkerFigures(ctx)
	if err != nil {
		return Figures{}, Classify("count slots", err)
	}
	return Figures{
		PendingJobs: jobs.Unheard + jobs.Waiting, DeadJobs: jobs.Dead,
		ActiveThreads: workers.Busy, PoolSize: workers.Slots,
	}, nil
}
