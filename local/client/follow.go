package client

import (
	"context"
	"fmt"
	"time"
)

// lookEvery is how often a followed job is looked at; its end is told at once.
const lookEvery = 200 * time.Millisecond

// Follow calls seen for each new version of a job and whenever it waits for something else, and returns the job once
// it has ended.
func Follow(ctx context.Context, c *Client, id string, seen func(*Job)) (*Job, error) {
	last, wait := "", time.Duration(0) // the first look is at once
	for {
		job, err := c.Get(ctx, id, wait)
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
