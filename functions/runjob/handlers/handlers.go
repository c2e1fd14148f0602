// Package handlers has the registry of job types that a worker runs, and the built-in job types, a file each.
package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/client/durable"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// Handler runs one attempt. It must end soon after its context ends; context.Cause then returns the reason (ErrTimeout,
// ErrCancelled, ErrStopping, ErrLost). An error fails the attempt: a *Failure describes how, and any other error is
// retryable. An error that wraps ErrLost or ErrGivenBack makes the attempt lost or interrupted. A panic fails the
// attempt too. A handler must not end its goroutine (runtime.Goexit).
type Handler func(ctx context.Context, a *Attempt) (Result, error)

// The reasons for which an attempt's context ends, as context.Cause returns them.
var (
	ErrTimeout   = errors.New("the attempt ran longer than its job's timeoutMs")
	ErrCancelled = errors.New("the attempt was cancelled")
	ErrStopping  = errors.New("the worker is stopping") // the job is attempted again, and no retry is counted
	ErrLost      = errors.New("the worker was declared lost, another attempt is on its way")
	ErrGivenBack = errors.New("the worker has no process to run the attempt") // by a handler only; no retry
)

// Attempt is an attempt as its handler receives it.
type Attempt struct {
	JobID   uuid.UUID
	OwnerID string // empty: the job has no owner
	Number  int    // 1 for a job's first attempt; lost and interrupted attempts count too
	Token   string // <jobId>.<number>: for fencing side effects
	TraceID uuid.UUID
	JobType string
	Queue   string // of the job; empty: in a test
	Payload json.RawMessage
	Timeout time.Duration // how long after the start the context ends

	// Checkpoint loads what the job's earlier attempts have saved, and saves values for the next attempt. In a test it
	// is empty, and saves nothing.
	Checkpoint *durable.Checkpoint

	// Saved and Save are the same for a handler that lets another process run the attempt: the JSON as it was saved (nil:
	// none), and the function that saves the next one. If two saves cross, the one with the higher number counts.
	Saved json.RawMessage
	Save  func(ctx context.Context, number int64, data json.RawMessage) error

	// Start is for the same handlers: they call it when the other process is about to start the attempt. From then on its
	// timeout counts, and it expires no more. It returns false if the attempt must not start any more.
	Start func() bool

	// RunBy is for the same handlers: it names the other process, for the job's page and the list of workers.
	RunBy func(name string)

	// Parents are the jobs of the flow to whose outputs the payload refers. The payload has these outputs already.
	Parents []jobevent.Parent

	// Event has the attributes of the CloudEvent that submitted the job, as in CloudEvents' JSON format; nil: none did.
	Event json.RawMessage

	// WhenSettled registers a function to be called once the attempt's outcome is in the store, with the kind of that
	// outcome. It is not the handler's outcome if another worker or a timeout decided first. The function must return at
	// once. nil: in a test.
	WhenSettled func(func(jobevent.Kind))

	log      func(level slog.Level, text string)
	progress func(jobevent.Progress)
}

// NewAttempt returns the attempt of a run order. log receives its log lines, and progress its progress.
func NewAttempt(
	run jobevent.Run, traceID uuid.UUID, log func(slog.Level, string), progress func(jobevent.Progress),
) *Attempt {
	return &Attempt{
		JobID: run.JobID, OwnerID: run.OwnerID, Number: run.Attempt, Token: jobevent.AttemptToken(run.JobID, run.Attempt),
		TraceID: traceID, Payload: run.Payload, Event: run.Event,
		Timeout: time.Duration(run.TimeoutMs) * time.Millisecond, log: log, progress: progress,
		Checkpoint: durable.New(nil, func(int64, json.RawMessage) error { return nil }),
	}
}

// Log adds a line to the attempt's log, which the API shows with the job.
func (a *Attempt) Log(level slog.Level, text string) { a.log(level, text) }

// Progress reports the attempt's progress in percent. The first 256 bytes of the message are kept.
func (a *Attempt) Progress(percent int, message string) {
	a.progress(jobevent.Progress{Percent: min(max(percent, 0), 100), Message: message})
}

// Result is the result of an attempt that did not fail. At most one of WaitFor and Snooze is set; without them the job
// is completed.
type Result struct {
	Output  json.RawMessage // at most MaxOutput bytes of JSON; may be nil
	WaitFor time.Duration   // an outside system continues the attempt, and calls back within this time
	Snooze  time.Duration   // the job is attempted again after this time; no retry is counted
}

// MaxOutput is the most bytes of a job's output.
const MaxOutput = 256 << 10
