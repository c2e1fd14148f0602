// Package jobview converts a job to the JSON of the API and of deliveries.
package jobview

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// Summary is a job without its payload and its history. An absent value is null.
type Summary struct {
	JobID              uuid.UUID        `json:"jobId"`
	JobType            string           `json:"jobType"`
	Queue              string           `json:"queue"`
	OwnerID            *string          `json:"ownerId"`
	Status             jobstate.Status  `json:"status"`
	Priority           int              `json:"priority"`
	Attempt            int              `json:"attempt"`
	RetryCount         int              `json:"retryCount"`
	MaxRetryCount      int              `json:"maxRetryCount"`
	CreatedAt          time.Time        `json:"createdAt"`
	UpdatedAt          time.Time        `json:"updatedAt"`
	RunAt              *time.Time       `json:"runAt"`
	NextRunAt          *time.Time       `json:"nextRunAt"`
	StartedAt          *time.Time       `json:"startedAt"`
	FinishedAt         *time.Time       `json:"finishedAt"`
	CallbackDeadlineAt *time.Time       `json:"callbackDeadlineAt"`
	CancelRequestedAt  *time.Time       `json:"cancelRequestedAt"`
	Progress           *Progress        `json:"progress"`
	Output             json.RawMessage  `json:"output"`
	LastError          *jobevent.Error  `json:"lastError"`
	TraceID            uuid.UUID        `json:"traceId"`
	Tags               []string         `json:"tags"`
	BlockedBy          []jobevent.Block `json:"blockedBy"`
	Version            int64            `json:"version"`
	ExpiresAt          *time.Time       `json:"expiresAt"`
	OrderingKey        *string          `json:"orderingKey"`
	FairnessKey        *string          `json:"fairnessKey"`
	BatchID            *uuid.UUID       `json:"batchId"`
	Sealed             []string         `json:"sealed,omitempty"` // members that cannot be shown
}

// Progress is how far an attempt has come.
type Progress struct {
	Percent int     `json:"percent"`
	Message *string `json:"message"`
}

// New converts a job.
func New(job jobstore.Job) Summary {
	snap := job.Snapshot
	nextRunAt := snap.NextRunAt
	if job.Version == 0 && job.Status == jobstate.Scheduled {
		nextRunAt = job.RunAt
	}
	return Summary{
		JobID: job.JobID, JobType: job.JobType, Queue: job.Queue, OwnerID: Given(job.OwnerID), Status: job.Status,
		Priority: job.Priority, Attempt: job.Attempt, RetryCount: job.RetryCount, MaxRetryCount: job.MaxRetryCount,
		CreatedAt: job.CreatedAt.UTC(), UpdatedAt: job.UpdatedAt.UTC(), RunAt: UTC(job.RunAt), NextRunAt: UTC(nextRunAt),
		StartedAt: UTC(snap.StartedAt), FinishedAt: UTC(snap.FinishedAt),
		CallbackDeadlineAt: deadline(snap.CallbackDeadlineAt), CancelRequestedAt: UTC(job.CancelRequestedAt),
		Progress: NewProgress(job.Progress), Output: snap.Output, LastError: snap.LastError, TraceID: job.TraceID,
		Tags: List(job.Tags), BlockedBy: List(job.BlockedBy), Version: job.Version,
		ExpiresAt: UTC(job.ExpiresAt), OrderingKey: Given(job.OrderingKey),
		FairnessKey: Given(job.FairnessKey), BatchID: ID(job.BatchID), Sealed: job.Sealed,
	}
}

// deadline is null for the year 9999, which is that of a fan-out: it waits for its jobs however long they take.
func deadline(at *time.Time) *time.Time {
	if at == nil || at.UTC().Year() >= 9999 {
		return nil
	}
	return UTC(at)
}

// NewProgress converts progress; nil for nil.
func NewProgress(p *jobevent.Progress) *Progress {
	if p == nil {
		return nil
	}
	return &Progress{Percent: min(max(p.Percent, 0), 100), Message: Given(p.Message)}
}

// Given returns null for an empty value.
func Given(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// ID returns null for no id.
func ID(id uuid.UUID) *uuid.UUID {
	if id == uuid.Nil {
		return nil
	}
	return &id
}

// UTC converts an instant to UTC; null for nil.
func UTC(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	at := t.UTC()
	return &at
}

// List is never null: without items it is an empty list.
func List[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}
