package client

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// JobRequest is a request for a job. Only JobType and Payload are required. Zero fields are left out, so that the
// installation's defaults apply.
type JobRequest struct {
	JobType string `json:"jobType"`
	Payload any    `json:"payload"` // written by encoding/json

	Queue         string       `json:"queue,omitempty"`
	Priority      int          `json:"priority,omitempty"`      // 0 to 9; 9 goes first
	MaxRetryCount *int         `json:"maxRetryCount,omitempty"` // new(0): no retry; nil: the job type's default
	RetryPolicy   *RetryPolicy `json:"retryPolicy,omitempty"`

	RunAt     time.Time     `json:"runAt,omitzero"`     // not before this instant
	Delay     time.Duration `json:"-"`                  // instead of RunAt: how long from now the job becomes due
	ExpiresAt time.Time     `json:"expiresAt,omitzero"` // the job is CANCELLED if it has not started by then
	Timeout   time.Duration `json:"-"`                  // of one attempt

	IdempotencyKey      string       `json:"idempotencyKey,omitempty"` // the same key again returns the same job
	JobID               string       `json:"jobId,omitempty"`          // a UUID of version 7 of your own, as the key
	OrderingKey         string       `json:"orderingKey,omitempty"`    // jobs with the same key run one after another
	FairnessKey         string       `json:"fairnessKey,omitempty"`    // by which it shares its queue; empty: the owner
	KeepBuild           bool         `json:"keepBuild,omitempty"`      // further attempts stay on the build of the first
	After               []string     `json:"after,omitempty"`          // by id, in a flow by name
	ForEach             *ForEach     `json:"forEach,omitempty"`        // in a flow: makes a job for each element
	Dependencies        []Dependency `json:"-"`                        // further dependencies, with conditions
	OnDependencyFailure string       `json:"onDependencyFailure,omitempty"`

	BatchID string `json:"batchId,omitempty"` // the open batch that it joins

	Unique    *Unique    `json:"unique,omitempty"`
	Throttle  *Throttle  `json:"throttle,omitempty"`
	Singleton *Singleton `json:"singleton,omitempty"`
	Debounce  *Debounce  `json:"debounce,omitempty"`

	Tags        []string `json:"tags,omitempty"`
	CallbackURL string   `json:"callbackUrl,omitempty"` // the end of the job is POSTed there; see Webhook
	OwnerID     string   `json:"ownerId,omitempty"`     // counts only while authentication is off
}

// key returns the key that makes repeated requests for the job recognisable; empty: the request has none.
func (r JobRequest) key() string { return cmp.Or(r.IdempotencyKey, r.JobID) }

// MarshalJSON writes durations as whole milliseconds.
func (r JobRequest) MarshalJSON() ([]byte, error) {
	type plain JobRequest
	var after []any
	for _, name := range r.After {
		after = append(after, name)
	}
	for _, d := range r.Dependencies {
		after = append(after, d)
	}
	return json.Marshal(struct {
		plain
		After     []any `json:"after,omitempty"`
		DelayMs   int64 `json:"delayMs,omitempty"`
		TimeoutMs int64 `json:"timeoutMs,omitempty"`
	}{plain(r), after, r.Delay.Milliseconds(), r.Timeout.Milliseconds()})
}

// Dependency is a job that has to end first.
type Dependency struct {
	JobID string `json:"jobId,omitempty"`
	Name  string `json:"name,omitempty"` // instead of JobID: the name of another job of the flow
	On    string `json:"on,omitempty"`   // OnCompleted, OnEnded or OnFailed; empty: OnCompleted
}

// How a job has to end before one that depends on it runs.
const (
	OnCompleted = "completed"
	OnEnded     = "ended"
	OnFailed    = "failed" // or CANCELLED
)

// RetryPolicy determines when a failed attempt runs again. Make it with RetryExponential, RetryFixed or RetryList.
type RetryPolicy struct {
	Type     string  `json:"type"`
	BaseMs   *int64  `json:"baseMs,omitempty"`
	CapMs    *int64  `json:"capMs,omitempty"`
	DelayMs  *int64  `json:"delayMs,omitempty"`
	DelaysMs []int64 `json:"delaysMs,omitempty"`
	Jitter   float64 `json:"jitter,omitempty"` // the random share of each delay, 0 to 1
}

// RetryExponential waits min(base·2ⁿ, limit) after the n-th failure.
func RetryExponential(base, limit time.Duration) *RetryPolicy {
	return &RetryPolicy{Type: "exponential", BaseMs: new(base.Milliseconds()), CapMs: new(limit.Milliseconds())}
}

// RetryFixed waits the same time after each failure.
func RetryFixed(delay time.Duration) *RetryPolicy {
	return &RetryPolicy{Type: "fixed", DelayMs: new(delay.Milliseconds())}
}

// RetryList waits for one delay after another; the last one repeats.
func RetryList(delays ...time.Duration) *RetryPolicy {
	p := &RetryPolicy{Type: "list"}
	for _, d := range delays {
		p.DelaysMs = append(p.DelaysMs, d.Milliseconds())
	}
	return p
}

// Unique makes a request a job only if no other job has the key. A job counts if it was accepted within For and is
// still in the state While. With neither set, a job counts until it has ended.
type Unique struct {
	Key   string `json:"key"`
	For   string `json:"for,omitempty"`   // a time.Duration as text; empty: any time ago
	While string `json:"while,omitempty"` // WAITING: it has not started; ACTIVE: it has not ended
}

// Throttle makes the jobs with the key due at least PerMs milliseconds apart.
type Throttle struct {
	Key   string `json:"key"`
	PerMs int64  `json:"perMs"`
}

// Singleton makes the jobs with the key run one at a time.
type Singleton struct {
	Key  string `json:"key"`
	Else string `json:"else,omitempty"` // for a job while another has not ended: queue (the default) or drop
}

// Debounce makes all requests with the key change one held job, until no request has come for DelayMs milliseconds or
// the first of them is MaxDelayMs old.
type Debounce struct {
	Key        string `json:"key"`
	DelayMs    int64  `json:"delayMs"`
	MaxDelayMs int64  `json:"maxDelayMs,omitempty"` // 0: ten times DelayMs
}

// EnqueueSQL returns the statement, with its arguments, that enqueues the job in a transaction of your own database, in
// which `jobweaver outbox install` has made jobweaver.enqueue. The statement returns one row with the job's id. If the
// transaction commits, there is a job; if it rolls back, there is none. The id serves as the idempotency key, so the
// request must not have one.
func (r JobRequest) EnqueueSQL() (statement string, arguments []any, err error) {
	if r.key() != "" {
		return "", nil, errors.New("an enqueued job is given its id, and needs no IdempotencyKey or JobID")
	}
	payload, err := json.Marshal(r.Payload)
	if err != nil {
		return "", nil, fmt.Errorf("write payload: %w", err)
	}
	all, err := json.Marshal(r)
	if err != nil {
		return "", nil, fmt.Errorf("write request: %w", err)
	}
	var options map[string]json.RawMessage
	if err := json.Unmarshal(all, &options); err != nil {
		return "", nil, fmt.Errorf("read request: %w", err)
	}
	delete(options, "jobType")
	delete(options, "payload")
	rest, err := json.Marshal(options)
	if err != nil {
		return "", nil, fmt.Errorf("write options: %w", err)
	}
	return "select jobweaver.enqueue($1, $2::text::jsonb, $3::text::jsonb)",
		[]any{r.JobType, string(payload), string(rest)}, nil
}
