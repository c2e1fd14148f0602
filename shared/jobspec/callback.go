package jobspec

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// Limits of a callback.
const (
	MaxCallbackBytes  = 512 << 10 // checked by who reads the body
	MaxCallbackOutput = 256 << 10 // as that of a handler
)

// CallbackStatus is the status that a callback gives its attempt.
type CallbackStatus string

// The statuses of a callback. Only the first two end the attempt.
const (
	CallbackCompleted CallbackStatus = "COMPLETED"
	CallbackFailed    CallbackStatus = "FAILED"
	CallbackProgress  CallbackStatus = "PROGRESS"
)

// Callback is the report of an outside system about an attempt that was handed to it.
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

// callbackMembers are those that go with one status only.
var callbackMembers = map[string]CallbackStatus{
	"output": CallbackCompleted, "errorCode": CallbackFailed, "message": CallbackFailed, "retryable": CallbackFailed,
	"progress": CallbackProgress,
}

// DecodeCallback reads the body of a callback. It says all that is wrong, as an *apierror.Error; even then the
// attempt is given as far as it could be read, for it decides whose secret is asked for. A member that is null is
// taken as absent.
func DecodeCallback(body []byte) (Callback, error) {
	unsound := scanProblems(body, "")
	r := newReader(body, "")
	said := r.callback()
	p := r.close()
	if unsound != nil {
		p = unsound
	}
	if err := p.errIn("callback"); err != nil {
		return Callback{JobID: said.JobID, Attempt: said.Attempt}, err
	}
	return said, nil
}

func (r *reader) callback() Callback {
	said := Callback{Retryable: true}
	given := map[string]bool{}
	complete := r.object(func() {
		name := string(r.name)
		if callbackMembers[name] != "" && r.null() {
			return
		}
		given[name] = true
		switch name {
		case "jobId":
			said.JobID = r.uuid()
		case "attempt":
			said.Attempt = int(r.integer(1, math.MaxInt32))
		case "status":
			said.Status = CallbackStatus(r.oneOf([]string{
				string(CallbackCompleted), string(CallbackFailed), string(CallbackProgress),
			}))
		case "output":
			said.Output = r.output()
		case "errorCode":
			said.ErrorCode = r.checked(checkErrorCode)
		case "message":
			said.Message, _ = r.text(MaxMessage)
		case "retryable":
			said.Retryable = r.boolean()
		case "progress":
			said.Progress = r.progress()
		default:
			r.unknown()
		}
	})
	if complete {
		r.checkCallback(&said, given)
	}
	return said
}

func (r *reader) checkCallback(said *Callback, given map[string]bool) {
	for _, name := range []string{"jobId", "attempt", "status"} {
		if !given[name] {
			r.badAt(name, "is required")
		}
	}
	for _, name := range []string{"output", "errorCode", "message", "retryable", "progress"} {
		if only := callbackMembers[name]; given[name] && said.Status != "" && said.Status != only {
			r.badAt(name, "goes only with status %s", only)
		}
	}
	switch {
	case said.Status == CallbackProgress && !given["progress"]:
		r.badAt("progress", "is required with status PROGRESS")
	case said.Status == CallbackFailed && !given["errorCode"]:
		said.ErrorCode = string(apierror.CallbackFailed)
	}
}

func (r *reader) uuid() uuid.UUID {
	s, ok := r.text(MaxKey)
	if !ok {
		return uuid.Nil
	}
	id, err := uuid.Parse(s)
	if err != nil || len(s) != len(uuid.Nil.String()) {
		r.bad("must be a UUID")
		return uuid.Nil
	}
	return id
}

// output reads any JSON value that is small enough.
func (r *reader) output() json.RawMessage {
	v := r.raw()
	if len(v) > MaxCallbackOutput {
		r.bad("must have at most %d bytes, not %d", MaxCallbackOutput, len(v))
	}
	return json.RawMessage(v)
}

func (r *reader) progress() (p jobevent.Progress) {
	hasPercent := false
	whole := r.object(func() {
		switch string(r.name) {
		case "percent":
			hasPercent = true
			p.Percent = int(r.integer(0, 100))
		case "message":
			if !r.null() {
				p.Message, _ = r.text(MaxProgressMessage)
			}
		default:
			r.unknown()
		}
	})
	if whole && !hasPercent {
		r.badIn("percent", "is required")
	}
	return p
}

// MaxProgressMessage is the longest message of a progress: it stands in every list of jobs.
const MaxProgressMessage = 1_000

// CanonicalCallback writes a decoded callback so that the same meaning is the same bytes.
func CanonicalCallback(said Callback) ([]byte, error) {
	output := []byte(said.Output)
	if output != nil {
		var err error
		// Integers stay as they are written: as doubles, neighbours above 2⁵³ would be the same.
		output, err = jsontext.AppendFormat(nil, output, jsontext.ReorderRawObjects(true),
			jsontext.CanonicalizeRawFloats(true))
		if err != nil {
			return nil, fmt.Errorf("write canonical output: %w", err)
		}
	}
	said.Output = slices.Clip(output)
	b, err := json.Marshal(said)
	if err != nil {
		return nil, fmt.Errorf("write canonical callback: %w", err)
	}
	return b, nil
}
