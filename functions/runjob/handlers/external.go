package handlers

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
)

// External runs jobs of type EXTERNAL: it sends them to an outside system, which calls back when it has finished.
type External struct {
	caller *Caller
}

// NewExternal returns the handler.
func NewExternal(caller *Caller) *External { return &External{caller} }

const typeExternalCall = "io.jobweaver.external.call.v1"

// order is the body of the request.
type order struct {
	Type     string          `json:"type"` // in the body, because headers are not signed
	OwnerID  string          `json:"ownerId,omitempty"`
	JobID    uuid.UUID       `json:"jobId"`
	Attempt  int             `json:"attempt"`
	JobType  string          `json:"jobType"`
	Data     json.RawMessage `json:"data"`
	Callback *callback       `json:"callback"`
}

// Run implements Handler. The body of a 2xx answer is ignored.
func (e *External) Run(ctx context.Context, a *Attempt) (Result, error) {
	p, wrong := readCall(a.Payload)
	if wrong != nil {
		return Result{}, wrong
	}
	if p.Type != nil {
		return Result{}, invalidPayload(errOnlyFunction)
	}
	back, wrong := e.caller.callback(a, p.wait())
	if wrong != nil {
		return Result{}, wrong
	}
	request, wrong := e.caller.request(ctx, a, p, back)
	if wrong != nil {
		return Result{}, wrong
	}
	body, err := jobevent.Encode(order{typeExternalCall, a.OwnerID, a.JobID, a.Number, jobspec.External, p.Data, back})
	if err != nil {
		return Result{}, invalidPayload(err)
	}
	request.Header.Set("Content-Type", "application/json")
	if _, err := e.caller.call(request, a, body, maxAnswer); err != nil {
		return Result{}, err
	}
	return Result{WaitFor: back.left()}, nil
}
