package client

import (
	"context"
	"iter"
	"net/http"
	"time"
)

// Queue is a queue as the API shows it.
type Queue struct {
	Queue       string     `json:"queue"` // its name
	Origin      string     `json:"origin"`
	State       string     `json:"state"`
	Workers     string     `json:"workers"` // the function that serves it; empty: a setting of the workers decides
	LiveWorkers int        `json:"liveWorkers"`
	Waiting     int64      `json:"waiting"`
	Running     int64      `json:"running"`
	Paused      bool       `json:"paused"`
	CreatedAt   *time.Time `json:"createdAt"` // nil, as the rest: the setting QUEUES names it
	CreatedBy   string     `json:"createdBy"`
	RemovingAt  *time.Time `json:"removingAt"`
}

// The values of Workers, Origin and State of a Queue.
const (
	QueueOfRunjob = "runjob"
	QueueOfPull   = "pull"

	QueueSetting = "setting" // it is in QUEUES
	QueueCreated = "created"

	QueueActive   = "ACTIVE"
	QueueRemoving = "REMOVING" // it takes no new jobs
)

// Queues are the queues.
type Queues struct{ c *Client }

// Create creates a queue that QueueOfRunjob or QueueOfPull serves. One that is there is left as it is, and a removal
// is taken back.
func (q Queues) Create(ctx context.Context, name, workers string) (*Queue, error) {
	r := request{method: http.MethodPut, path: place("queues", name)}
	return answer[Queue](ctx, q.c, r, map[string]string{"workers": workers})
}

// Get reads a queue. Once it is removed, the error is ErrNotFound.
func (q Queues) Get(ctx context.Context, name string) (*Queue, error) {
	return fetch[Queue](ctx, q.c, place("queues", name))
}

// List reads all queues.
func (q Queues) List(ctx context.Context) ([]Queue, error) {
	return all[Queue](ctx, q.c, "/api/queues", "queues")
}

// Remove begins the removal of a created queue. While jobs in it have not ended, that is an ErrConflict, unless drain
// is true: then the queue is removed when they have ended.
func (q Queues) Remove(ctx context.Context, name string, drain bool) error {
	path := place("queues", name)
	if drain {
		path += "?drain=true"
	}
	_, err := q.c.do(ctx, request{method: http.MethodDelete, path: path}, nil)
	return err
}

// Share is what waits and runs of a fairness key in a queue.
type Share struct {
	FairnessKey     string   `json:"fairnessKey"`
	Weight          int      `json:"weight"`
	Waiting         int64    `json:"waiting"`
	Running         int64    `json:"running"`
	DueShare        *float64 `json:"dueShare"`     // of the starts, while it has waiting jobs
	RunningShare    *float64 `json:"runningShare"` // of what runs
	Paused          bool     `json:"paused"`
	MaxRunning      *int     `json:"maxRunning"`
	StartsPerSecond *float64 `json:"startsPerSecond"`
}

// Shares reads what waits and runs for each fairness key of a queue that contains part, the one with the most waiting
// jobs first, page by page. It ends after an error.
func (q Queues) Shares(ctx context.Context, name, part string) iter.Seq2[*Share, error] {
	return list[Share](ctx, q.c, place("queues", name, "shares"), "shares", given("q", part))
}
