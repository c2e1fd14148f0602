package client

import (
	"context"
	"net/http"
	"net/url"
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

// CreateQueue creates a queue that QueueOfRunjob or QueueOfPull serves. One that is there is left as it is, and a
// removal is taken back.
func (c *Client) CreateQueue(ctx context.Context, name, workers string) (*Queue, error) {
	var queue Queue
	r := request{method: http.MethodPut, path: queuePath(name)}
	_, err := c.json(ctx, r, map[string]string{"workers": workers}, &queue)
	return &queue, err
}

func queuePath(name string) string { return "/api/queues/" + url.PathEscape(name) }

// Queue reads a queue. Once it is removed, the error is ErrNotFound.
func (c *Client) Queue(ctx context.Context, name string) (*Queue, error) {
	var queue Queue
	_, err := c.do(ctx, request{method: http.MethodGet, path: queuePath(name)}, &queue)
	return &queue, err
}

// Queues reads all queues.
func (c *Client) Queues(ctx context.Context) ([]Queue, error) {
	var are struct {
		Queues []Queue `json:"queues"`
	}
	_, err := c.do(ctx, request{method: http.MethodGet, path: "/api/queues"}, &are)
	return are.Queues, err
}

// RemoveQueue begins the removal of a created queue. While jobs in it have not ended, that is an ErrConflict, unless
// drain is true: then the queue is removed when they have ended.
func (c *Client) RemoveQueue(ctx context.Context, name string, drain bool) error {
	path := queuePath(name)
	if drain {
		path += "?drain=true"
	}
	_, err := c.do(ctx, request{method: http.MethodDelete, path: path}, nil)
	return err
}
