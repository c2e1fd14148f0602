package client

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// The states of a job. The last three are final.
const (
	Scheduled = "SCHEDULED"
	Pending   = "PENDING"
	Queued    = "QUEUED"
	Running   = "RUNNING"
	Waiting   = "WAITING" // for an outside system
	Retrying  = "RETRYING"
	Completed = "COMPLETED"
	Failed    = "FAILED"
	Cancelled = "CANCELLED"
)

// Accepted is the answer to an accepted job.
type Accepted struct {
	JobID     string `json:"jobId"`
	TraceID   string `json:"traceId"`
	Status    string `json:"status"`
	DecidedBy string `json:"decidedBy"` // the policy that found this job, so that no new one was made; empty: none
}

// Job is a job as the API shows it. A null is the zero value here; Raw is the answer itself. Lists, streams and
// webhooks leave out Payload and all fields after it.
type Job struct {
	JobID         string `json:"jobId"`
	TraceID       string `json:"traceId"`
	JobType       string `json:"jobType"`
	Queue         string `json:"queue"`
	OwnerID       string `json:"ownerId"`
	Status        string `json:"status"`
	Priority      int    `json:"priority"`
	Attempt       int    `json:"attempt"`    // of the last attempt; 0 before the first
	RetryCount    int    `json:"retryCount"` // failed attempts that were retried
	MaxRetryCount int    `json:"maxRetryCount"`

	CreatedAt          time.Time  `json:"createdAt"`
	UpdatedAt          time.Time  `json:"updatedAt"`
	RunAt              *time.Time `json:"runAt"`
	NextRunAt          *time.Time `json:"nextRunAt"` // when the next attempt is due
	StartedAt          *time.Time `json:"startedAt"`
	FinishedAt         *time.Time `json:"finishedAt"`
	ExpiresAt          *time.Time `json:"expiresAt"`
	CallbackDeadlineAt *time.Time `json:"callbackDeadlineAt"`
	CancelRequestedAt  *time.Time `json:"cancelRequestedAt"`

	Progress    *Progress       `json:"progress"`
	Output      json.RawMessage `json:"output"`
	LastError   *Failure        `json:"lastError"`
	Tags        []string        `json:"tags"`
	BlockedBy   []Block         `json:"blockedBy"`
	OrderingKey string          `json:"orderingKey"`
	BatchID     string          `json:"batchId"`
	FairnessKey string          `json:"fairnessKey"` // the requested key, or else the owner
	Version     int64           `json:"version"`     // rises with each change
	Sealed      []string        `json:"sealed"`      // members that cannot be shown

	Payload             json.RawMessage   `json:"payload"`
	Schedule            *Tick             `json:"schedule"`
	Event               SubmitEvent       `json:"event"` // nil: no CloudEvent has submitted it
	CallbackURL         string            `json:"callbackUrl"`
	IdempotencyKey      string            `json:"idempotencyKey"`
	RetryPolicy         *RetryPolicy      `json:"retryPolicy"` // as it applies, with all members of its type
	TimeoutMs           int64             `json:"timeoutMs"`   // of one attempt
	RunAgainOf          string            `json:"runAgainOf"`
	RunAgainAs          string            `json:"runAgainAs"`
	ParentID            string            `json:"parentId"` // the job whose handler has called it; empty: none
	Waits               []Wait            `json:"waits"`    // the oldest first
	Steps               []Step            `json:"steps"`    // in the order in which they were saved
	After               []string          `json:"after"`
	Conditions          map[string]string `json:"conditions"` // how jobs in After have to end; nil: the default for all
	KeepBuild           bool              `json:"keepBuild"`
	ForEach             *ForEach          `json:"forEach"` // nil: it is no fan-out
	Element             *Element          `json:"element"` // nil: it belongs to no fan-out
	OnDependencyFailure string            `json:"onDependencyFailure"`
	Unique              *Unique           `json:"unique"`
	Throttle            *Throttle         `json:"throttle"`
	Singleton           *Singleton        `json:"singleton"`
	Debounce            *Debounce         `json:"debounce"`
	Held                bool              `json:"held"` // further requests with its debounce key still change it
	History             []Move            `json:"history"`
	Attempts            []Attempt         `json:"attempts"`
	Logs                []LogLine         `json:"logs"`

	Raw json.RawMessage `json:"-"`
}

// Progress is the progress that a running attempt has reported.
type Progress struct {
	Percent int    `json:"percent"`
	Message string `json:"message"`
}

// Failure is why an attempt failed.
type Failure struct {
	ErrorCode string `json:"errorCode"`
	Message   string `json:"message"`
}

// SubmitEvent has the attributes of the CloudEvent that submitted a job, by their names: id, source, type, subject,
// time, dataschema and extensions.
type SubmitEvent map[string]any

// Tick is the instant of a schedule for which a job was made.
type Tick struct {
	Name string    `json:"name"`
	At   time.Time `json:"at"`
}

// Move is one change of a job's state.
type Move struct {
	At      time.Time `json:"at"`
	From    string    `json:"from"` // empty: it is the first
	To      string    `json:"to"`
	Attempt int       `json:"attempt"`
	By      string    `json:"by"`
	Reason  string    `json:"reason"`
}

// Attempt is one run of a job.
type Attempt struct {
	Attempt    int        `json:"attempt"`
	WorkerID   string     `json:"workerId"`
	StartedAt  *time.Time `json:"startedAt"`
	FinishedAt *time.Time `json:"finishedAt"`
	Outcome    string     `json:"outcome"` // empty while it runs
	ErrorCode  string     `json:"errorCode"`
	Message    string     `json:"message"`
}

// LogLine is a line in an attempt's log.
type LogLine struct {
	Attempt int       `json:"attempt"`
	At      time.Time `json:"at"`
	Level   string    `json:"level"`
	Text    string    `json:"text"`
}

// Block is one reason why a job waits.
type Block struct {
	Kind string `json:"kind"` // dependency, order, singleton, pause or limit
	ID   string `json:"id"`
}

// Terminal reports whether the job has ended.
func (j *Job) Terminal() bool {
	return j.Status == Completed || j.Status == Failed || j.Status == Cancelled
}

// Err returns an *EndedError if the job has ended as FAILED or CANCELLED, and nil otherwise.
func (j *Job) Err() error {
	if j.Status == Failed || j.Status == Cancelled {
		return &EndedError{Job: j}
	}
	return nil
}

// DecodeOutput decodes the handler's output into the value at a pointer. For a job that is not COMPLETED it returns the
// error of Err.
func (j *Job) DecodeOutput(into any) error {
	if err := j.Err(); err != nil {
		return err
	}
	if j.Status != Completed {
		return fmt.Errorf("job %s is %s, it has no output yet", j.JobID, j.Status)
	}
	if err := json.Unmarshal(j.Output, into); err != nil {
		return fmt.Errorf("decode output of job %s: %w", j.JobID, err)
	}
	return nil
}

// OutputText returns the output in readable form: with < and not \u003c. Empty: there is no output.
func (j *Job) OutputText() string {
	if len(j.Output) == 0 || string(j.Output) == "null" {
		return ""
	}
	text, err := jsontext.AppendFormat(nil, j.Output)
	if err != nil {
		return string(j.Output)
	}
	return string(text)
}

// WaitsFor describes what a job waits for, other than its time and a worker; empty: nothing.
func (j *Job) WaitsFor() string {
	var all []string
	for _, block := range j.BlockedBy {
		kind, name, _ := strings.Cut(block.ID, ":")
		switch control := kind + " " + name; block.Kind {
		case "dependency":
			all = append(all, "job "+block.ID+" to end")
		case "order":
			all = append(all, "earlier jobs of ordering key "+block.ID)
		case "singleton":
			all = append(all, "earlier jobs of singleton key "+block.ID)
		case "pause":
			all = append(all, control+", which is paused")
		case "limit":
			all = append(all, control+", which is limited")
		default:
			all = append(all, block.Kind+" "+block.ID)
		}
	}
	return strings.Join(all, "; ")
}
