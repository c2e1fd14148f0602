package apidb

import (
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// Publisher is the function whose name the events of this database have. The gateway publishes them when they happen,
// and projection publishes them again from the rows: both publish the very same event, so it is made in one place.
const Publisher = "gateway"

// Created is the job as it was accepted.
func (a Accepted) Created(job NewJob) jobevent.Created {
	req := &job.Request
	return jobevent.Created{
		JobID: a.JobID, TraceID: a.TraceID, OwnerID: req.OwnerID, JobType: req.JobType, Queue: req.Queue,
		Payload: req.Payload, Priority: req.Priority, MaxRetryCount: req.MaxRetryCount, RetryPolicy: req.RetryPolicy,
		TimeoutMs: req.Timeout.Milliseconds(), RunAt: a.RunAt, CreatedAt: a.CreatedAt,
		ExpiresAt: req.ExpiresAt, OrderingKey: req.OrderingKey, OrderNumber: a.OrderNumber, OrderAfter: a.OrderAfter,
		After: req.After, RunAnyway: req.RunAnyway,
	}
}

// CreatedEvent says that a job was accepted.
func CreatedEvent(job jobevent.Created) (jobevent.Item, error) {
	e, err := jobevent.New(jobevent.TypeCreated, jobevent.Meta{
		Function: Publisher, ID: jobevent.CreatedID(job.JobID), JobID: job.JobID, TraceID: job.TraceID,
	}, job)
	e.SetTime(job.CreatedAt)
	return e, err
}

// Event says that a command was kept.
func (c Command) Event() (jobevent.Item, error) {
	said := jobevent.Command{JobID: c.JobID, Number: c.Number, Command: c.Command, By: c.By, RunAt: c.RunAt}
	if c.Command == jobevent.CommandDelete {
		said.Version = c.Version
	}
	if c.Change != nil {
		said.Change = &c.Change.Change
	}
	return jobevent.New(jobevent.TypeCommand, jobevent.Meta{
		Function: Publisher, ID: jobevent.CommandID(c.JobID, c.Number), JobID: c.JobID, TraceID: c.TraceID,
	}, said)
}

// Event says how a control stands.
func (c Control) Event() (jobevent.Item, error) {
	return jobevent.New(jobevent.TypeControl, jobevent.Meta{
		Function: Publisher, ID: jobevent.ControlID(c.Kind, c.Name, c.Version), Key: c.ID(),
	}, c.Control)
}
