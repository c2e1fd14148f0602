package client

import (
	"context"
	"encoding/json"
	"time"
)

// The statuses of a wait.
const (
	WaitOpen     = "OPEN"
	WaitDone     = "DONE"
	WaitTimedOut = "TIMED_OUT"
)

// WorkWait is what the handler of an attempt waits for: an event, or the end of a job that the request makes.
type WorkWait struct {
	Name    string        `json:"name"`            // by which it is known in all attempts of the job
	Group   string        `json:"group,omitempty"` // the waits of a group wake their job together; empty: alone
	Timeout time.Duration `json:"-"`               // of an event; 0: none
	Event   *EventWait    `json:"event,omitempty"`
	Job     *JobRequest   `json:"job,omitempty"`
}

// MarshalJSON writes the timeout in milliseconds.
func (w WorkWait) MarshalJSON() ([]byte, error) {
	type plain WorkWait
	ms := w.Timeout.Milliseconds()
	if w.Timeout > 0 {
		ms = max(ms, 1)
	}
	return markup(struct {
		plain
		TimeoutMs int64 `json:"timeoutMs,omitempty"`
	}{plain(w), ms})
}

// EventWait is what a wait names of an event.
type EventWait struct {
	Type    string         `json:"type"`
	Source  string         `json:"source,omitempty"`  // empty: any
	Subject string         `json:"subject,omitempty"` // empty: any
	Match   map[string]any `json:"match,omitempty"`   // members that the data must have, by their paths
}

// WorkWaitAnswer is how waits stand, in the order of the request.
type WorkWaitAnswer struct {
	Delay time.Duration   // the Delay with which to settle the attempt as WorkSnoozed; 0: no wait is open
	Waits []WorkWaitState // of a test: nil
}

// WorkWaitState is how a wait stands.
type WorkWaitState struct {
	Name   string      `json:"name"`
	Status string      `json:"status"` // WaitOpen, WaitDone or WaitTimedOut
	Until  time.Time   `json:"until"`  // zero: there is no timeout
	Event  *CloudEvent `json:"event"`  // of a wait that is done
	Job    *CalledJob  `json:"job"`    // of a call
}

// Wait is what the handler of a job waits for, or has waited for.
type Wait struct {
	Name      string      `json:"name"`
	Status    string      `json:"status"`
	CreatedAt time.Time   `json:"createdAt"`
	Until     time.Time   `json:"until"`    // zero: there is no timeout
	DoneAt    time.Time   `json:"doneAt"`   // zero: it is open
	Event     *EventWait  `json:"event"`    // nil: it waits for a job
	Received  *CloudEvent `json:"received"` // nil: none
	Job       *Called     `json:"job"`      // nil: it waits for an event
}

// Called is a job that a handler has called, as its caller shows it.
type Called struct {
	JobID   string `json:"jobId"`
	JobType string `json:"jobType"`
	Status  string `json:"status"`
}

// CalledJob is a job that a handler has called.
type CalledJob struct {
	JobID     string          `json:"jobId"`
	Status    string          `json:"status"`
	Output    json.RawMessage `json:"output"`
	LastError *Failure        `json:"lastError"`
}

// UnmarshalJSON reads the delay in milliseconds.
func (a *WorkWaitAnswer) UnmarshalJSON(text []byte) error {
	var read struct {
		DelayMs int64           `json:"delayMs"`
		Waits   []WorkWaitState `json:"waits"`
	}
	err := json.Unmarshal(text, &read)
	a.Delay, a.Waits = time.Duration(read.DelayMs)*time.Millisecond, read.Waits
	return err
}

// WaitInAttempt asks how waits of an attempt stand, and keeps them. It may be repeated.
func (c *Client) WaitInAttempt(
	ctx context.Context, worker, token string, waits ...WorkWait,
) (answer WorkWaitAnswer, err error) {
	err = c.work(ctx, request{path: "/api/workers/wait", repeatable: true}, struct {
		Worker string     `json:"worker"`
		Token  string     `json:"token"`
		Waits  []WorkWait `json:"waits"`
	}{worker, token, waits}, &answer)
	return answer, err
}

// CloudEvent is an event that is sent to handlers.
type CloudEvent struct {
	ID      string          `json:"id"`
	Source  string          `json:"source"`
	Type    string          `json:"type"`
	Subject string          `json:"subject,omitempty"`
	Time    time.Time       `json:"time,omitzero"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// DecodeData reads the data of the event with encoding/json.
func (e *CloudEvent) DecodeData(into any) error { return json.Unmarshal(e.Data, into) }

// EventKept is the answer to an event for handlers.
type EventKept struct {
	EventID string `json:"eventId"`
	Jobs    int    `json:"jobs"` // whose handlers waited for it
}

// SendEvent sends an event to the handlers that wait for it, now or for as long as the installation keeps it. Events
// with the same source and id count once.
func (c *Client) SendEvent(ctx context.Context, e CloudEvent) (kept EventKept, err error) {
	body, err := markup(struct {
		SpecVersion string `json:"specversion"`
		CloudEvent
	}{"1.0", e})
	if err != nil {
		return kept, err
	}
	_, err = c.do(ctx, request{
		method: "POST", path: "/events", contentType: "application/cloudevents+json", body: body, repeatable: true,
	}, &kept)
	return kept, err
}
