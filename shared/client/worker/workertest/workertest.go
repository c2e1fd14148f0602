// Package workertest runs a handler of a pull worker in a test, attempt by attempt, without a server.
package workertest

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/client/durable"
	"github.com/jobweaver/jobweaver/shared/client/jobrun"
	"github.com/jobweaver/jobweaver/shared/client/jobtest"
	"github.com/jobweaver/jobweaver/shared/client/worker"
)

// Run runs the next attempt of a job, with the worker's handler of the job type and its middleware. ctx is the parent
// of the handler's context.
func Run(ctx context.Context, job *jobtest.Job, w *worker.Worker, jobType string, payload any) jobtest.Ran {
	return job.Next(ctx, func(ctx context.Context, c *durable.Checkpoint, steps durable.Steps, ran *jobtest.Ran) {
		c.KeepSteps(steps)
		text, err := json.Marshal(payload)
		if err != nil {
			ran.Err = fmt.Errorf("write payload: %w", err)
			return
		}
		a := &worker.Attempt{Checkpoint: c, Ask: job.Ask, WorkAttempt: client.WorkAttempt{
			Info:    jobrun.Info{JobID: job.ID.String(), Attempt: ran.Attempt, JobType: jobType},
			Payload: text, Deadline: time.Now().Add(10 * time.Minute),
		}}
		defer func() {
			lines, progress := a.Reported()
			for _, line := range lines {
				ran.Log = append(ran.Log, line.Level+" "+line.Text)
			}
			if progress != nil {
				ran.Progress = []string{fmt.Sprintf("%d%% %s", progress.Percent, progress.Message)}
			}
		}()
		ran.Output, ran.WaitFor, ran.Err = w.Call(ctx, a)
	})
}
