package apibody

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/jobweaver/jobweaver/shared/apierror"
)

// Limits of steps.
const (
	MaxStepResult    = 256 << 10
	MaxStepBytes     = MaxStepResult + 16<<10
	MaxStepReadBytes = 16 << 10
	maxStepTime      = 366 * 24 * time.Hour
)

// OfAttempt names the attempt that a request of a pull worker is about.
type OfAttempt struct {
	Worker string
	Token  string
}

// Of returns it, whatever the request is.
func (t OfAttempt) Of() OfAttempt { return t }

// WorkStep is what a step of an attempt returned.
type WorkStep struct {
	OfAttempt

	Name   string
	Result json.RawMessage
	Until  *time.Time // of a sleep: when it is over
	TookMs *int64     // nil: it was not measured
}

// WorkStepsRead asks for the steps of an attempt's job.
type WorkStepsRead struct {
	OfAttempt

	After string // the last name of the page before; empty: the first page
}

// DecodeWorkStep reads a step to be saved. It returns all problems as an *apierror.Error.
func DecodeWorkStep(body []byte) (WorkStep, error) {
	step := WorkStep{Result: json.RawMessage("null")}
	r := newReader(body)
	complete := r.Object(func() {
		switch string(r.Name) {
		case "worker":
			step.Worker = r.Label(maxWorkerChars)
		case "token":
			step.Token = r.Label(maxToken)
		case "name":
			step.Name = r.Label(MaxWaitName)
		case "result":
			step.Result = slices.Clone(json.RawMessage(r.Raw()))
		case "until":
			if !r.Null() {
				step.Until = r.Instant()
			}
		case "tookMs":
			if !r.Null() {
				took := r.Integer(0, maxStepTime.Milliseconds())
				step.TookMs = &took
			}
		default:
			r.Unknown()
		}
	})
	if complete {
		r.required("worker", step.Worker)
		r.required("token", step.Token)
		r.required("name", step.Name)
	}
	err := r.Close().Err("step")
	if err == nil && len(step.Result) > MaxStepResult {
		err = apierror.New(apierror.PayloadTooLarge,
			"the result of a step may have at most %d bytes, and this one has %d", MaxStepResult, len(step.Result))
	}
	return step, err
}

// DecodeWorkStepsRead reads a request for steps. It returns all problems as an *apierror.Error.
func DecodeWorkStepsRead(body []byte) (WorkStepsRead, error) {
	var read WorkStepsRead
	r := newReader(body)
	complete := r.Object(func() {
		switch string(r.Name) {
		case "worker":
			read.Worker = r.Label(maxWorkerChars)
		case "token":
			read.Token = r.Label(maxToken)
		case "after":
			if !r.Null() {
				read.After = r.Label(MaxWaitName)
			}
		default:
			r.Unknown()
		}
	})
	if complete {
		r.required("worker", read.Worker)
		r.required("token", read.Token)
	}
	return read, r.Close().Err("request")
}

func (r reader) required(name, value string) {
	if value == "" {
		r.BadAt(name, "is required")
	}
}
