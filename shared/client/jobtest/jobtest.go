// Package jobtest is the part of the test kits that handlertest and workertest share: one job, whose attempts a test
// runs one after another, without a server. In a bubble of testing/synctest its time is that of the bubble.
package jobtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/client/durable"
)

// Job is a job between its attempts. The zero value is a new one.
type Job struct {
	ID       uuid.UUID
	Attempts int             // that have begun
	Saved    json.RawMessage // the checkpoint; nil: none

	// Steps are the steps and sleeps that its attempts have saved, in their order. Only handlers of pull workers have any.
	Steps []durable.Kept

	// DieBeforeSave and DieAfterSave let the next attempt die as if its process were killed: right before its n-th save,
	// of a checkpoint, step or sleep, is stored, or right after. 0: it does not. Unlike in a killed process, its deferred
	// functions run.
	DieBeforeSave, DieAfterSave int

	// Events have come for the job: its handler gets each of them once, the first that fits.
	Events []client.CloudEvent
	// Called returns the output of a job that the handler calls, or the error with which that fails; false: it has not
	// ended. It is asked again in each attempt until the job has ended. nil: no call ends.
	Called func(request client.JobRequest) (output any, ended bool, err error)

	waits map[string]*wait
}

// Ran is the result of an attempt.
type Ran struct {
	Attempt  int
	Output   json.RawMessage
	Err      error             // of the handler
	Snooze   time.Duration     // the job runs again after this time; 0: the attempt was not snoozed
	WaitFor  time.Duration     // an outside system must call back within this time
	Died     bool              // as the Job asked for
	Log      []string          // LEVEL text
	Progress []string          // 40% message
	Saves    []json.RawMessage // the checkpoints that it has stored
	Steps    []durable.Kept    // the steps and sleeps that it has stored
}

var errDied = errors.New("the process has died")

// Step returns the step or sleep of a name that the attempts of the job have saved; nil: none has.
func (j *Job) Step(name string) *durable.Kept {
	i := slices.IndexFunc(j.Steps, func(step durable.Kept) bool { return step.Name == name })
	if i < 0 {
		return nil
	}
	return &j.Steps[i]
}

// Next runs the next attempt. run calls the handler, and fills in its result. If the handler's worker keeps steps, run
// gives them to the checkpoint.
func (j *Job) Next(
	ctx context.Context, run func(ctx context.Context, c *durable.Checkpoint, steps durable.Steps, ran *Ran),
) Ran {
	if j.ID == uuid.Nil {
		j.ID = uuid.Must(uuid.NewV7())
	}
	j.Attempts++
	ctx, die := context.WithCancelCause(ctx)
	defer die(nil)
	s := &saves{job: j, die: die}
	checkpoint := durable.New(j.Saved, s.checkpoint)
	steps := durable.Steps{Save: s.step}
	if j.Attempts > 1 {
		steps.Read = s.read
	}
	result := Ran{Attempt: j.Attempts}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer func() {
			if value := recover(); value != nil {
				result.Err = fmt.Errorf("panic: %v\n\n%s", value, debug.Stack())
			}
		}()
		run(ctx, checkpoint, steps, &result)
	}()
	<-ended
	<-checkpoint.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	j.DieBeforeSave, j.DieAfterSave = 0, 0
	result.Saves, result.Steps = s.checkpoints, s.steps
	if result.Died = s.died; result.Died {
		result.Err, result.Output, result.Snooze, result.WaitFor = errDied, nil, 0, 0
	}
	if snooze := (*durable.Snooze)(nil); errors.As(result.Err, &snooze) {
		result.Err, result.Snooze = nil, snooze.For
	}
	return result
}
