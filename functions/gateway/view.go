package gateway

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// summary is a job in a list. What is absent is null.
type summary struct {
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
	Progress           *progress        `json:"progress"`
	Output             json.RawMessage  `json:"output"`
	LastError          *jobevent.Error  `json:"lastError"`
	TraceID            uuid.UUID        `json:"traceId"`
	Tags               []string         `json:"tags"`
	BlockedBy          []jobevent.Block `json:"blockedBy"`
	Version            int64            `json:"version"`
	ExpiresAt          *time.Time       `json:"expiresAt"`
	OrderingKey        *string          `json:"orderingKey"`
}

// full is a job on its own.
type full struct {
	summary
	Payload             json.RawMessage `json:"payload"`
	After               []uuid.UUID     `json:"after"`
	OnDependencyFailure *string         `json:"onDependencyFailure"`
	Schedule            *scheduled      `json:"schedule"`
	History             []move          `json:"history"`
	Attempts            []attempt       `json:"attempts"`
	Logs                []logLine       `json:"logs"`
}

// scheduled is the tick that a job was made of.
type scheduled struct {
	Name string    `json:"name"`
	At   time.Time `json:"at"`
}

type progress struct {
	Percent int     `json:"percent"`
	Message *string `json:"message"`
}

type move struct {
	At      time.Time `json:"at"`
	From    *string   `json:"from"`
	To      string    `json:"to"`
	Attempt int       `json:"attempt"`
	By      string    `json:"by"`
	Reason  *string   `json:"reason"`
}

type attempt struct {
	Attempt    int        `json:"attempt"`
	WorkerID   *string    `json:"workerId"`
	StartedAt  *time.Time `json:"startedAt"`
	FinishedAt *time.Time `json:"finishedAt"`
	Outcome    *string    `json:"outcome"`
	ErrorCode  *string    `json:"errorCode"`
	Message    *string    `json:"message"`
}

type logLine struct {
	Attempt int       `json:"attempt"`
	At      time.Time `json:"at"`
	Level   string    `json:"level"`
	Text    string    `json:"text"`
}

func newSummary(job apidb.Job) summary {
	snap := job.Snapshot
	nextRunAt := snap.NextRunAt
	if job.Version == 0 && job.Status == jobstate.Scheduled {
		nextRunAt = job.RunAt
	}
	return summary{
		JobID: job.JobID, JobType: job.JobType, Queue: job.Queue, OwnerID: given(job.OwnerID), Status: job.Status,
		Priority: job.Priority, Attempt: job.Attempt, RetryCount: job.RetryCount, MaxRetryCount: job.MaxRetryCount,
		CreatedAt: job.CreatedAt.UTC(), UpdatedAt: job.UpdatedAt.UTC(), RunAt: utc(job.RunAt), NextRunAt: utc(nextRunAt),
		StartedAt: utc(snap.StartedAt), FinishedAt: utc(snap.FinishedAt),
		CallbackDeadlineAt: utc(snap.CallbackDeadlineAt), CancelRequestedAt: utc(job.CancelRequestedAt),
		Progress: newProgress(job.Progress), Output: snap.Output, LastError: snap.LastError, TraceID: job.TraceID,
		Tags: list(job.Tags), BlockedBy: list(job.BlockedBy), Version: job.Version,
		ExpiresAt: utc(job.ExpiresAt), OrderingKey: given(job.OrderingKey),
	}
}

func newFull(job apidb.Job, lines []apidb.LogLine) full {
	history := make([]move, len(job.Snapshot.History))
	for i, m := range job.Snapshot.History {
		history[i] = move{
			At: m.At.UTC(), From: given(m.From), To: m.To, Attempt: m.Attempt, By: m.By, Reason: given(m.Reason),
		}
	}
	return full{
		summary: newSummary(job), Payload: job.Payload, After: list(job.After),
		Schedule:            newScheduled(job.ScheduledBy),
		OnDependencyFailure: onDependencyFailure(job), History: history, Attempts: attempts(job), Logs: newLogs(lines),
	}
}

func onDependencyFailure(job apidb.Job) *string {
	switch {
	case !job.HasAfter:
		return nil
	case job.RunAnyway:
		return given(jobspec.OnDependencyFailureRun)
	}
	return given(jobspec.OnDependencyFailureCancel)
}

func newScheduled(by *apidb.ScheduledBy) *scheduled {
	if by == nil {
		return nil
	}
	return &scheduled{Name: by.Name, At: by.At.UTC()}
}

func newProgress(p *jobevent.Progress) *progress {
	if p == nil {
		return nil
	}
	return &progress{Percent: min(max(p.Percent, 0), 100), Message: given(p.Message)}
}

func newLogs(lines []apidb.LogLine) []logLine {
	logs := make([]logLine, len(lines))
	for i, line := range lines {
		logs[i] = logLine{Attempt: line.Attempt, At: line.At.UTC(), Level: line.Level, Text: line.Text}
	}
	return logs
}

// attempts folds a job's moves by attempt. The history keeps the last hundred, so early attempts of a
// long story are missing.
func attempts(job apidb.Job) []attempt {
	folded := []attempt{}
	at := func(number int) *attempt {
		for i := range folded {
			if folded[i].Attempt == number {
				return &folded[i]
			}
		}
		folded = append(folded, attempt{Attempt: number})
		return &folded[len(folded)-1]
	}
	for _, m := range job.Snapshot.History {
		if m.Attempt > 0 {
			at(m.Attempt).add(m)
		}
	}
	if job.Attempt > 0 {
		now := at(job.Attempt)
		if job.Status == jobstate.Running && now.StartedAt == nil {
			now.StartedAt = utc(job.Snapshot.StartedAt)
		}
	}
	return folded
}

// add takes what a move says of the attempt; what it does not say stays.
func (a *attempt) add(m jobevent.Move) {
	if m.WorkerID != "" {
		a.WorkerID = &m.WorkerID
	}
	if m.StartedAt != nil {
		a.StartedAt = utc(m.StartedAt)
	}
	if m.Outcome == "" {
		return
	}
	a.Outcome, a.ErrorCode, a.Message = &m.Outcome, given(m.ErrorCode), given(m.Message)
	a.FinishedAt = utc(m.FinishedAt)
}

func given(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func utc(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	at := t.UTC()
	return &at
}

func list[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}
