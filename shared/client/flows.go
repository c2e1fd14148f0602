package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"time"
)

// FlowRequest is a request for a flow: jobs that name each other in After. Either all are accepted, or none.
type FlowRequest struct {
	Name           string                `json:"name,omitempty"`
	Jobs           map[string]JobRequest `json:"jobs"`                 // at most 10,000
	OnComplete     *JobRequest           `json:"onComplete,omitempty"` // submitted when each of its jobs has completed
	OnFailure      *JobRequest           `json:"onFailure,omitempty"`  // submitted when the flow has ended in another way
	ExpiresAt      time.Time             `json:"expiresAt,omitzero"`   // the instant by which it has to end
	OwnerID        string                `json:"ownerId,omitempty"`    // counts only while authentication is off
	IdempotencyKey string                `json:"idempotencyKey,omitempty"`
}

// Output stands for the output of a job of the flow in the payload of another. That job must be in After.
type Output struct {
	Of      string `json:"$output"`           // its name
	Path    string `json:"path,omitempty"`    // as $.items[0]; empty: the whole output
	Default any    `json:"default,omitempty"` // used if there is no such value; nil: then the job fails
}

// ForEach makes a job of a flow a fan-out: it becomes a job for each element of an array in the output of a job, which
// must be in After. In its payload, Item and ItemIndex stand for the element and its index.
type ForEach struct {
	Output string `json:"$output"`        // its name
	Path   string `json:"path,omitempty"` // as $.items; empty: the output is the array
}

// Item is replaced by an element, or the part of it at the path.
type Item struct {
	Path    string // as $.id; empty: the whole element
	Default any    // if there is no such value; nil: the fan-out fails then
}

// MarshalJSON writes it as the API reads it.
func (i Item) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Item    string `json:"$item"`
		Path    string `json:"path,omitempty"`
		Default any    `json:"default,omitempty"`
	}{"value", i.Path, i.Default})
}

// ItemIndex is replaced by the index of an element.
type ItemIndex struct{}

// MarshalJSON writes it as the API reads it.
func (ItemIndex) MarshalJSON() ([]byte, error) { return []byte(`{"$item":"index"}`), nil }

// Elements are the jobs of a fan-out.
type Elements struct {
	Total  int            `json:"total"`
	Counts map[string]int `json:"counts"` // by status
}

// Element is the place of a job in its fan-out.
type Element struct {
	FanOutID string `json:"fanOutId"`
	Index    int    `json:"index"`
}

// MadeFlow has the ids of a flow and of its jobs, by their names.
type MadeFlow struct {
	FlowID string            `json:"flowId"`
	Jobs   map[string]string `json:"jobs"`
}

// Flow is a flow as the API shows it.
type Flow struct {
	Batch

	FlowID      string             `json:"flowId"`
	Run         int                `json:"run"`         // from 1 on
	EarlierRuns []FlowRun          `json:"earlierRuns"` // the last of those before this one
	Jobs        map[string]FlowJob `json:"jobs"`
}

// FlowRun is how an earlier run of a flow stood when the next one began.
type FlowRun struct {
	Run           int            `json:"run"`
	Status        string         `json:"status"`
	Counts        map[string]int `json:"counts"`
	FinishedAt    *time.Time     `json:"finishedAt"` // nil: it had not ended
	FollowUpJobID string         `json:"followUpJobId"`
}

// FlowJob is a job in the graph of a flow.
type FlowJob struct {
	JobID   string       `json:"jobId"`
	JobType string       `json:"jobType"`
	Status  string       `json:"status"` // empty: the job is deleted
	After   []Dependency `json:"after"`

	ForEach    *ForEach  `json:"forEach"`    // nil: it is no fan-out
	Elements   *Elements `json:"elements"`   // nil: it is no fan-out, or the array is not known yet
	RunAgainOf string    `json:"runAgainOf"` // the job of an earlier run that it has replaced; empty: none
}

// Flows are the flows: closed batches whose jobs wait for each other.
type Flows struct{ c *Client }

// Create submits a flow. A request without an IdempotencyKey gets a random one, so that a repeated request makes no
// second flow.
func (f Flows) Create(ctx context.Context, flow FlowRequest) (*MadeFlow, error) {
	return answer[MadeFlow](ctx, f.c, submission("/api/flows", flow.IdempotencyKey), flow)
}

// Get reads a flow with its graph; with wait above zero the answer is held until the flow ends, at most for that time
// and at most for a minute.
func (f Flows) Get(ctx context.Context, id string, wait time.Duration) (*Flow, error) {
	return fetchHeld[Flow](ctx, f.c, place("flows", id), wait)
}

// Wait returns a flow once it has ended, in any state. It keeps waiting during a restart of the gateway.
func (f Flows) Wait(ctx context.Context, id string) (*Flow, error) {
	return waitFor(ctx, f.c, place("flows", id), func(f *Flow) bool { return f.FinishedAt != nil })
}

// List reads all flows that match a filter, newest first, page by page, without their graphs. Those that have not
// ended have no counts. It ends after an error.
func (f Flows) List(ctx context.Context, filter BatchFilter) iter.Seq2[*Flow, error] {
	return list[Flow](ctx, f.c, "/api/flows", "flows", filter.values())
}

// Cancel starts an operation that cancels all jobs of a flow. It returns the operation's id.
func (f Flows) Cancel(ctx context.Context, id string) (operation string, err error) {
	return f.c.operate(ctx, place("flows", id, "cancel"))
}

// FlowRetry chooses which jobs of a flow become new ones in another run. At most one of its fields is set.
type FlowRetry struct {
	From []string `json:"from,omitempty"` // the jobs with these names, and all that come after them
	All  bool     `json:"all,omitempty"`
}

// Retry has the failed and cancelled jobs of a flow run again, in the order of its graph, and returns how many they
// may be. With a FlowRetry it has new jobs run, and returns how many. Once a job has run that waits for the failure of
// another one, the API refuses a retry without it, with the code API.FLOW_COMPENSATED.
func (f Flows) Retry(ctx context.Context, id string, again ...FlowRetry) (jobs int, err error) {
	var answer struct{ Jobs int }
	asked := request{method: http.MethodPost, path: place("flows", id, "retry")}
	if len(again) == 0 {
		_, err = f.c.do(ctx, asked, &answer)
	} else {
		_, err = f.c.json(ctx, asked, again[0], &answer)
	}
	return answer.Jobs, err
}
