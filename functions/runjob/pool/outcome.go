package pool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/client/durable"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/sealing"
	"github.com/jobweaver/jobweaver/shared/telemetry"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

// ended returns the fields that all outcomes of an attempt have.
func ended(a *Attempt, kind jobevent.Kind) workerdb.Outcome {
	return workerdb.Outcome{
		Key: a.Key(), TraceID: a.TraceID, RanBy: a.ranBy(), Kind: kind, StartedAt: a.StartedAt, FinishedAt: time.Now(),
	}
}

// ResultOutcome returns the outcome of a handler that returned no error.
func ResultOutcome(a *Attempt, r handlers.Result) workerdb.Outcome {
	switch {
	case r.WaitFor > 0:
		o := ended(a, workerdb.Waiting)
		o.CallbackTimeout = max(r.WaitFor, time.Millisecond) // stored in milliseconds, and never 0
		return o
	case r.Snooze > 0:
		o := ended(a, jobevent.KindSnoozed)
		o.RetryAfter, o.Retryable = max(r.Snooze, time.Millisecond), true
		return o
	}
	if wrong := checkOutput(r.Output); wrong != nil {
		return FailedOutcome(a, wrong)
	}
	o := ended(a, workerdb.Completed)
	o.Output = a.sealer.Seal(a.spot(sealing.Output), r.Output)
	return o
}

func checkOutput(output json.RawMessage) *handlers.Failure {
	switch {
	case len(output) > handlers.MaxOutput:
		return &handlers.Failure{
			Code:    string(apierror.OutputTooLarge),
			Message: fmt.Sprintf("the output has %d bytes, %d are allowed", len(output), handlers.MaxOutput),
		}
	case output != nil && !isSound(output):
		return &handlers.Failure{
			Code:    string(apierror.InvalidOutput),
			Message: "the output is not JSON in UTF-8, each name once in its object and not too deep",
		}
	}
	return nil
}

// around is more than the depth at which events and answers contain an output.
const around = 100

// isSound reports whether an output is JSON that all its readers can read. A service that a FUNCTION calls may have
// written it: a duplicate name, half a surrogate pair or too deep nesting would make the whole list of jobs fail.
func isSound(output json.RawMessage) bool {
	if !jsontext.Value(output).IsValid() {
		return false
	}
	const deep = 10_000 // bytes; a shorter output cannot be nested too deep
	return len(output) < deep || jsontext.Value(slices.Concat(
		bytes.Repeat([]byte("["), around), output, bytes.Repeat([]byte("]"), around))).IsValid()
}

// ErrorOutcome returns the outcome of a handler that returned an error. If the handler's context had ended, the outcome
// is that of the reason.
func ErrorOutcome(ctx context.Context, a *Attempt, err error) workerdb.Outcome {
	if cause := context.Cause(ctx); isEnd(cause) {
		return endedOutcome(a, cause)
	}
	switch {
	case errors.Is(err, handlers.ErrLost):
		return lostOutcome(a, err)
	case errors.Is(err, handlers.ErrGivenBack):
		return interrupted(a, err.Error())
	}
	var failure *handlers.Failure
	var final *durable.Failure
	var snooze *durable.Snooze
	switch {
	case errors.As(err, &failure):
	case errors.As(err, &snooze):
		return ResultOutcome(a, handlers.Result{Snooze: snooze.For})
	case errors.As(err, &final):
		failure = &handlers.Failure{Code: final.Code, Message: final.Message}
	default:
		failure = &handlers.Failure{Code: string(apierror.HandlerFailed), Message: err.Error(), Retryable: true}
	}
	if failure.Cause != nil {
		telemetry.Logger(ctx).WarnContext(ctx, "attempt failed outside its job",
			"errorCode", failure.Code, "error", failure.Cause)
	}
	return FailedOutcome(a, failure)
}

// FailedOutcome returns the outcome of an attempt that failed.
func FailedOutcome(a *Attempt, f *handlers.Failure) workerdb.Outcome {
	o := ended(a, jobevent.KindFailed)
	o.ErrorCode, o.Message = Clean(f.Code, maxCode), a.sealMessage(Clean(f.Message, jobevent.MaxMessage))
	if o.ErrorCode == "" {
		o.ErrorCode = string(apierror.HandlerFailed)
	}
	o.Retryable = f.Retryable
	a.Private.Store(f.Private)
	if f.RetryAfter > 0 {
		o.RetryAfter = max(f.RetryAfter, time.Millisecond) // stored in milliseconds; 0 would mean the retry policy
	}
	return o
}

// UnknownTypeOutcome returns the outcome of an attempt whose type the worker does not run.
func UnknownTypeOutcome(a *Attempt) workerdb.Outcome {
	return givenBackOutcome(a, GiveBack{
		fmt.Sprintf("this worker has no handler for job type %q", a.Run.JobType), unknownTypeDelay,
	})
}

// givenBackOutcome returns the outcome of an attempt that goes back to the scheduler. From its error code the scheduler
// learns to choose other workers. The delay bounds what happens if it does not learn. No handler has started, so the
// job still expires.
func givenBackOutcome(a *Attempt, back GiveBack) workerdb.Outcome {
	o := ended(a, jobevent.KindSnoozed)
	o.StartedAt = time.Time{}
	o.RetryAfter, o.Retryable = min(time.Duration(a.Run.Attempt)*back.Delay, maxUnknownTypeDelay), true
	o.ErrorCode, o.Message = string(apierror.UnknownJobType), back.Why
	return o
}

const (
	unknownTypeDelay    = 2 * time.Second // times the number of the attempt
	maxUnknownTypeDelay = 10 * time.Minute
)

// endedOutcome returns the outcome of an attempt whose context ended for a reason.
func endedOutcome(a *Attempt, cause error) workerdb.Outcome {
	switch {
	case errors.Is(cause, handlers.ErrTimeout):
		return FailedOutcome(a, &handlers.Failure{
			Code: string(apierror.Timeout), Message: fmt.Sprintf("ran longer than %d ms", a.Run.TimeoutMs), Retryable: true,
		})
	case errors.Is(cause, handlers.ErrCancelled):
		o := ended(a, jobevent.KindCancelled)
		o.ErrorCode, o.Message = string(apierror.Cancelled), "cancelled"
		return o
	default:
		return interrupted(a, "its worker stopped")
	}
}

// expiredOutcome returns the outcome of an attempt that must not start any more.
func expiredOutcome(a *Attempt) workerdb.Outcome {
	o := ended(a, jobevent.KindCancelled)
	o.ErrorCode, o.Message = string(apierror.Expired), "not started before its expiresAt"
	return o
}

// lostOutcome returns the outcome of an attempt that ran in another process, which did not report.
func lostOutcome(a *Attempt, err error) workerdb.Outcome {
	o := ended(a, jobevent.KindLost)
	o.ErrorCode, o.Retryable = string(apierror.Lost), true
	o.Message = a.sealMessage(Clean(err.Error(), jobevent.MaxMessage))
	return o
}

// interrupted returns the outcome of an attempt that ended through no fault of its job: the job is attempted again.
func interrupted(a *Attempt, why string) workerdb.Outcome {
	o := ended(a, jobevent.KindInterrupted)
	o.Message, o.Retryable = why, true
	return o
}

func isEnd(cause error) bool {
	return errors.Is(cause, handlers.ErrTimeout) || errors.Is(cause, handlers.ErrCancelled) ||
		errors.Is(cause, handlers.ErrStopping) || errors.Is(cause, handlers.ErrLost)
}
