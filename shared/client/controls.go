package client

import (
	"context"
	"net/http"
	"time"
)

// What a control is of.
const (
	ControlQueue       = "queue"
	ControlType        = "type"
	ControlOwner       = "owner"
	ControlFairnessKey = "fairnessKey"
)

// ControlRequest is a whole control: what is left out is not limited.
type ControlRequest struct {
	Paused          bool     `json:"paused,omitempty"`
	MaxRunning      *int     `json:"maxRunning,omitempty"` // new(0): none
	StartsPerSecond *float64 `json:"startsPerSecond,omitempty"`
	Weight          *int     `json:"weight,omitempty"` // only of a fairness key
}

// Control is a control as the API shows it. Nil is no limit.
type Control struct {
	Kind            string     `json:"kind"`
	Name            string     `json:"name"`
	Paused          bool       `json:"paused"`
	MaxRunning      *int       `json:"maxRunning"`
	StartsPerSecond *float64   `json:"startsPerSecond"`
	Weight          *int       `json:"weight"`
	Version         int64      `json:"version"` // 0: it was never set
	Applied         bool       `json:"applied"` // whether the scheduler has applied this version
	UpdatedAt       *time.Time `json:"updatedAt"`
	UpdatedBy       string     `json:"updatedBy"`
}

// Controls are the pauses, limits and weights of queues, job types, owners and fairness keys.
type Controls struct{ c *Client }

// List reads all controls.
func (o Controls) List(ctx context.Context) ([]Control, error) {
	return all[Control](ctx, o.c, "/api/controls", "controls")
}

// Get reads a control. One that was never set has neither a pause nor limits, and version 0.
func (o Controls) Get(ctx context.Context, kind, name string) (*Control, error) {
	return fetch[Control](ctx, o.c, place("controls", kind, name))
}

// Set sets a whole control: without Paused it also ends a pause.
func (o Controls) Set(ctx context.Context, kind, name string, control ControlRequest) (*Control, error) {
	return answer[Control](ctx, o.c, request{method: http.MethodPut, path: place("controls", kind, name)}, control)
}

// Pause pauses a queue, a job type, an owner or a fairness key: no attempts start. Its limits stay.
func (o Controls) Pause(ctx context.Context, kind, name string) (*Control, error) {
	return again[Control](ctx, o.c, place("controls", kind, name, "pause"))
}

// Resume ends a pause. The limits stay.
func (o Controls) Resume(ctx context.Context, kind, name string) (*Control, error) {
	return again[Control](ctx, o.c, place("controls", kind, name, "resume"))
}

// Delete removes the pause, the limits and the weight.
func (o Controls) Delete(ctx context.Context, kind, name string) (*Control, error) {
	return answer[Control](ctx, o.c, request{method: http.MethodDelete, path: place("controls", kind, name)}, nil)
}
