package worker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/client/durable"
)

// The reasons why an attempt's context ends, as context.Cause returns them.
var (
	ErrTimeout   = errors.New("the attempt ran longer than its job's timeoutMs")
	ErrCancelled = errors.New("the attempt was cancelled")
	ErrStopping  = errors.New("the worker is stopping")
	ErrLost      = errors.New("the attempt is lost: it was taken away, or no heartbeat was answered for 10 s")
)

// Failure is an error that describes how the attempt failed. Any other error is retryable.
type Failure struct {
	Code       string // namespaced, as in RESIZE.NO_IMAGE
	Message    string
	Retryable  bool
	RetryAfter time.Duration // 0: the job's policy decides
}

// Error returns the code and the message.
func (f *Failure) Error() string { return f.Code + ": " + f.Message }

// waiting is the error of an attempt that waits for a callback.
type waiting time.Duration

func (w waiting) Error() string { return "waits for a callback for " + time.Duration(w).String() }

// Snooze is an error with which a handler asks to run again after a time. No retry is counted.
func Snooze(d time.Duration) error { return &durable.Snooze{For: d} }

// WaitFor is an error with which a handler reports that it has handed its attempt, with its Callback, to an outside
// system, which calls back within the time.
func WaitFor(d time.Duration) error {
	return waiting(max(d, time.Millisecond))
}

type handler func(ctx context.Context, a *Attempt) (json.RawMessage, error)

// Handle registers the handler of a job type. encoding/json decodes the payload into an In and encodes the Out as the
// job's output; json.RawMessage passes them unchanged. The handler returns a *Failure, a Snooze, a WaitFor or any other
// error; a panic is a failure, too. The handler must end soon after its context ends; context.Cause returns the reason.
// It may still run for a while after the attempt was lost and the job runs elsewhere: fence side effects by JobID and
// Attempt.
func Handle[In, Out any](w *Worker, jobType string, run func(ctx context.Context, a *Attempt, in In) (Out, error)) {
	w.handlers[jobType] = func(ctx context.Context, a *Attempt) (json.RawMessage, error) {
		var in In
		if err := json.Unmarshal(a.Payload, &in); err != nil {
			return nil, &Failure{Code: "WORKER.INVALID_PAYLOAD", Message: "payload: " + err.Error()}
		}
		out, err := run(ctx, a, in)
		if err != nil {
			return nil, err
		}
		output, err := durable.JSON("the output", out)
		if err != nil {
			return nil, err
		}
		if len(output) > maxOutput {
			message := fmt.Sprintf("the output has %d bytes, %d are allowed", len(output), maxOutput)
			return nil, &Failure{Code: "WORKER.OUTPUT_TOO_LARGE", Message: message}
		}
		return output, nil
	}
}

// HandleTask registers the handler of a task, as Handle does. Run sends the task's definition to the gateway first.
func HandleTask[In, Out any](
	w *Worker, task *client.Task[In, Out], run func(ctx context.Context, a *Attempt, in In) (Out, error),
) {
	Handle(w, task.Type, run)
	w.tasks[task.Type] = task.Definition()
}

const (
	maxOutput   = 256 << 10
	maxMessage  = 4 << 10
	maxProgress = 256      // the most bytes of a message
	maxLines    = 200      // the most lines of an attempt
	maxLogBytes = 64 << 10 // likewise
	maxLine     = 16 << 10
)

// Attempt is an attempt as its handler receives it.
type Attempt struct {
	client.WorkAttempt

	// Checkpoint loads what earlier attempts of the job have saved, and saves values for the next attempt. Step and Sleep
	// of package durable use it, too.
	Checkpoint *durable.Checkpoint

	// Ask asks the gateway how waits stand, and keeps them: Receive and Call use it. A test has its own.
	Ask func(ctx context.Context, waits []client.WorkWait) (client.WorkWaitAnswer, error)

	ctx    context.Context // the handler's
	cancel context.CancelCauseFunc
	alive  context.Context // ends when the result is stored or no longer counts
	end    context.CancelCauseFunc
	close  context.CancelFunc
	fence  *time.Timer // ends the attempt when no heartbeat was answered for too long

	output json.RawMessage // of the handler
	err    error           // likewise
	result client.WorkResult
	wrong  bool // the gateway has refused the handler's result

	mu       sync.Mutex
	overAt   time.Time         // when the handler was first to end
	progress *client.Progress  // not sent yet
	lines    []client.WorkLine // not sent yet
	logged   int
	bytes    int
}

func newAttempt(life context.Context, got client.WorkAttempt) *Attempt {
	a := &Attempt{WorkAttempt: got}
	a.alive, a.end = context.WithCancelCause(life)
	a.ctx, a.cancel = context.WithCancelCause(a.alive)
	a.ctx, a.close = context.WithDeadlineCause(a.ctx, a.Deadline, ErrTimeout)
	a.fence = time.AfterFunc(silence, func() { a.end(ErrLost) })
	context.AfterFunc(a.ctx, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.overAt = time.Now()
	})
	return a
}

// run calls the handler. A panic fails the attempt and does not end the worker.
func (a *Attempt) run(w *Worker) {
	a.err = &Failure{Code: "WORKER.PANIC", Message: "the handler ended its goroutine", Retryable: true}
	defer func() {
		if value := recover(); value != nil {
			a.err = panicked(value)
		}
	}()
	a.output, a.err = w.call(a.ctx, a)
}

// panicked returns the failure of a handler that panicked, for its deferred function.
func panicked(value any) *Failure {
	message := fmt.Sprintf("panic: %v\n\n%s", value, debug.Stack())
	return &Failure{Code: "WORKER.PANIC", Message: message, Retryable: true}
}

// givenBack returns the error of an attempt whose job still runs as another attempt. The longer the other one runs
// although it should have ended, the later the job is tried again. No retry is counted.
func (a *Attempt) givenBack(w *Worker, other *Attempt) error {
	text := fmt.Sprintf("%s still runs attempt %d of this job: this one is given back", w.o.Name, other.Attempt)
	a.Log(slog.LevelWarn, text)
	other.mu.Lock()
	defer other.mu.Unlock()
	late := time.Duration(0)
	if !other.overAt.IsZero() {
		late = time.Since(other.overAt)
	}
	return Snooze(min(max(late, time.Second), givenBackFor))
}

// resultOf returns the result that follows from the handler's output or error.
func (a *Attempt) resultOf() client.WorkResult {
	r := client.WorkResult{Token: a.Token, Status: client.Completed}
	var wait waiting
	var failure *Failure
	var final *durable.Failure
	var sleep *durable.Snooze
	var called *CallError
	cause := context.Cause(a.ctx)
	switch {
	case a.err == nil:
		r.Output = a.output
		return r
	case errors.As(a.err, &wait):
		r.Status, r.CallbackTimeout = client.Waiting, time.Duration(wait)
		return r
	case errors.As(a.err, &sleep):
		r.Status, r.Delay = client.WorkSnoozed, max(sleep.For, time.Millisecond)
		return r
	case errors.As(a.err, &failure):
	case errors.As(a.err, &final):
		failure = &Failure{Code: final.Code, Message: final.Message}
	case errors.As(a.err, &called):
		failure = &Failure{Code: "WORKER.CHILD_FAILED", Message: called.Error()}
	case errors.Is(a.err, ErrStopping), errors.Is(cause, ErrStopping): // given back
		r.Status, r.Delay = client.WorkSnoozed, time.Millisecond
		return r
	case errors.Is(cause, ErrTimeout):
		failure = &Failure{Code: "WORKER.TIMEOUT", Message: cause.Error(), Retryable: true}
	case errors.Is(cause, ErrCancelled):
		failure = &Failure{Code: "WORKER.CANCELLED", Message: cause.Error()}
	default:
		failure = &Failure{Message: a.err.Error(), Retryable: true}
	}
	r.Status, r.ErrorCode, r.Message = client.Failed, failure.Code, cut(failure.Message, maxMessage)
	r.Retryable, r.RetryAfter = &failure.Retryable, failure.RetryAfter
	return r
}

// answered handles the answer to the result.
func (a *Attempt) answered(answer client.WorkAnswer) {
	switch {
	case answer.Status == http.StatusServiceUnavailable: // again
	case answer.Status == http.StatusBadRequest && !a.wrong: // for example because JSON cannot be stored
		a.wrong, a.err = true, &Failure{Code: durable.NotJSON, Message: answer.Error.Message}
		a.result = a.resultOf()
	case answer.Status == http.StatusOK:
		a.end(nil)
	default:
		a.end(ErrLost)
	}
}

// save stores a checkpoint. It tries again until there is an answer, or the attempt is over.
func (a *Attempt) save(w *Worker, number int64, data json.RawMessage) error {
	for n := 0; a.alive.Err() == nil; n++ {
		ctx, cancel := context.WithTimeout(a.alive, settleTime)
		one := client.WorkCheckpoint{Token: a.Token, Number: number, Checkpoint: data}
		answers, err := w.c.SaveCheckpoints(ctx, w.o.Name, one)
		cancel()
		switch {
		case isFinal(err):
			return fmt.Errorf("save checkpoint: %w", err)
		case err != nil:
			w.o.Logger.WarnContext(a.alive, "save of a checkpoint failed, and is repeated", "error", err)
		case answers[0].Status == http.StatusOK:
			return nil
		case answers[0].Status == http.StatusConflict:
			a.end(ErrLost)
		case answers[0].Status != http.StatusServiceUnavailable:
			return &durable.Failure{Code: durable.NotJSON, Message: answers[0].Error.Message}
		}
		pause(a.alive, n)
	}
	return durable.ErrOver
}

// Log adds a line to the attempt's log, which is shown with the job. At most 200 lines and 64 KiB of an attempt are
// kept.
func (a *Attempt) Log(level slog.Level, text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.logged >= maxLines || a.bytes > maxLogBytes { // the line before made the gateway note that the log is cut off
		return
	}
	line := client.WorkLine{Level: "debug", Text: cut(text, maxLine)}
	switch {
	case level >= slog.LevelError:
		line.Level = "error"
	case level >= slog.LevelWarn:
		line.Level = "warn"
	case level >= slog.LevelInfo:
		line.Level = "info"
	}
	a.lines, a.logged, a.bytes = append(a.lines, line), a.logged+1, a.bytes+len(line.Text)
}

// Progress reports the attempt's progress in percent. The first 256 bytes of the message are kept.
func (a *Attempt) Progress(percent int, message string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.progress = &client.Progress{Percent: min(max(percent, 0), 100), Message: cut(message, maxProgress)}
}

// cut returns a text that the gateway accepts: of at most this many bytes, and without U+0000, which it cannot store.
func cut(text string, most int) string {
	text = strings.ReplaceAll(text, "\x00", "\uFFFD")
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len("…")], "") + "…"
}

// Reported returns, for a test, the log lines and the last progress that no heartbeat has sent yet.
func (a *Attempt) Reported() ([]client.WorkLine, *client.Progress) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.lines, a.progress
}

// hasNews reports whether the attempt has log lines or progress for the next heartbeat.
func (a *Attempt) hasNews() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.progress != nil || len(a.lines) > 0
}

// sign takes what the next heartbeat reports about the attempt, with as many log lines as there is room for.
func (a *Attempt) sign(room *int) client.WorkSign {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := 0
	for ; n < len(a.lines) && *room > 0; n++ {
		*room -= len(a.lines[n].Text)
	}
	s := client.WorkSign{Token: a.Token, Progress: a.progress, Log: a.lines[:n:n]}
	a.progress, a.lines = nil, a.lines[n:]
	return s
}

// restore puts back what could not be sent.
func (a *Attempt) restore(s client.WorkSign) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lines, a.progress = append(s.Log, a.lines...), cmp.Or(a.progress, s.Progress)
}
