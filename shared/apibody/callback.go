package apibody

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/strictjson"
)

// Limits of a callback.
const (
	MaxCallbackBytes  = 512 << 10 // the gateway checks it
	MaxCallbackOutput = 256 << 10 // the same limit as for a handler's output
)

// CallbackStatus is the status that a callback gives its attempt.
type CallbackStatus string

// The statuses of a callback. Only the first two end the attempt.
const (
	CallbackCompleted CallbackStatus = "COMPLETED"
	CallbackFailed    CallbackStatus = "FAILED"
	CallbackProgress  CallbackStatus = "PROGRESS"
)

// Callback is the report of an outside system about an attempt that it continues.
type Callback struct {
	JobID   uuid.UUID
	Attempt int
	Status  CallbackStatus

	Output    json.RawMessage   // of CallbackCompleted; nil: none. It shares memory with the decoded body
	ErrorCode string            // of CallbackFailed, and then never empty
	Message   string            // of CallbackFailed
	Retryable bool              // of CallbackFailed
	Progress  jobevent.Progress // of CallbackProgress
}

// callbackMembers has the members that are allowed with one status only.
var callbackMembers = map[string]CallbackStatus{
	"output": CallbackCompleted, "errorCode": CallbackFailed, "message": CallbackFailed, "retryable": CallbackFailed,
	"progress": CallbackProgress,
}

// DecodeCallback reads the body of a callback. It returns all problems as an *apierror.Error. Even then the result has
// the attempt, as far as it could be read, since the attempt selects the secret to check. A member that is null counts
// as absent.
func DecodeCallback(body []byte) (Callback, error) {
	r := reader{strictjson.NewReader(body, ""), strictjson.Scan(body, "")}
	callback := r.callback()
	if err := r.Close().Err("callback"); err != nil {
		return Callback{JobID: callback.JobID, Attempt: callback.Attempt}, err
	}
	return callback, nil
}

func (r reader) callback() Callback {
	callback := Callback{Retryable: true}
	given := map[string]bool{}
	complete := r.Object(func() {
		name := string(r.Name)
		if callbackMembers[name] != "" && r.Null() {
			return
		}
		given[name] = true
		switch name {
		case "jobId":
			callback.JobID = r.UUID()
		case "attempt":
			callback.Attempt = int(r.Integer(1, math.MaxInt32))
		case "status":
			callback.Status = CallbackStatus(r.OneOf([]string{
				string(CallbackCompleted), string(CallbackFailed), string(CallbackProgress),
			}))
		case "output":
			callback.Output = r.output()
		case "errorCode":
			callback.ErrorCode = r.Checked(jobspec.WrongErrorCode)
		case "message":
			callback.Message, _ = r.Text(jobspec.MaxMessage)
		case "retryable":
			callback.Retryable = r.Boolean()
		case "progress":
			callback.Progress = r.progress()
		default:
			r.Unknown()
		}
	})
	if complete {
		r.checkCallback(&callback, given)
	}
	return callback
}

func (r reader) checkCallback(callback *Callback, given map[string]bool) {
	for _, name := range []string{"jobId", "attempt", "status"} {
		if !given[name] {
			r.BadAt(name, "is required")
		}
	}
	for _, name := range []string{"output", "errorCode", "message", "retryable", "progress"} {
		if only := callbackMembers[name]; given[name] && callback.Status != "" && callback.Status != only {
			r.BadAt(name, "goes only with status %s", only)
		}
	}
	switch {
	case callback.Status == CallbackProgress && !given["progress"]:
		r.BadAt("progress", "is required with status PROGRESS")
	case callback.Status == CallbackFailed && !given["errorCode"]:
		callback.ErrorCode = string(apierror.CallbackFailed)
	}
}

// output reads any JSON value that is small enough.
func (r reader) output() json.RawMessage {
	v := r.Raw()
	if len(v) > MaxCallbackOutput {
		r.Bad("must have at most %d bytes, not %d", MaxCallbackOutput, len(v))
	}
	return json.RawMessage(v)
}

func (r reader) progress() (p jobevent.Progress) {
	hasPercent := false
	whole := r.Object(func() {
		switch string(r.Name) {
		case "percent":
			hasPercent = true
			p.Percent = int(r.Integer(0, 100))
		case "message":
			if !r.Null() {
				p.Message, _ = r.Text(MaxProgressMessage)
			}
		default:
			r.Unknown()
		}
	})
	if whole && !hasPercent {
		r.BadIn("percent", "is required")
	}
	return p
}

// MaxProgressMessage is the most bytes of a progress message. It is short because every list of jobs contains the
// message.
const MaxProgressMessage = 1_000

// CanonicalCallback writes a decoded callback so that callbacks with the same meaning have the same bytes.
func CanonicalCallback(callback Callback) ([]byte, error) {
	output := []byte(callback.Output)
	if output != nil {
		var err error
		// Integers stay as they are written: as doubles, neighbouring integers above 2⁵³ would become equal.
		output, err = jsontext.AppendFormat(nil, output, jsontext.ReorderRawObjects(true),
			jsontext.CanonicalizeRawFloats(true))
		if err != nil {
			return nil, fmt.Errorf("write canonical output: %w", err)
		}
	}
	callback.Output = slices.Clip(output)
	b, err := json.Marshal(callback)
	if err != nil {
		return nil, fmt.Errorf("write canonical callback: %w", err)
	}
	return b, nil
}
