package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/jobweaver/jobweaver/local/suites/kill/witness"
	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/retry"
)

// standing is how the waits of a job stand.
type standing struct {
	delay  time.Duration     // with which to snooze; 0: none is open
	failed bool              // a job that it called has not completed
	of     []json.RawMessage // the outputs of the jobs that it called
}

func (s standing) output(attempt int) map[string]any {
	output := map[string]any{"attempt": attempt}
	if s.of != nil {
		output["of"] = s.of
	}
	return output
}

// await asks how the waits of a job stand, until an answer gives that.
func (p *poller) await(ctx context.Context, h *held, payload witness.Payload) (stand standing, err error) {
	waits := waitsOf(payload)
	for len(waits) > 0 {
		within, cancel := context.WithTimeout(ctx, 12*time.Second)
		answer, err := p.api.WaitInAttempt(within, p.name, h.Token, waits...)
		cancel()
		var refused *client.Error
		switch {
		case err == nil:
			for _, w := range answer.Waits {
				if w.Job != nil && w.Status == client.WaitDone {
					stand.failed = stand.failed || w.Job.Status != client.Completed
					stand.of = append(stand.of, w.Job.Output)
				}
			}
			stand.delay = answer.Delay
			return stand, nil
		case errors.As(err, &refused) && refused.Status == http.StatusConflict:
			return stand, errLost
		}
		if !retry.Pause(ctx, pace) {
			return stand, context.Cause(ctx)
		}
	}
	return stand, nil
}

func waitsOf(payload witness.Payload) (waits []client.WorkWait) {
	if payload.Receives {
		waits = append(waits, client.WorkWait{Name: "event", Event: &client.EventWait{
			Type: witness.EventType, Match: map[string]any{"key": payload.Key},
		}})
	}
	for i := range payload.Calls {
		key := witness.Called(payload.Key, i)
		waits = append(waits, client.WorkWait{Name: key, Group: "calls", Job: &client.JobRequest{
			JobType: "WITNESS", Queue: "pull", Tags: []string{key}, Payload: map[string]any{"key": key, "ms": 200 * i},
		}})
	}
	return waits
}
