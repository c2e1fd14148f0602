package handlers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/cloudevents/sdk-go/v2/binding"
	"github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// TypeFunctionCall is the type of the event that FUNCTION sends if the payload names none.
const TypeFunctionCall = "io.jobweaver.function.call.v1"

// Function runs jobs of type FUNCTION: it sends an event to a service, whose answer is the output.
type Function struct {
	caller *Caller
}

// NewFunction returns the handler.
func NewFunction(caller *Caller) *Function { return &Function{caller} }

// Run implements Handler.
func (f *Function) Run(ctx context.Context, a *Attempt) (Result, error) {
	p, wrong := readCall(a.Payload)
	if wrong != nil {
		return Result{}, wrong
	}
	e, err := callEvent(ctx, a, p)
	if err != nil {
		return Result{}, invalidPayload(err)
	}
	back, noCallback := f.caller.callback(a, p.wait()) // a service that answers at once needs no callback
	request, wrong := f.caller.request(ctx, a, p, back)
	if wrong != nil {
		return Result{}, wrong
	}
	if err := cehttp.WriteRequest(binding.WithForceBinary(ctx), binding.ToMessage(&e), request); err != nil {
		return Result{}, invalidPayload(fmt.Errorf("write event: %w", err))
	}
	if err := sendCheckpoint(request, a); err != nil {
		return Result{}, err
	}
	answer, err := f.caller.call(request, a, e.DataEncoded, maxCallAnswer)
	if err != nil {
		if answer != nil {
			saveOfFailure(a, answer)
		}
		return Result{}, err
	}
	snooze, wrong := snoozeOf(answer)
	if wrong != nil {
		return Result{}, wrong
	}
	if snooze == 0 && answer.Status != http.StatusAccepted {
		output, wrong := outputOf(answer)
		if wrong != nil {
			return Result{}, wrong
		}
		return Result{Output: output}, nil
	}
	if err := saveCheckpoint(a, answer); err != nil {
		return Result{}, err
	}
	switch {
	case snooze > 0:
		return Result{Snooze: snooze}, nil
	case noCallback != nil:
		return Result{}, noCallback
	}
	return Result{WaitFor: back.left()}, nil
}

var (
	errOnlyFunction = errors.New("payload.type: only a FUNCTION has one")
	errReserved     = errors.New("payload.type: io.jobweaver. is for events of JobWeaver, except " + TypeFunctionCall)
	errType         = errors.New(`payload.type: must be 1 to 255 of ASCII's visible characters, without " and %`)

	// typeOfCall excludes characters that must be escaped in a header: few receivers unescape them.
	typeOfCall = regexp.MustCompile(`^[!#$&-~]{1,255}$`)
)

// callEvent returns the event of an attempt. If it is sent twice, the id is the same.
func callEvent(ctx context.Context, a *Attempt, p callPayload) (event.Event, error) {
	typ := TypeFunctionCall
	if p.Type != nil {
		typ = *p.Type
	}
	if !typeOfCall.MatchString(typ) {
		return event.Event{}, errType
	}
	if typ != TypeFunctionCall && strings.HasPrefix(strings.ToLower(typ), "io.jobweaver.") {
		return event.Event{}, errReserved
	}
	var data any // nil if the payload has none
	if p.Data != nil {
		data = p.Data
	}
	meta := jobevent.Meta{Function: "runjob", ID: a.Token, JobID: a.JobID, TraceID: a.TraceID}
	call, err := jobevent.New(typ, meta, data)
	if err != nil {
		return event.Event{}, err
	}
	telemetry.SetHere(ctx, &call, jobevent.SpanID(a.Token))
	e := call.Event()
	e.SetExtension("jobid", a.JobID.String())
	e.SetExtension("attempt", a.Number)
	return e, e.Validate()
}
