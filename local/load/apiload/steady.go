package apiload

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// pageSize is the maximum page of a list.
const pageSize = 200

// Steady describes a load of single jobs.
type Steady struct {
	Request string
	Rate    int // a second
	For     time.Duration
	Follow  int // jobs a second that are followed to their end, at most; 0: none

	Submit func(context.Context) (id string, err error) // in place of a POST; nil: a POST
	Came   func(context.Context) error                  // returns when the API has the jobs of Submit; may be nil

	Started func(id string) time.Time // returns the start of an ended job; nil: the API shows it
}

// Latencies are counted from the instant at which a job was due to be submitted, even if it was submitted later: a slow
// installation cannot improve its figures by slowing the load down.
type Latencies struct {
	Post      []time.Duration // until the POST was answered
	Start     []time.Duration // until the handler ran
	Completed []time.Duration // until GET ?wait= returned COMPLETED
	Refused   int             // POSTs that were answered with 503 or 429
}

// posted is an accepted job.
type posted struct {
	due time.Time
	id  string
}

// Latency submits single jobs at a steady rate, whether or not the answers keep up. It returns when all have ended.
func (a *API) Latency(ctx context.Context, s Steady) (Latencies, error) {
	p := &posting{api: a, Steady: s}
	if err := p.run(ctx); err != nil {
		return p.seen, err
	}
	if s.Came != nil {
		if err := s.Came(ctx); err != nil {
			return p.seen, err
		}
	}
	if err := a.Drained(ctx); err != nil {
		return p.seen, err
	}
	if s.Started != nil {
		for _, job := range p.jobs {
			p.seen.Start = append(p.seen.Start, s.Started(job.id).Sub(job.due))
		}
		return p.seen, nil
	}
	starts, err := a.starts(ctx, p.jobs)
	p.seen.Start = starts
	return p.seen, err
}

// Posts is Latency for an installation that never drains: it has only the starts of followed jobs.
func (a *API) Posts(ctx context.Context, s Steady) (Latencies, error) {
	p := &posting{api: a, Steady: s}
	err := p.run(ctx)
	return p.seen, err
}

// posting is one steady load.
type posting struct {
	Steady
	api *API

	mu   sync.Mutex
	seen Latencies
	jobs []posted
}

func (p *posting) run(ctx context.Context) error {
	every := 0 // jobs until the next followed one
	if p.Follow > 0 {
		every = max((p.Rate+p.Follow-1)/p.Follow, 1)
	}
	request := []byte(p.Request)
	all, posting := errgroup.WithContext(ctx)
	begin := time.Now().Add(10 * time.Millisecond)
	for i := range int(p.For.Seconds() * float64(p.Rate)) {
		due := begin.Add(time.Duration(i) * time.Second / time.Duration(p.Rate))
		if !until(posting, due) {
			break
		}
		all.Go(func() error {
			id, err := p.post(posting, request, due)
			if err != nil || id == "" || every == 0 || i%every != 0 {
				return err
			}
			return p.follow(posting, id, due)
		})
	}
	return errors.Join(all.Wait(), ctx.Err())
}

// post submits one job. The id is empty if it was refused.
func (p *posting) post(ctx context.Context, request []byte, due time.Time) (string, error) {
	var id string
	var err error
	if p.Submit != nil {
		id, err = p.Submit(ctx)
	} else {
		id, err = p.api.Submit(ctx, request)
	}
	took := time.Since(due)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case errors.Is(err, ErrRefused):
		p.seen.Refused++
		return "", nil
	case err != nil:
		return "", fmt.Errorf("submit job: %w", err)
	}
	p.seen.Post = append(p.seen.Post, took)
	p.jobs = append(p.jobs, posted{due, id})
	return id, nil
}

func (p *posting) follow(ctx context.Context, id string, due time.Time) error {
	job, err := p.api.Completed(ctx, id)
	took := time.Since(due)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen.Completed = append(p.seen.Completed, took)
	if job.StartedAt != nil {
		p.seen.Start = append(p.seen.Start, job.StartedAt.Sub(due))
	}
	return nil
}

// until waits for an instant; false if ctx ended first.
func until(ctx context.Context, at time.Time) bool {
	left := time.Until(at)
	if left <= 0 {
		return ctx.Err() == nil
	}
	select {
	case <-time.After(left):
		return true
	case <-ctx.Done():
		return false
	}
}

// starts reads from the list when each job's handler started. Both are on the same machine, so the same clock
// applies.
func (a *API) starts(ctx context.Context, jobs []posted) ([]time.Duration, error) {
	due := make(map[string]time.Time, len(jobs))
	for _, job := range jobs {
		due[job.id] = job.due
	}
	var starts []time.Duration
	for query, left := "", len(due); left > 0; {
		page, next, err := a.List(ctx, fmt.Sprintf("limit=%d%s", pageSize, query))
		if err != nil {
			return nil, fmt.Errorf("list jobs: %w", err)
		}
		for _, job := range page {
			at, ours := due[job.JobID]
			if !ours {
				continue
			}
			if job.StartedAt == nil {
				return nil, fmt.Errorf("job %s is %s and shows no start", job.JobID, job.Status)
			}
			starts = append(starts, job.StartedAt.Sub(at))
			left--
		}
		if next == "" {
			break
		}
		query = "&cursor=" + next
	}
	if len(starts) != len(jobs) {
		return nil, fmt.Errorf("the API lists only %d of %d jobs", len(starts), len(jobs))
	}
	return starts, nil
}
