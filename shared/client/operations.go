package client

import (
	"context"
	"encoding/json"
	"iter"
	"strconv"
	"time"
)

// OperationRequest is a command for the jobs of a list, or for all that match a filter.
type OperationRequest struct {
	Command        string        `json:"command"` // cancel, retry, reschedule or delete
	RunAt          time.Time     `json:"runAt,omitzero"`
	Delay          time.Duration `json:"-"` // instead of RunAt: from now
	JobIDs         []string      `json:"jobIds,omitempty"`
	Filter         *Filter       `json:"-"`
	All            bool          `json:"-"` // instead of a Filter: all jobs
	IdempotencyKey string        `json:"idempotencyKey,omitempty"`
}

// MarshalJSON writes it as the API reads it.
func (r OperationRequest) MarshalJSON() ([]byte, error) {
	type plain OperationRequest
	var filter map[string]any
	switch {
	case r.All:
		filter = map[string]any{"all": true}
	case r.Filter != nil:
		filter = map[string]any{}
		for name, values := range r.Filter.values() {
			switch name {
			case "status":
				filter[name] = values
			case "noErrorCode":
				filter[name] = true
			default:
				filter[name] = values[0]
			}
		}
	}
	return json.Marshal(struct {
		plain
		Filter  map[string]any `json:"filter,omitempty"`
		DelayMs int64          `json:"delayMs,omitempty"`
	}{plain(r), filter, r.Delay.Milliseconds()})
}

// The states of an operation; it has ended in the last two.
const (
	OperationRunning   = "RUNNING"
	OperationAborting  = "ABORTING"
	OperationAborted   = "ABORTED"
	OperationCompleted = "COMPLETED"
)

// Operation is an operation as the API shows it. Lists leave out SkippedJobs.
type Operation struct {
	OperationID string            `json:"operationId"`
	Command     string            `json:"command"`
	RunAt       *time.Time        `json:"runAt"`
	Filter      map[string]any    `json:"filter"` // nil: it has a list of jobs
	Jobs        *int              `json:"jobs"`   // how many are on the list
	By          string            `json:"by"`
	Status      string            `json:"status"`
	CreatedAt   time.Time         `json:"createdAt"`
	UpdatedAt   time.Time         `json:"updatedAt"`
	FinishedAt  *time.Time        `json:"finishedAt"`
	Progress    OperationProgress `json:"progress"`
	Reasons     []RefusalReason   `json:"reasons"` // the most frequent first
	SkippedJobs []SkippedJob      `json:"skippedJobs"`
}

// OperationProgress is how far an operation is.
type OperationProgress struct {
	Matched int  `json:"matched"`
	Asked   int  `json:"asked"`
	Applied int  `json:"applied"`
	Refused int  `json:"refused"`
	Skipped int  `json:"skipped"`
	Walked  bool `json:"walked"` // it has reached all of its jobs
}

// RefusalReason is why an operation skipped jobs, or they refused its command.
type RefusalReason struct {
	Reason string `json:"reason"`
	Jobs   int64  `json:"jobs"`
}

// SkippedJob is a job that an operation skipped.
type SkippedJob struct {
	JobID  string `json:"jobId"`
	Reason string `json:"reason"`
}

// Operations are the commands for many jobs.
type Operations struct{ c *Client }

// Start starts an operation. A request without an IdempotencyKey gets a random one, so that a repeated request starts
// no second operation.
func (o Operations) Start(ctx context.Context, operation OperationRequest) (*Operation, error) {
	r := submission("/api/operations", operation.IdempotencyKey)
	r.jobs = false
	return answer[Operation](ctx, o.c, r, operation)
}

// Get reads an operation; with wait above zero the answer is held until it ends, at most for that time and at most for
// a minute.
func (o Operations) Get(ctx context.Context, id string, wait time.Duration) (*Operation, error) {
	return fetchHeld[Operation](ctx, o.c, place("operations", id), wait)
}

// Wait returns an operation once it has ended. It keeps waiting during a restart of the gateway.
func (o Operations) Wait(ctx context.Context, id string) (*Operation, error) {
	return waitFor(ctx, o.c, place("operations", id), func(o *Operation) bool { return o.FinishedAt != nil })
}

// List reads all operations, newest first, page by page. Those that have ended are kept for 30 days. It ends after an
// error.
func (o Operations) List(ctx context.Context) iter.Seq2[*Operation, error] {
	return list[Operation](ctx, o.c, "/api/operations", "operations", nil)
}

// Abort stops an operation before it reaches more jobs. Commands that were given stay in force.
func (o Operations) Abort(ctx context.Context, id string) (*Operation, error) {
	return again[Operation](ctx, o.c, place("operations", id, "abort"))
}

// Dead are the FAILED jobs. An operation runs many of them again.
type Dead struct{ c *Client }

// List reads all FAILED jobs that match a filter, newest first, page by page. It ends after an error.
func (d Dead) List(ctx context.Context, filter Filter) iter.Seq2[*Job, error] {
	return list[Job](ctx, d.c, "/api/jobs/dead", "jobs", filter.values())
}

// DeadGroups are FAILED jobs, counted by job type and error code.
type DeadGroups struct {
	At         time.Time   `json:"at"`
	HoursSince time.Time   `json:"hoursSince"` // where the Hours of the groups begin
	Jobs       int64       `json:"jobs"`
	Total      int64       `json:"total"`    // groups
	Complete   bool        `json:"complete"` // all groups are counted
	Groups     []DeadGroup `json:"groups"`   // the largest first
}

// DeadGroup are the FAILED jobs of a type with an error code.
type DeadGroup struct {
	JobType       string       `json:"jobType"`
	ErrorCode     string       `json:"errorCode"` // empty: they have none
	Jobs          int64        `json:"jobs"`
	New           bool         `json:"new"`
	FirstFailedAt time.Time    `json:"firstFailedAt"`
	LastFailedAt  time.Time    `json:"lastFailedAt"`
	Hours         []int64      `json:"hours"`
	DayBefore     int64        `json:"dayBefore"`
	Example       *DeadExample `json:"example"`
}

// DeadExample is a job of a group, and why it failed.
type DeadExample struct {
	JobID   string `json:"jobId"`
	Message string `json:"message"`
}

// DeadGroupFilter selects groups: they must match all fields that are set.
type DeadGroupFilter struct {
	Type, ErrorCode, OwnerID string
	NoErrorCode              bool
	Since                    time.Time // a job of the group failed then or later
	Limit                    int       // up to 200; 0: 50
}

// Groups counts FAILED jobs by job type and error code.
func (d Dead) Groups(ctx context.Context, filter DeadGroupFilter) (*DeadGroups, error) {
	values := given("type", filter.Type, "errorCode", filter.ErrorCode, "ownerId", filter.OwnerID,
		"since", instant(filter.Since))
	if filter.NoErrorCode {
		values.Set("noErrorCode", "true")
	}
	if filter.Limit > 0 {
		values.Set("limit", strconv.Itoa(filter.Limit))
	}
	return fetch[DeadGroups](ctx, d.c, "/api/jobs/dead/groups"+query(values))
}
