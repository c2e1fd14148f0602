package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"time"
)

// lookEvery is the interval between reads of a followed job if there is no stream; its end is still reported at once.
// lookAgain is the interval if there is a stream.
const (
	lookEvery = 200 * time.Millisecond
	lookAgain = 2 * time.Second
)

// How long requests to a gateway that has answered before are repeated, and the longest of the growing pauses.
const (
	restartPatience = 2 * time.Minute
	maxPause        = 2 * time.Second
)

// maxWait is how long one request asks the gateway to hold its answer; the API allows 60 s.
const maxWait = 30 * time.Second

// Follow calls seen for each new version of a job, and whenever the reason why it waits changes. It returns the job
// once it has ended.
func Follow(ctx context.Context, c *Client, id string, seen func(*Job)) (*Job, error) {
	return FollowThrough(ctx, c, id, seen, nil)
}

// FollowThrough is Follow through restarts of the gateway: see Through. It follows the job by its event stream, and
// polls if the gateway has none.
func FollowThrough(ctx context.Context, c *Client, id string, seen func(*Job), lost func(error)) (*Job, error) {
	f := follower{c: c, id: id, seen: seen, lost: lost}
	streams, wait := true, time.Duration(0) // the first look is at once
	for {
		job, err := f.look(ctx, wait)
		if err != nil || job.Terminal() {
			return job, err
		}
		if streams {
			if job, streams, err = f.listen(ctx); err != nil || job != nil {
				return job, err
			}
		}
		wait = lookEvery
	}
}

// follower follows one job.
type follower struct {
	c    *Client
	id   string
	last string // the last version that was passed to seen
	seen func(*Job)
	lost func(error)
}

func (f *follower) note(job *Job) {
	state := fmt.Sprint(job.UpdatedAt, job.Status, job.NextRunAt, job.BlockedBy)
	if state != f.last {
		f.last = state
		f.seen(job)
	}
}

func (f *follower) look(ctx context.Context, wait time.Duration) (job *Job, err error) {
	err = f.c.Through(ctx, f.lost, func() (err error) {
		job, err = f.c.Get(ctx, f.id, wait)
		return err
	})
	if err != nil {
		return nil, err
	}
	f.note(job)
	return job, nil
}

// listen follows the job by its stream. It returns the job once it has ended, or no job if the stream ends first.
// streams is false if the gateway has no stream for the job. The reason why a job waits can change without an event
// about the job, so listen also reads the job now and then.
func (f *follower) listen(ctx context.Context) (job *Job, streams bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events, err := f.c.stream(ctx, "/api/stream?jobId="+url.QueryEscape(f.id))
	if err != nil {
		return nil, Unreached(err), nil //nolint:nilerr // the next look meets it
	}
	defer func() {
		cancel()
		for range events { // until the stream's reader has ended
		}
	}()
	again := time.NewTicker(lookAgain)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, true, ctx.Err()
		case e, open := <-events:
			if !open {
				return nil, true, nil
			}
			if !f.asks(e) {
				continue
			}
		case <-again.C:
		}
		if job, err = f.look(ctx, 0); err != nil || job.Terminal() {
			return job, true, err
		}
	}
}

// asks reports whether the whole job must be read after an event. While the job has not ended, the job in the event is
// passed to seen instead.
func (f *follower) asks(e event) bool {
	if e.name != "job" {
		return e.name == "reload"
	}
	var job Job
	if json.Unmarshal(e.data, &job) != nil || job.Terminal() {
		return true
	}
	f.note(&job)
	return false
}

// Await reads a job once it has ended, or as it is when within is over.
func (c *Client) Await(ctx context.Context, id string, within time.Duration, lost func(error)) (job *Job, err error) {
	for end := time.Now().Add(within); ; {
		left := time.Until(end)
		err := c.Through(ctx, lost, func() (err error) {
			return Held(min(max(left, 0), maxWait), func(wait time.Duration) error {
				job, err = c.Get(ctx, id, wait)
				return err
			})
		})
		if err != nil || job.Terminal() || left <= 0 {
			return job, err
		}
		if err := pauseFor(ctx, min(lookEvery, left)); err != nil { // a busy gateway does not hold its answers
			return nil, err
		}
	}
}
