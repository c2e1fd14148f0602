package jobevent

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

// The events that every job has write their JSON by hand: the same that encoding/json makes of them, in
// a tenth of the time. RawMessages are taken as they are: they were valid when they came into the house.

func (c Created) appendJSON(b []byte) []byte {
	b = appendID(append(b, `{"jobId":`...), c.JobID)
	b = appendID(append(b, `,"traceId":`...), c.TraceID)
	if c.OwnerID != "" {
		b = appendText(append(b, `,"ownerId":`...), c.OwnerID)
	}
	b = appendText(append(b, `,"jobType":`...), c.JobType)
	b = appendText(append(b, `,"queue":`...), c.Queue)
	b = appendRaw(append(b, `,"payload":`...), c.Payload)
	if c.Priority != 0 {
		b = appendInt(append(b, `,"priority":`...), c.Priority)
	}
	b = appendInt(append(b, `,"maxRetryCount":`...), c.MaxRetryCount)
	if c.RetryPolicy != nil {
		policy, err := json.Marshal(c.RetryPolicy)
		if err != nil {
			panic("write a retry policy: " + err.Error()) // numbers and texts only
		}
		b = append(append(b, `,"retryPolicy":`...), policy...)
	}
	b = appendInt(append(b, `,"timeoutMs":`...), c.TimeoutMs)
	b = appendInstantIf(b, `,"runAt":`, c.RunAt)
	b = appendInstant(append(b, `,"createdAt":`...), c.CreatedAt)
	if c.IsPlain() {
		return append(b, '}')
	}
	b = appendInstantIf(b, `,"expiresAt":`, c.ExpiresAt)
	b = appendTextIf(b, `,"orderingKey":`, c.OrderingKey)
	if c.OrderNumber != 0 {
		b = appendInt(append(b, `,"orderNumber":`...), c.OrderNumber)
	}
	if c.OrderAfter != nil {
		b = appendID(append(b, `,"orderAfter":`...), *c.OrderAfter)
	}
	if len(c.After) > 0 {
		b = appendAny(append(b, `,"after":`...), c.After)
	}
	if c.RunAnyway {
		b = append(b, `,"runAnyway":true`...)
	}
	return append(b, '}')
}

func (r Run) appendJSON(b []byte) []byte {
	b = appendID(append(b, `{"jobId":`...), r.JobID)
	b = appendInt(append(b, `,"attempt":`...), r.Attempt)
	b = appendText(append(b, `,"jobType":`...), r.JobType)
	b = appendRaw(append(b, `,"payload":`...), r.Payload)
	b = appendInt(append(b, `,"timeoutMs":`...), r.TimeoutMs)
	b = appendInstant(append(b, `,"rank":`...), r.Rank)
	if r.Cancel {
		b = append(b, `,"cancel":true`...)
	}
	b = appendInstantIf(b, `,"expiresAt":`, r.ExpiresAt)
	b = appendTextIf(b, `,"ownerId":`, r.OwnerID)
	return append(b, '}')
}

func (c Completed) appendJSON(b []byte) []byte {
	b = appendID(append(b, `{"jobId":`...), c.JobID)
	b = appendInt(append(b, `,"attempt":`...), c.Attempt)
	b = appendText(append(b, `,"workerId":`...), c.WorkerID)
	if !c.StartedAt.IsZero() {
		b = appendInstant(append(b, `,"startedAt":`...), c.StartedAt)
	}
	b = appendInstant(append(b, `,"finishedAt":`...), c.FinishedAt)
	if len(c.Output) > 0 {
		b = appendRaw(append(b, `,"output":`...), c.Output)
	}
	return append(b, '}')
}

// AppendJSON appends the entry as it stands in a job's history.
func (m Move) AppendJSON(b []byte) []byte {
	b = appendInstant(append(b, `{"at":`...), m.At)
	b = appendTextIf(b, `,"from":`, m.From)
	b = appendText(append(b, `,"to":`...), m.To)
	b = appendInt(append(b, `,"attempt":`...), m.Attempt)
	b = appendText(append(b, `,"by":`...), m.By)
	b = appendTextIf(b, `,"reason":`, m.Reason)
	b = appendTextIf(b, `,"outcome":`, m.Outcome)
	b = appendTextIf(b, `,"workerId":`, m.WorkerID)
	b = appendInstantIf(b, `,"startedAt":`, m.StartedAt)
	b = appendInstantIf(b, `,"finishedAt":`, m.FinishedAt)
	b = appendTextIf(b, `,"errorCode":`, m.ErrorCode)
	b = appendTextIf(b, `,"message":`, m.Message)
	return append(b, '}')
}

// RawStatus is a Status whose history is the JSON that is stored, be it said or heard: the event that
// there is most of is not decoded to be encoded again.
type RawStatus struct {
	Status
	History json.RawMessage `json:"history"` // in the place of Status.History
}

func (s RawStatus) appendJSON(b []byte) []byte {
	b = appendID(append(b, `{"jobId":`...), s.JobID)
	b = appendInt(append(b, `,"version":`...), s.Version)
	b = appendText(append(b, `,"status":`...), s.Status.Status)
	b = appendInt(append(b, `,"attempt":`...), s.Attempt)
	b = appendInt(append(b, `,"retryCount":`...), s.RetryCount)
	b = appendInstantIf(b, `,"nextRunAt":`, s.NextRunAt)
	b = appendInstantIf(b, `,"callbackDeadlineAt":`, s.CallbackDeadlineAt)
	b = appendInstantIf(b, `,"startedAt":`, s.StartedAt)
	b = appendInstantIf(b, `,"finishedAt":`, s.FinishedAt)
	b = appendInstant(append(b, `,"updatedAt":`...), s.UpdatedAt)
	if len(s.BlockedBy) > 0 {
		b = appendAny(append(b, `,"blockedBy":`...), s.BlockedBy)
	}
	if s.LastError != nil {
		b = appendText(append(b, `,"lastError":{"errorCode":`...), s.LastError.ErrorCode)
		b = append(appendText(append(b, `,"message":`...), s.LastError.Message), '}')
	}
	if len(s.Output) > 0 {
		b = appendRaw(append(b, `,"output":`...), s.Output)
	}
	b = appendRaw(append(b, `,"history":`...), s.History)
	if s.LastCommand != nil {
		b = appendAny(append(b, `,"lastCommand":`...), s.LastCommand)
	}
	return append(b, '}')
}

func appendID(b []byte, id uuid.UUID) []byte {
	const hexDigits = "0123456789abcdef"
	b = append(b, '"')
	for i, octet := range id {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			b = append(b, '-')
		}
		b = append(b, hexDigits[octet>>4], hexDigits[octet&15])
	}
	return append(b, '"')
}

func appendInt[T int | int64](b []byte, n T) []byte { return strconv.AppendInt(b, int64(n), 10) }

// appendText writes what is no UTF-8 as U+FFFD, as encoding/json does.
func appendText(b []byte, text string) []byte {
	b, _ = jsontext.AppendQuote(b, text)
	return b
}

func appendTextIf(b []byte, name, text string) []byte {
	if text == "" {
		return b
	}
	return appendText(append(b, name...), text)
}

func appendInstant(b []byte, at time.Time) []byte {
	return append(at.AppendFormat(append(b, '"'), time.RFC3339Nano), '"')
}

func appendInstantIf(b []byte, name string, at *time.Time) []byte {
	if at == nil {
		return b
	}
	return appendInstant(append(b, name...), *at)
}

func appendRaw(b []byte, raw json.RawMessage) []byte {
	if raw == nil {
		return append(b, "null"...)
	}
	return append(b, raw...)
}

// appendAny is for small parts that few events have.
func appendAny(b []byte, v any) []byte {
	body, err := json.Marshal(v)
	if err != nil {
		panic("write part of a status: " + err.Error()) // numbers and texts only
	}
	return append(b, body...)
}
