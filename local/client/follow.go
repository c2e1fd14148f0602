package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// lookEvery is how often a followed job is looked at; its end is told at once.
const lookEvery = 200 * time.Millisecond

// For so long a gateway that has answered before is asked again, with pauses that grow.
const (
	restartPatience = 2 * time.Minute
	maxPause        = 2 * time.Second
)

// maxWait is for how long one request asks for a job to be held; the API allows 60 s.
const maxWait = 30 * time.Second

// Follow calls seen for each new version of a job and whenever it waits for something else, and returns the job once
// it has ended.
func Follow(ctx context.Context, c *Client, id string, seen func(*Job)) (*Job, error) {
	return FollowThrough(ctx, c, id, seen, nil)
}

// FollowThrough is Follow through restarts of the gateway: see Through.
func FollowThrough(ctx context.Context, c *Client, id string, seen func(*Job), lost func(error)) (*Job, error) {
	last, wait := "", time.Duration(0) // the first look is at once
	for {
		var job *Job
		err := c.Through(ctx, lost, func() (err error) {
			job, err = c.Get(ctx, id, wait)
			return err
		})
		if err != nil {
			return nil, err
		}
		state := fmt.Sprint(job.UpdatedAt, job.Status, job.NextRunAt, job.BlockedBy)
		wait = lookEvery
		if state != last {
			last = state
			seen(job)
		}
		if job.Terminal() {
			return job, nil
		}
	}
}

// Await reads a job once it has ended, or as it is when within is over.
func (c *Client) Await(ctx context.Context, id string, within time.Duration, lost func(error)) (job *Job, err error) {
	for end := time.Now().Add(within); ; {
		left := time.Until(end)
		err := c.Through(ctx, lost, func() (err error) {
			job, err = c.Get(ctx, id, min(max(left, 0), maxWait))
			return err
		})
		if err != nil || job.Terminal() || left <= 0 {
			return job, err
		}
		if err := pauseFor(ctx, min(lookEvery, left)); err != nil { // a busy gateway does not hold its answers
			return nil, err
		}
	}
}

func pauseFor(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// Through asks until there is an answer, if the gateway has answered before: it may be restarting. lost is called once
// with the error of the first try that failed; nil: nothing is tried again.
func (c *Client) Through(ctx context.Context, lost func(error), ask func() error) error {
	end, pause := time.Now().Add(restartPatience), lookEvery
	for try := 1; ; try++ {
		err := ask()
		if lost == nil || !Unreached(err) || !c.answered.Load() || time.Now().After(end) {
			return err
		}
		if try == 1 {
			lost(err)
		}
		if err := pauseFor(ctx, pause); err != nil {
			return err
		}
		pause = min(2*pause, maxPause)
	}
}

// Unreached tells whether an error is of the way to the gateway, or of one that cannot answer now: nobody knows whether
// it has done what it was asked for.
func Unreached(err error) bool {
	var refused *Error
	if errors.As(err, &refused) {
		return slices.Contains([]int{
			http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
		}, refused.Status)
	}
	var way *url.Error
	return errors.As(err, &way) && !errors.Is(err, context.Canceled)
}
