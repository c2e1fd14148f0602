package jobevent

import (
	"encoding/json"
	"hash/fnv"
	"io"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// Created is the job as the gateway accepted it.
type Created struct {
	JobID       uuid.UUID       `json:"jobId"`
	TraceID     uuid.UUID       `json:"-"` // that of its item
	OwnerID     string          `json:"ownerId,omitempty"`
	FairnessKey string          `json:"fairnessKey,omitempty"` // by which it shares its queue; empty: the owner
	JobType     string          `json:"jobType"`
	Queue       string          `json:"queue"`
	Payload     json.RawMessage `json:"payload"`
	Spec        `json:"spec"`
	RunAt       *time.Time  `json:"runAt,omitempty"`
	CreatedAt   time.Time   `json:"createdAt"`
	ExpiresAt   *time.Time  `json:"expiresAt,omitempty"`   // cancelled if it has not started by then
	OrderingKey string      `json:"orderingKey,omitempty"` // an owner's jobs with it run in turn
	OrderNumber int64       `json:"orderNumber,omitempty"` // rises in the order of acceptance
	OrderAfter  *uuid.UUID  `json:"orderAfter,omitempty"`  // must be known first; absent: earlier jobs ended
	After       []uuid.UUID `json:"after,omitempty"`       // the jobs that have to end first
	RunAnyway   bool        `json:"runAnyway,omitempty"`   // run even if one of After did not complete

	// Conditions has how each job in After has to end. Absent: all have to complete, or only to end if the job runs
	// anyway.
	Conditions []jobstate.Condition `json:"conditions,omitempty"`
	Inputs     []Input              `json:"inputs,omitempty"`  // the jobs whose outputs the payload refers to
	FlowID     uuid.UUID            `json:"flowId,omitzero"`   // whose jobs are kept together; absent: it is in no flow
	Event      json.RawMessage      `json:"event,omitempty"`   // the attributes of the event that submitted it
	Awaited    bool                 `json:"awaited,omitempty"` // a client waits for its end
}

// FanOutQueue is the queue of jobs that no worker runs: the scheduler lets each wait, and the API reports how the jobs
// of its elements have ended.
const FanOutQueue = "-fan-out"

// IsFanOut reports whether no worker runs the job.
func (c *Created) IsFanOut() bool { return c.Queue == FanOutQueue }

// Condition is how the job After[i] has to end.
func (c *Created) Condition(i int) jobstate.Condition {
	switch {
	case len(c.Conditions) > 0:
		return c.Conditions[i]
	case c.RunAnyway:
		return jobstate.WhenEnded
	}
	return jobstate.WhenCompleted
}

// Input is a job whose output a payload refers to.
type Input struct {
	Name  string    `json:"name"` // in the payload
	JobID uuid.UUID `json:"jobId"`
}

// Parent is an Input with the output of its job.
type Parent struct {
	Input

	Attempt     int             `json:"attempt"`          // of the output; 0: the job has not completed or is deleted
	Output      json.RawMessage `json:"output,omitempty"` // may be sealed; absent: none, or all together are too large
	OutputBytes int64           `json:"outputBytes"`      // of the stored outputs of all parents together
}

// MaxParentBytes is the most bytes of all outputs that a run order carries. The scheduler's parents_of applies it.
const MaxParentBytes = 512 << 10

// Run is the order to run one attempt.
type Run struct {
	JobID     uuid.UUID       `json:"jobId"`
	Attempt   int             `json:"attempt"`
	JobType   string          `json:"jobType"`
	Payload   json.RawMessage `json:"payload"`
	Spec      `json:"spec"`
	Rank      time.Time       `json:"rank"`                // of one fairness key, the lowest rank gets a slot first
	Cancel    bool            `json:"cancel,omitempty"`    // settle the attempt as cancelled, do not start it
	Prompt    bool            `json:"prompt,omitempty"`    // settle its outcome at once: others may wait for it
	ExpiresAt *time.Time      `json:"expiresAt,omitempty"` // settle it as cancelled if it has not started by then
	OwnerID   string          `json:"ownerId,omitempty"`   // empty: none
	Parents   json.RawMessage `json:"parents,omitempty"`   // []Parent, to which the payload refers

	FairnessKey string          `json:"fairnessKey,omitempty"` // by which it shares a worker's slots; empty: the owner
	Event       json.RawMessage `json:"event,omitempty"`       // as in Created
}

// Completed is the outcome of a completed attempt.
type Completed struct {
	JobID      uuid.UUID       `json:"jobId"`
	Attempt    int             `json:"attempt"`
	WorkerID   string          `json:"workerId"`           // empty: an outside system reported it, by a callback
	RanBy      string          `json:"ranBy,omitempty"`    // the pull worker to which WorkerID gave it; empty: none
	StartedAt  time.Time       `json:"startedAt,omitzero"` // zero: the publisher does not know
	FinishedAt time.Time       `json:"finishedAt"`
	Output     json.RawMessage `json:"output,omitempty"`
}

// Kind is the way in which an attempt did not complete: failed, lost, interrupted, cancelled, snoozed.
type Kind = jobstate.Kind

// The kinds of a Failed event. Only failed counts a retry.
const (
	KindFailed      = jobstate.KindFailed
	KindLost        = jobstate.KindLost        // its worker died
	KindInterrupted = jobstate.KindInterrupted // given back by a worker that stops or is too busy
	KindCancelled   = jobstate.KindCancelled
	KindSnoozed     = jobstate.KindSnoozed // its handler asked for a later time
)

// Failed is any other end of an attempt.
type Failed struct {
	JobID        uuid.UUID  `json:"jobId"`
	Attempt      int        `json:"attempt"`
	WorkerID     string     `json:"workerId"`
	RanBy        string     `json:"ranBy,omitempty"`
	StartedAt    *time.Time `json:"startedAt,omitempty"` // absent: never started, or the publisher does not know
	FinishedAt   time.Time  `json:"finishedAt"`
	ErrorCode    string     `json:"errorCode,omitempty"`
	Message      string     `json:"message,omitempty"`
	Retryable    bool       `json:"retryable"`
	RetryAfterMs int64      `json:"retryAfterMs,omitempty"` // the handler's own delay; 0: the job's policy
	Kind         Kind       `json:"kind"`
}

// Waiting reports that an attempt's handler has handed it to an outside system.
type Waiting struct {
	JobID             uuid.UUID `json:"jobId"`
	Attempt           int       `json:"attempt"`
	WorkerID          string    `json:"workerId"`
	RanBy             string    `json:"ranBy,omitempty"`
	StartedAt         time.Time `json:"startedAt"`
	CallbackTimeoutMs int64     `json:"callbackTimeoutMs"`
}

// ended is the data of an item about any outcome: it has the fields of Completed, Failed and Waiting.
type ended struct {
	JobID             uuid.UUID       `json:"jobId"`
	Attempt           int             `json:"attempt"`
	WorkerID          string          `json:"workerId"`
	RanBy             string          `json:"ranBy"`
	StartedAt         *time.Time      `json:"startedAt"`
	FinishedAt        time.Time       `json:"finishedAt"`
	Output            json.RawMessage `json:"output"`
	ErrorCode         string          `json:"errorCode"`
	Message           string          `json:"message"`
	Retryable         bool            `json:"retryable"`
	RetryAfterMs      int64           `json:"retryAfterMs"`
	CallbackTimeoutMs int64           `json:"callbackTimeoutMs"`
}

// as returns a pointer to a Completed, a Failed or a Waiting.
func (e *ended) as(kind Kind) any {
	var startedAt time.Time
	if e.StartedAt != nil {
		startedAt = *e.StartedAt
	}
	switch kind { //nolint:exhaustive // all others are of a Failed
	case jobstate.KindCompleted:
		return &Completed{e.JobID, e.Attempt, e.WorkerID, e.RanBy, startedAt, e.FinishedAt, e.Output}
	case jobstate.KindWaiting:
		return &Waiting{e.JobID, e.Attempt, e.WorkerID, e.RanBy, startedAt, e.CallbackTimeoutMs}
	}
	return &Failed{
		e.JobID, e.Attempt, e.WorkerID, e.RanBy, e.StartedAt, e.FinishedAt, e.ErrorCode, e.Message, e.Retryable,
		e.RetryAfterMs, kind,
	}
}

// DeadLettered reports that a job has failed for good.
type DeadLettered struct {
	JobID           uuid.UUID `json:"jobId"`
	Reason          string    `json:"reason"`
	FinalRetryCount int       `json:"finalRetryCount"`
	FailedAt        time.Time `json:"failedAt"`
}

// Rejected is a record that a function could not use, whole as far as it fits. Partition and Offset are -1 if the
// function got an event over HTTP. Then the record is the one that the event would have been on Topic.
type Rejected struct {
	Topic     string            `json:"topic"`
	Partition int32             `json:"partition"`
	Offset    int64             `json:"offset"`
	Reason    string            `json:"reason"`
	Headers   map[string]string `json:"headers"` // for readers: without repeated names and invalid UTF-8
	Value     []byte            `json:"value"`   // base64 in JSON
	Truncated bool              `json:"truncated,omitempty"`

	// From these fields a reader can restore the record exactly.
	Key           []byte         `json:"key,omitzero"`           // base64; absent: the record has none
	RecordHeaders []RecordHeader `json:"recordHeaders,omitzero"` // in their order; absent: the record cannot be restored
	RecordedAt    *time.Time     `json:"recordedAt,omitempty"`   // the record's own timestamp
}

// RecordHeader is a header of a record, byte by byte.
type RecordHeader struct {
	Key   []byte `json:"key"`
	Value []byte `json:"value"`
}

// Whole reports whether the record can be restored exactly.
func (r *Rejected) Whole() bool { return r.RecordHeaders != nil && !r.Truncated }

// Transition is one entry of a job's history.
type Transition struct {
	At         time.Time  `json:"at"`
	From       string     `json:"from,omitempty"` // absent: the job's first entry
	To         string     `json:"to"`
	Attempt    int        `json:"attempt"`
	By         string     `json:"by"` // the function, or for a command its actor
	Reason     string     `json:"reason,omitempty"`
	Outcome    string     `json:"outcome,omitempty"`  // completed, waiting or a Kind, if this entry ended the attempt
	WorkerID   string     `json:"workerId,omitempty"` // of a pull worker its own name
	StartedAt  *time.Time `json:"startedAt,omitempty"`
	FinishedAt *time.Time `json:"finishedAt,omitempty"`
	ErrorCode  string     `json:"errorCode,omitempty"`
	Message    string     `json:"message,omitempty"`
}

// Error is the last error of a job.
type Error struct {
	ErrorCode string `json:"errorCode"`
	Message   string `json:"message"`
}

// CommandResult is the scheduler's answer to a command.
type CommandResult struct {
	Number  int    `json:"number"`
	Command string `json:"command"`
	Applied bool   `json:"applied"`
	Reason  string `json:"reason,omitempty"` // why it was not applied, or its effect
}

// StatusUnknown in a Status is not a state of a job: it means that the scheduler does not know the job of a report. The
// version is that of the report.
const StatusUnknown = "UNKNOWN"

// Status is a whole snapshot of a job as the scheduler knows it; the highest version counts.
type Status struct {
	JobID              uuid.UUID       `json:"jobId"`
	Version            int64           `json:"version"`
	Status             string          `json:"status"`
	Attempt            int             `json:"attempt"`
	RetryCount         int             `json:"retryCount"`
	NextRunAt          *time.Time      `json:"nextRunAt,omitempty"`
	CallbackDeadlineAt *time.Time      `json:"callbackDeadlineAt,omitempty"`
	StartedAt          *time.Time      `json:"startedAt,omitempty"`
	FinishedAt         *time.Time      `json:"finishedAt,omitempty"`
	UpdatedAt          time.Time       `json:"updatedAt"`
	BlockedBy          []Block         `json:"blockedBy,omitempty"`
	LastError          *Error          `json:"lastError,omitempty"`
	Output             json.RawMessage `json:"output,omitempty"`
	History            []Transition    `json:"history"` // the last 100 transitions, oldest first
	LastCommand        *CommandResult  `json:"lastCommand,omitempty"`
}

// RawStatus is a Status whose history is the stored JSON, both when it is published and when it is received: the most
// frequent event need not be decoded and encoded again.
type RawStatus struct {
	Status

	// These replace the fields of Status. The answer to a command is at the end of the JSON: there the API's trigger
	// apply_change looks for it, because an output may contain any text.
	History     json.RawMessage `json:"history"`
	LastCommand *CommandResult  `json:"lastCommand,omitempty"`
}

// WithoutHistory returns the status without its history.
func (s *RawStatus) WithoutHistory() Status {
	status := s.Status
	status.LastCommand = s.LastCommand
	return status
}

// Block names a reason why a job waits.
type Block struct {
	Kind string `json:"kind"`
	ID   string `json:"id"`
}

// The commands.
const (
	CommandCancel     = "cancel"
	CommandRetry      = "retry"
	CommandReschedule = "reschedule" // to RunAt
	CommandDelete     = "delete"
	CommandChange     = "change" // to the values of Change
	CommandReport     = "report" // publish again everything that the API has not received
)

// ByWait is who commands what follows from the waits of a handler.
const ByWait = "wait"

// Command is a stored, numbered request about one job; a report instead carries many jobs and no number.
type Command struct {
	JobID   uuid.UUID   `json:"jobId,omitzero"`
	Number  int         `json:"number,omitempty"`
	Command string      `json:"command"`
	By      string      `json:"by,omitempty"`
	RunAt   *time.Time  `json:"runAt,omitempty"`   // reschedule only
	Version int64       `json:"version,omitempty"` // delete only: the job's version, as far as the API knows
	Change  *Change     `json:"change,omitempty"`  // change only
	Reports []ReportJob `json:"reports,omitempty"` // at most MaxReportJobs
}

// Change has new values for a job that has not started. Absent values do not change.
type Change struct {
	Queue        string          `json:"queue,omitempty"`
	Payload      json.RawMessage `json:"payload,omitempty"`
	Spec         json.RawMessage `json:"spec,omitempty"` // the members of the job's Spec that change
	RunAt        *time.Time      `json:"runAt,omitempty"`
	ExpiresAt    *time.Time      `json:"expiresAt,omitempty"`
	NeverExpires bool            `json:"neverExpires,omitempty"`
}

// ReportJob asks whether a job has a later version than the one that the API knows.
type ReportJob struct {
	JobID   uuid.UUID `json:"jobId"`
	Version int64     `json:"version"`
}

// MaxReportJobs bounds one report.
const MaxReportJobs = 1000

// ControlKind is the kind of a Control's subject.
type ControlKind string

// The kinds of a Control.
const (
	ControlQueue ControlKind = "queue"
	ControlType  ControlKind = "type"
	ControlOwner ControlKind = "owner"
	ControlKey   ControlKind = "fairnessKey"

	ControlWorker ControlKind = "worker" // a paused worker drains; its Control is deleted with the worker

	ControlCreated ControlKind = "createdQueue" // a queue that was created through the API, with the Workers that serve it
)

// AnyName is the name of the Control that applies to each name of its kind without a Control of its own.
const AnyName = "*"

// Control has all that applies to the jobs of a queue, a job type, an owner or a fairness key; the highest version
// counts. Without limits, pause and weight, nothing applies any more.
type Control struct {
	Kind            ControlKind `json:"kind"`
	Name            string      `json:"name"`
	Version         int64       `json:"version"`
	Paused          bool        `json:"paused,omitempty"`
	MaxRunning      *int        `json:"maxRunning,omitempty"`      // attempts out at once; absent: any number
	StartsPerSecond *float64    `json:"startsPerSecond,omitempty"` // absent: any number
	Weight          int         `json:"weight,omitempty"`          // of a fairness key, 1 to 100; zero: 1
	Workers         string      `json:"workers,omitempty"`         // of a created queue; empty: none serve it
}

// The functions that can serve a created queue.
const (
	WorkersRunjob = "runjob"
	WorkersPull   = "pull"
)

// CreatedQueue is a queue that was created through the API, with the function that serves it.
type CreatedQueue struct {
	Name    string `json:"name"`
	Workers string `json:"workers"`
}

// QueuesDigest names a list of created queues in their order, so that heartbeats need not carry the list.
func QueuesDigest(queues []CreatedQueue) string {
	sum := fnv.New64a()
	for _, queue := range queues {
		_, _ = io.WriteString(sum, queue.Name+":"+queue.Workers+",") // never fails
	}
	return strconv.FormatUint(sum.Sum64(), 36)
}

// ControlApplied reports that the scheduler uses this version of a Control.
type ControlApplied struct {
	Kind    ControlKind `json:"kind"`
	Name    string      `json:"name"`
	Version int64       `json:"version"`
}

// AttemptCancel asks the worker of an attempt to end it. If it names a worker, it is not about an attempt: it orders
// that worker to drain, or to take attempts again, and names the created queues if Follows is set. Workers of earlier
// releases ignore such an event.
type AttemptCancel struct {
	JobID        uuid.UUID      `json:"jobId,omitzero"`
	Attempt      int            `json:"attempt,omitempty"`
	WorkerID     string         `json:"workerId,omitempty"`
	Drain        bool           `json:"drain,omitempty"`
	DrainVersion int64          `json:"drainVersion,omitempty"` // of the worker's Control
	Follows      string         `json:"follows,omitempty"`      // the digest of Queues
	Queues       []CreatedQueue `json:"queues,omitempty"`       // all of them, by name
}

// LogLine is one line of an attempt's log.
type LogLine struct {
	At    time.Time `json:"at"`
	Level string    `json:"level"`
	Text  string    `json:"text"`
}

// AttemptLog carries lines of an attempt's log, in order, from line number FirstLine (0-based) on.
type AttemptLog struct {
	JobID     uuid.UUID `json:"jobId"`
	Attempt   int       `json:"attempt"`
	FirstLine int       `json:"firstLine"`
	Lines     []LogLine `json:"lines"`
}

// Heartbeat is a worker's report of its slots and attempts.
type Heartbeat struct {
	WorkerID     string             `json:"workerId"`
	Version      string             `json:"version"`
	StartedAt    time.Time          `json:"startedAt,omitzero"`
	Build        string             `json:"build,omitempty"` // of its handlers; empty: unknown, or they are elsewhere
	Queues       []string           `json:"queues"`
	JobTypes     []JobType          `json:"jobTypes"`
	OnlyTypes    bool               `json:"onlyTypes,omitempty"` // it runs no others
	Demands      []Demand           `json:"demands,omitzero"`    // of a function pull: it takes no other; nil: any
	Partitions   map[string][]int32 `json:"partitions"`          // by queue
	Slots        int                `json:"slots"`
	Free         int                `json:"free"`
	Rate         float64            `json:"rate"` // attempts a second it would finish with all slots busy
	Attempts     []ListedAttempt    `json:"attempts"`
	Left         []ListedAttempt    `json:"left,omitempty"`         // settled lately as waiting: only progress counts
	Part         int                `json:"part,omitempty"`         // above 0: continues the list of the one before
	Stopping     bool               `json:"stopping,omitempty"`     // it claims no further attempts
	Draining     bool               `json:"draining,omitempty"`     // by order; another one makes it take attempts
	Drained      bool               `json:"drained,omitempty"`      // it drains, without attempts and unpublished outcomes
	DrainVersion int64              `json:"drainVersion,omitempty"` // of the Control that it follows; zero: none
	Follows      string             `json:"follows,omitempty"`      // digest of created queues; empty: it knows none
}

// Demand is what pull workers with the same rights ask for.
type Demand struct {
	Everyone bool     `json:"everyone,omitempty"` // they run the jobs of all owners
	OwnerID  string   `json:"ownerId,omitempty"`
	JobTypes []string `json:"jobTypes"`         // sorted
	Queues   []string `json:"queues,omitempty"` // sorted; empty: all that pull serves
	Slots    int      `json:"slots"`            // attempts that they may have at once
	Rate     float64  `json:"rate,omitempty"`   // attempts that they finish in a second
}

// JobType is a job type that a worker can run, with the JSON Schema of its payload if it has one.
type JobType struct {
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"schema,omitempty"`
}

// ListedAttempt is an attempt that a worker has claimed and not settled.
type ListedAttempt struct {
	JobID     uuid.UUID  `json:"jobId"`
	Attempt   int        `json:"attempt"`
	StartedAt *time.Time `json:"startedAt,omitempty"` // absent: claimed, waiting for a slot
	RanBy     string     `json:"ranBy,omitempty"`     // the pull worker that has it; empty: none
	Progress  *Progress  `json:"progress,omitempty"`
}

// Progress is the progress that a handler has reported.
type Progress struct {
	Percent int    `json:"percent"`
	Message string `json:"message,omitempty"`
}
