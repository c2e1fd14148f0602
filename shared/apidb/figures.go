package apidb

import (
	"context"
	"sync"
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

type figuresCache struct {
	mu    sync.Mutex
	at    time.Time
	value Figures
}

// Figures gives figures that are at most a second old.
func (s *Store) Figures(ctx context.Context) (Figures, error) {
	s.figures.mu.Lock()
	defer s.figures.mu.Unlock()
	if time.Since(s.figures.at) < figuresAge {
		return s.figures.value, nil
	}
	jobs, err := s.q.JobFigures(ctx, MaxFigure)
	if err != nil {
		return Figures{}, classify("count jobs", err)
	}
	workers, err := s.q.WorkerFigures(ctx)
	if err != nil {
		return Figures{}, classify("count slots", err)
	}
	s.figures.at = time.Now()
	s.figures.value = Figures{
		PendingJobs: jobs.Unheard + jobs.Waiting, DeadJobs: jobs.Dead,
		ActiveThreads: workers.Busy, PoolSize: workers.Slots,
	}
	return s.figures.value, nil
}
