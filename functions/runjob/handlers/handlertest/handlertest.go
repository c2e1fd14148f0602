// Package handlertest runs a handler of runjob in a test, attempt by attempt, without a server.
package handlertest

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/shared/client/durable"
	"github.com/jobweaver/jobweaver/shared/client/jobtest"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// Run runs the next attempt of a job: registry.Find(jobType) as its handler includes the registry's middleware. ctx is
// the parent of the handler's context.
func Run(ctx context.Context, job *jobtest.Job, handler handlers.Handler, payload any) jobtest.Ran {
	return job.Next(ctx, func(ctx context.Context, c *durable.Checkpoint, _ durable.Steps, ran *jobtest.Ran) {
		text, err := json.Marshal(payload)
		if err != nil {
			ran.Err = fmt.Errorf("write payload: %w", err)
			return
		}
		run := jobevent.Run{
			JobID: job.ID, Attempt: ran.Attempt, Payload: text,
			Spec: jobevent.Spec{TimeoutMs: (10 * time.Minute).Milliseconds()},
		}
		a := handlers.NewAttempt(run, uuid.New(), func(level slog.Level, text string) {
			ran.Log = append(ran.Log, level.String()+" "+text)
		}, func(p jobevent.Progress) {
			ran.Progress = append(ran.Progress, fmt.Sprintf("%d%% %s", p.Percent, p.Message))
		})
		a.Checkpoint = c
		result, err := handler(ctx, a)
		ran.Output, ran.Snooze, ran.WaitFor, ran.Err = result.Output, result.Snooze, result.WaitFor, err
	})
}
