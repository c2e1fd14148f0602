package jobs

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apidb/logstore"
	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/jobview"
)

// full is a job in its own response.
type full struct {
	jobview.Summary
	Payload             json.RawMessage `json:"payload"`
	After               []uuid.UUID     `json:"after"`
	Conditions          conditions      `json:"conditions"`
	OnDependencyFailure *string         `json:"onDependencyFailure"`
	Schedule            *client.Tick    `json:"schedule"`
	Event               json.RawMessage `json:"event"`
	CallbackURL         *string         `json:"callbackUrl"`
	IdempotencyKey      *string         `json:"idempotencyKey"`
	RetryPolicy         map[string]any  `json:"retryPolicy"`
	TimeoutMs           int64           `json:"timeoutMs"`
	RunAgainOf          *uuid.UUID      `json:"runAgainOf"`
	RunAgainAs          *uuid.UUID      `json:"runAgainAs"`
	ParentID            *uuid.UUID      `json:"parentId"`
	KeepBuild           bool            `json:"keepBuild"`

	ForEach *apibody.ForEach `json:"forEach"`
	Element *client.Element  `json:"element"`

	Unique    *jobspec.Unique    `json:"unique"`
	Throttle  *jobspec.Throttle  `json:"throttle"`
	Singleton *jobspec.Singleton `json:"singleton"`
	Debounce  *jobspec.Debounce  `json:"debounce"`
	Held      bool               `json:"held"`

	Waits    []wait           `json:"waits"`
	Steps    []step           `json:"steps"`
	History  []move           `json:"history"`
	Attempts []attempt        `json:"attempts"`
	Logs     []client.LogLine `json:"logs"`
}

func newElement(of *jobspec.Element) *client.Element {
	if of == nil {
		return nil
	}
	return &client.Element{FanOutID: of.FanOut.String(), Index: of.Index}
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

func newFull(job jobstore.Job, lines []logstore.Line) full {
	if each := job.ForEach; each != nil { // as requested, though only the jobs of the elements have it
		job.OrderingKey, job.CallbackURL, job.Policies = each.OrderingKey, each.CallbackURL, each.Policies
	}
	history := make([]move, len(job.Snapshot.History))
	for i, m := range job.Snapshot.History {
		history[i] = move{
			At: m.At.UTC(), From: jobview.Given(m.From), To: m.To, Attempt: m.Attempt, By: m.By, Reason: jobview.Given(m.Reason),
		}
	}
	return full{
		Summary: jobview.New(job), Payload: jobspec.ShownPayload(job.JobType, job.Payload), After: jobview.List(job.After),
		Schedule: newTick(job.ScheduledBy), Event: job.Event, CallbackURL: jobview.Given(job.CallbackURL),
		IdempotencyKey: jobview.Given(job.IdempotencyKey), RetryPolicy: jobspec.PolicyFields(job.RetryPolicy),
		TimeoutMs:  job.TimeoutMs,
		RunAgainOf: jobview.ID(job.RunAgainOf), RunAgainAs: job.RunAgainAs, ParentID: job.Parent, KeepBuild: job.KeepBuild,
		ForEach: apibody.NewForEach(job.ForEach), Element: newElement(job.Element),
		Unique: job.Policies.Unique, Throttle: job.Policies.Throttle, Singleton: job.Policies.Singleton,
		Conditions: conditionsOf(job),
		Debounce:   job.Policies.Debounce, Held: job.Held,
		OnDependencyFailure: onDependencyFailure(job), History: history, Attempts: attempts(job), Logs: NewLogs(lines),
	}
}

// conditions are how jobs in after have to end, by their ids; null: no entry names a condition.
type conditions map[uuid.UUID]jobstate.Condition

func conditionsOf(job jobstore.Job) conditions {
	if job.Conditions == nil {
		return nil
	}
	of := conditions{}
	for i, id := range job.After {
		of[id] = job.Conditions[i]
	}
	return of
}

func onDependencyFailure(job jobstore.Job) *string {
	switch {
	case !job.HasAfter:
		return nil
	case job.RunAnyway:
		return jobview.Given(jobspec.OnDependencyFailureRun)
	}
	return jobview.Given(jobspec.OnDependencyFailureCancel)
}

func newTick(by *jobstore.ScheduledBy) *client.Tick {
	if by == nil {
		return nil
	}
	return &client.Tick{Name: by.Name, At: by.At.UTC()}
}

// NewLogs converts log lines for a response.
func NewLogs(lines []logstore.Line) []client.LogLine {
	logs := make([]client.LogLine, len(lines))
	for i, line := range lines {
		logs[i] = client.LogLine{Attempt: line.Attempt, At: line.At.UTC(), Level: line.Level, Text: line.Text}
	}
	return logs
}

// attempts groups a job's transitions by attempt. The history has the last 100 transitions, so the first attempts of a
// job with many are missing.
func attempts(job jobstore.Job) []attempt {
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
			now.StartedAt = jobview.UTC(job.Snapshot.StartedAt)
		}
	}
	return folded
}

// add copies the fields that a transition has into the attempt.
func (a *attempt) add(m jobevent.Transition) {
	if m.WorkerID != "" {
		a.WorkerID = &m.WorkerID
	}
	if m.StartedAt != nil {
		a.StartedAt = jobview.UTC(m.StartedAt)
	}
	if m.Outcome == "" {
		return
	}
	a.Outcome, a.ErrorCode, a.Message = &m.Outcome, jobview.Given(m.ErrorCode), jobview.Given(m.Message)
	a.FinishedAt = jobview.UTC(m.FinishedAt)
}
