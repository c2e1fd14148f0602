package client

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// JobType is a job type with the JSON Schemas of its payload and its output.
type JobType struct {
	Name         string          `json:"name"`
	Builtin      bool            `json:"builtin"`
	Title        string          `json:"title"`
	Description  string          `json:"description"`
	Schema       json.RawMessage `json:"schema"`
	OutputSchema json.RawMessage `json:"outputSchema"`
	Workers      int             `json:"workers"` // that run it
	Queues       []string        `json:"queues"`
}

// JobTypes are the job types.
type JobTypes struct{ c *Client }

// List reads all job types.
func (j JobTypes) List(ctx context.Context) ([]JobType, error) {
	return all[JobType](ctx, j.c, "/api/job-types", "jobTypes")
}

// Get reads a job type.
func (j JobTypes) Get(ctx context.Context, name string) (*JobType, error) {
	return fetch[JobType](ctx, j.c, place("job-types", name))
}

// Delete forgets a job type that workers have run: further jobs of it are refused until a worker describes it again.
func (j JobTypes) Delete(ctx context.Context, name string) error {
	_, err := j.c.do(ctx, request{method: http.MethodDelete, path: place("job-types", name)}, nil)
	return err
}

// WorkerList has the workers, and the job types whose jobs wait without a worker.
type WorkerList struct {
	WithoutWorker []TypeWithoutWorker `json:"withoutWorker"`
	Workers       []WorkerInfo        `json:"workers"`
}

// TypeWithoutWorker is a job type that no live worker of a queue runs, with its waiting jobs.
type TypeWithoutWorker struct {
	Queue   string `json:"queue"`
	JobType string `json:"jobType"`
	Jobs    int64  `json:"jobs"`
}

// WorkerInfo is a worker as of its latest heartbeat. Nil and an empty list stand for what the key may not see.
type WorkerInfo struct {
	WorkerID   string             `json:"workerId"`
	Version    string             `json:"version"`
	StartedAt  *time.Time         `json:"startedAt"`
	Live       bool               `json:"live"`
	Stopping   bool               `json:"stopping"`
	Draining   bool               `json:"draining"`
	Drained    bool               `json:"drained"`
	SeenAt     time.Time          `json:"seenAt"`
	Queues     []string           `json:"queues"`
	JobTypes   []string           `json:"jobTypes"`
	Partitions map[string][]int32 `json:"partitions"`
	Slots      int                `json:"slots"`
	Free       *int               `json:"free"`
	Busy       *int               `json:"busy"`
	Rate       *float64           `json:"rate"` // attempts that ended in a second
	Attempts   []RunningAttempt   `json:"attempts"`
}

// RunningAttempt is an attempt that a worker runs.
type RunningAttempt struct {
	JobID     string     `json:"jobId"`
	Attempt   int        `json:"attempt"`
	JobType   string     `json:"jobType"`
	OwnerID   string     `json:"ownerId"`
	Tags      []string   `json:"tags"`
	RanBy     string     `json:"ranBy"` // the pull worker
	StartedAt *time.Time `json:"startedAt"`
	Progress  *Progress  `json:"progress"`
}

// WorkerDrain is whether a worker drains.
type WorkerDrain struct {
	WorkerID string `json:"workerId"`
	Draining bool   `json:"draining"`
	Applied  bool   `json:"applied"`
}

// Workers are the workers.
type Workers struct{ c *Client }

// List reads the workers with the attempts that they run.
func (w Workers) List(ctx context.Context) (*WorkerList, error) {
	return fetch[WorkerList](ctx, w.c, "/api/workers")
}

// Drain drains a worker: it gets no further attempts and finishes those that it runs.
func (w Workers) Drain(ctx context.Context, id string) (*WorkerDrain, error) {
	return answer[WorkerDrain](ctx, w.c, request{method: http.MethodPut, path: place("workers", id, "drain")}, nil)
}

// Undrain lets a draining worker take attempts again.
func (w Workers) Undrain(ctx context.Context, id string) (*WorkerDrain, error) {
	return answer[WorkerDrain](ctx, w.c, request{method: http.MethodDelete, path: place("workers", id, "drain")}, nil)
}

// Hook is an endpoint for the webhooks of another service.
type Hook struct {
	Name          string         `json:"name"`
	OwnerID       string         `json:"ownerId"`
	Signature     string         `json:"signature"`
	JobType       string         `json:"jobType"`   // empty: each request decides, or becomes an event
	EventType     string         `json:"eventType"` // empty: each request decides, or becomes a job
	Accepted      int64          `json:"accepted"`
	Replayed      int64          `json:"replayed"`
	Rejected      int64          `json:"rejected"`
	LastRejection *HookRejection `json:"lastRejection"`
}

// HookRejection is why a hook rejected a request.
type HookRejection struct {
	At      time.Time `json:"at"`
	Message string    `json:"message"`
}

// Hooks are the hooks. HOOKS_FILE defines them.
type Hooks struct{ c *Client }

// List reads all hooks.
func (h Hooks) List(ctx context.Context) ([]Hook, error) {
	return all[Hook](ctx, h.c, "/api/hooks", "hooks")
}
