// Package handlers is what a worker can run: the registry of job types, and the built-in ones, a file each.
package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// Handler runs one attempt. It must end soon after its context does; context.Cause then has the reason
// (ErrTimeout, ErrCancelled, ErrStopping, ErrLost). An error fails the attempt: a *Failure describes how,
// any other is retryable; one that wraps ErrLost or ErrGivenBack ends the attempt that way. A panic fails it too. It
// must not end its goroutine (runtime.Goexit).
type Handler func(ctx context.Context, a *Attempt) (Result, error)

// Why an attempt's context ended, as context.Cause gives it.
var (
	ErrTimeout   = errors.New("the attempt ran longer than its job's timeoutMs")
	ErrCancelled = errors.New("the attempt was cancelled")
	ErrStopping  = errors.New("the worker is stopping") // the job is attempted again, no retry counted
	ErrLost      = errors.New("the worker was declared lost, another attempt is on its way")
	ErrGivenBack = errors.New("the worker has nobody to run the attempt") // returned by a handler only; likewise no retry
)

// Attempt is what a handler is given.
type Attempt struct {
	JobID   uuid.UUID
	OwnerID string // empty: the job has none
	Number  int    // 1 for a job's first attempt; counts lost and interrupted ones too
	Token   string // <jobId>.<number>: fence side effects with it
	TraceID uuid.UUID
	JobType string
	Queue   string // it came from; empty: in a test
	Payload json.RawMessage
	Timeout time.Duration // after its start its context ends

	// WhenSettled has a function called once the attempt's outcome is in the store, with the kind that the store has:
	// another outcome than the handler's, when it was decided elsewhere. It must return at once. nil: in a test.
	WhenSettled func(func(jobevent.Kind))

	log      func(level slog.Level, text string)
	progress func(jobevent.Progress)
}

// NewAttempt makes the attempt of a run order. log takes its lines and progress its reports.
func NewAttempt(
	run jobevent.Run, traceID uuid.UUID, log func(slog.Level, string), progress func(jobevent.Progress),
) *Attempt {
	return &Attempt{
		JobID: run.JobID, OwnerID: run.OwnerID, Number: run.Attempt, Token: jobevent.AttemptToken(run.JobID, run.Attempt),
		TraceID: traceID, Payload: run.Payload,
		Timeout: time.Duration(run.TimeoutMs) * time.Millisecond, log: log, progress: progress,
	}
}

// Log adds a line to the attempt's log, which people read beside the job.
func (a *Attempt) Log(level slog.Level, text string) { a.log(level, text) }

// Progress reports how far the attempt has come, in percent. Of the message the first 256 bytes are kept.
func (a *Attempt) Progress(percent int, message string) {
	a.progress(jobevent.Progress{Percent: min(max(percent, 0), 100), Message: message})
}

// Result is how an attempt that did not fail ends. At most one of WaitFor and Snooze is set; with
// neither the job is completed.
type Result struct {
	Output  json.RawMessage // at most MaxOutput bytes of JSON; may be nil
	WaitFor time.Duration   // an outside system has it now and calls back within this time
	Snooze  time.Duration   // attempt it again after this time; no retry is counted
}

// MaxOutput is how large a job's output may be.
const MaxOutput = 256 << 10
