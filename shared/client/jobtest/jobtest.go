// Package jobtest is the part of the test kits that handlertest and workertest share: one job, whose attempts a test
// runs one after another, without a server. In a bubble of testing/synctest its time is that of the bubble.
package jobtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
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

	// DieBeforeSave and DieAfterSave let the next attempt die as if its process were killed: right before its n-th save
	// is stored, or right after. 0: it does not. Unlike in a killed process, its deferred functions run.
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
	Err      error         // of the handler
	Snooze   time.Duration // the job runs again after this time; 0: the attempt was not snoozed
	WaitFor  time.Duration // an outside system must call back within this time
	Died     bool          // the checkpoint that the Job had
	Log      []string      // LEVEL text
	Progress []string      // 40% message
	Saves    []json.RawMessage
}

var errDied = errors.New("the process has died")

// Next runs the next attempt. run calls the handler, and fills in its result.
func (j *Job) Next(ctx context.Context, run func(ctx context.Context, c *durable.Checkpoint, ran *Ran)) Ran {
	if j.ID == uuid.Nil {
		j.ID = uuid.Must(uuid.NewV7())
	}
	j.Attempts++
	ran := Ran{Attempt: j.Attempts}
	ctx, die := context.WithCancelCause(ctx)
	defer die(nil)
	var mu sync.Mutex
	checkpoint := durable.New(j.Saved, func(_ int64, data json.RawMessage) error {
		mu.Lock()
		defer mu.Unlock()
		n := len(ran.Saves) + 1
		if ran.Died {
			return durable.ErrOver
		}
		if n != j.DieBeforeSave {
			ran.Saves, j.Saved = append(ran.Saves, data), data
		}
		if n == j.DieBeforeSave || n == j.DieAfterSave {
			ran.Died = true
			die(errDied)
			runtime.Goexit()
		}
		return nil
	})
	result := ran
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer func() {
			if value := recover(); value != nil {
				result.Err = fmt.Errorf("panic: %v\n\n%s", value, debug.Stack())
			}
		}()
		run(ctx, checkpoint, &result)
	}()
	<-ended
	mu.Lock()
	defer mu.Unlock()
	j.DieBeforeSave, j.DieAfterSave = 0, 0
	result.Saves = ran.Saves
	if result.Died = ran.Died; result.Died {
		result.Err, result.Output, result.Snooze, result.WaitFor = errDied, nil, 0, 0
	}
	if snooze := (*durable.Snooze)(nil); errors.As(result.Err, &snooze) {
		result.Err, result.Snooze = nil, snooze.For
	}
	return result
}
