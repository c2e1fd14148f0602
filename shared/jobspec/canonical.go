package jobspec

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/retrypolicy"
)

// canonical leaves out what is as by default, so that a request hashes to the same before and after
// a new member with a default is added. The idempotency key, by which requests are compared, is no
// part of it.
type canonical struct {
	JobType       string              `json:"jobType"`
	Payload       json.RawMessage     `json:"payload"`
	MaxRetryCount *int                `json:"maxRetryCount,omitempty"`
	RetryPolicy   *retrypolicy.Policy `json:"retryPolicy,omitempty"`
	Queue         string              `json:"queue,omitempty"`
	Priority      int                 `json:"priority,omitempty"`
	RunAt         *time.Time          `json:"runAt,omitempty"`
	DelayMs       int64               `json:"delayMs,omitempty"`
	TimeoutMs     int64               `json:"timeoutMs,omitempty"`
	Tags          []string            `json:"tags,omitempty"`
	OwnerID       string              `json:"ownerId,omitempty"`
	ExpiresAt     *time.Time          `json:"expiresAt,omitempty"`
	OrderingKey   string              `json:"orderingKey,omitempty"`
	FairnessKey   string              `json:"fairnessKey,omitempty"`
	KeepBuild     bool                `json:"keepBuild,omitempty"`
	After         []uuid.UUID         `json:"after,omitempty"`
	OnFailure     string              `json:"onDependencyFailure,omitempty"`
	Conditions    []string            `json:"conditions,omitempty"` // of each of after, sorted
	Inputs        []jobevent.Input    `json:"inputs,omitempty"`
	CallbackURL   string              `json:"callbackUrl,omitempty"`
	RunAgainOf    *uuid.UUID          `json:"runAgainOf,omitempty"`
	BatchID       *uuid.UUID          `json:"batchId,omitempty"`
	Policies
}

// Canonical writes a decoded request so that the same meaning is the same bytes: whatever the order
// of members, the white space, the way a character or a fraction is written, the order of tags and of
// after, or whether a default is spelled out. It fails only for a payload that Decode has not seen.
func Canonical(req Request) ([]byte, error) {
	payload, err := canonicalPayload(req)
	if err != nil {
		return nil, fmt.Errorf("write canonical payload: %w", err)
	}
	c := canonical{
		JobType: req.JobType, Payload: payload, Priority: req.Priority, RunAt: req.RunAt,
		DelayMs: req.Delay.Milliseconds(), Tags: slices.Sorted(slices.Values(req.Tags)),
		OwnerID: req.OwnerID, ExpiresAt: req.ExpiresAt, OrderingKey: req.OrderingKey, FairnessKey: req.OwnFairnessKey(),
		After: slices.SortedFunc(slices.Values(req.After), compareIDs), CallbackURL: req.CallbackURL,
		KeepBuild: req.KeepBuild, Inputs: req.Inputs, Policies: req.Policies,
	}
	for i := range req.Conditions {
		c.Conditions = append(c.Conditions, req.After[i].String()+" "+string(req.Conditions[i]))
	}
	slices.Sort(c.Conditions)
	if req.RunAnyway {
		c.OnFailure = OnDependencyFailureRun
	}
	if req.RunAgainOf != uuid.Nil {
		c.RunAgainOf = &req.RunAgainOf
	}
	if req.BatchID != uuid.Nil {
		c.BatchID = &req.BatchID
	}
	if req.MaxRetryCount != DefaultMaxRetryCount {
		c.MaxRetryCount = &req.MaxRetryCount
	}
	if !req.RetryPolicy.Equal(nil) {
		c.RetryPolicy = req.RetryPolicy
	}
	if req.Queue != DefaultQueue {
		c.Queue = req.Queue
	}
	if req.Timeout != DefaultTimeout {
		c.TimeoutMs = req.Timeout.Milliseconds()
	}
	b, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("write canonical request: %w", err)
	}
	return b, nil
}

func canonicalPayload(req Request) ([]byte, error) {
	if req.JobType == Simulation && req.Inputs == nil {
		steps, err := ParseSimulation(req.Payload)
		if err != nil {
			return nil, err
		}
		return json.Marshal(canonicalSteps(steps))
	}
	// Integers stay as they are written: as doubles, neighbours above 2⁵³ would be the same.
	return jsontext.AppendFormat(nil, []byte(req.Payload), jsontext.ReorderRawObjects(true),
		jsontext.CanonicalizeRawFloats(true))
}

// canonicalStep is a step with what is as by default left out.
type canonicalStep struct {
	Type         string `json:"type"`
	Message      string `json:"message,omitempty"`
	DurationMs   int64  `json:"durationMs,omitempty"`
	Iterations   int64  `json:"iterations,omitempty"`
	URL          string `json:"url,omitempty"`
	Method       string `json:"method,omitempty"`
	LatencyMs    int64  `json:"latencyMs,omitempty"`
	ErrorCode    string `json:"errorCode,omitempty"`
	Final        bool   `json:"final,omitempty"` // not retryable
	FailAttempts *int   `json:"failAttempts,omitempty"`
}

func canonicalSteps(steps []Step) []canonicalStep {
	list := make([]canonicalStep, len(steps))
	for i, step := range steps {
		c := &list[i]
		switch s := step.(type) {
		case Sleep:
			*c = canonicalStep{Type: "SLEEP", DurationMs: s.Duration.Milliseconds()}
		case Log:
			*c = canonicalStep{Type: "LOG", Message: s.Message}
		case Compute:
			*c = canonicalStep{Type: "COMPUTE", Iterations: s.Iterations}
		case HTTPCall:
			*c = canonicalStep{Type: "HTTP_CALL", URL: s.URL, LatencyMs: s.Latency.Milliseconds()}
			c.Method = unless(s.Method, defaultMethod)
		case Fail:
			*c = canonicalStep{Type: "FAIL", Message: unless(s.Message, DefaultFailMessage)}
			c.ErrorCode, c.Final = unless(s.ErrorCode, DefaultFailCode), !s.Retryable
			if s.Attempts != AllAttempts {
				c.FailAttempts = &s.Attempts
			}
		}
	}
	return list
}

func unless(s, byDefault string) string {
	if s == byDefault {
		return ""
	}
	return s
}
