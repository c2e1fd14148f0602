// Package apievent builds the events of the jobs, commands, controls and callbacks that the API stores.
package apievent

import (
	"github.com/jobweaver/jobweaver/shared/apidb/callbackstore"
	"github.com/jobweaver/jobweaver/shared/apidb/commandstore"
	"github.com/jobweaver/jobweaver/shared/apidb/controlstore"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// Publisher is the function that the events of this database name as their source. The gateway publishes them when
// they happen, and projection publishes them again from the rows: both must publish the same event, so this package
// builds it.
const Publisher = "gateway"

// Created builds the event of an accepted job.
func Created(job jobevent.Created) (jobevent.Item, error) {
	e, err := jobevent.New(jobevent.TypeCreated, jobevent.Meta{
		Function: Publisher, JobID: job.JobID, TraceID: job.TraceID,
	}, &job)
	e.SetTime(job.CreatedAt)
	return e, err
}

// Command builds the event of a stored command.
func Command(c commandstore.Command) (jobevent.Item, error) {
	data := jobevent.Command{
		JobID: c.JobID, Number: c.Number, Command: c.Command, By: c.By, RunAt: c.RunAt,
	}
	if c.Command == jobevent.CommandDelete {
		data.Version = c.Version
	}
	if c.Change != nil {
		data.Change = &c.Change.Change
	}
	return jobevent.New(jobevent.TypeCommand, jobevent.Meta{
		Function: Publisher, ID: jobevent.CommandID(c.JobID, c.Number), JobID: c.JobID, TraceID: c.TraceID,
	}, data)
}

// Control builds the event of a control as it is now.
func Control(c controlstore.Control) (jobevent.Item, error) {
	return jobevent.New(jobevent.TypeControl, jobevent.Meta{
		Function: Publisher, ID: jobevent.ControlID(c.Kind, c.Name, c.Version), Key: c.ID(),
	}, c.Control)
}

// Callback builds the event of an attempt's outcome, as a worker would publish it.
func Callback(c callbackstore.Callback) (jobevent.Item, error) {
	meta := jobevent.Meta{
		Function: Publisher, ID: jobevent.OutcomeID(c.JobID, c.Attempt, "callback"), JobID: c.JobID, TraceID: c.TraceID,
	}
	typ, data := jobevent.TypeCompleted, any(&jobevent.Completed{
		JobID: c.JobID, Attempt: c.Attempt, FinishedAt: c.ReceivedAt.UTC(), Output: c.Output,
	})
	if c.Kind == jobevent.KindFailed {
		typ, data = jobevent.TypeFailed, &jobevent.Failed{
			JobID: c.JobID, Attempt: c.Attempt, FinishedAt: c.ReceivedAt.UTC(), ErrorCode: c.ErrorCode, Message: c.Message,
			Retryable: c.Retryable, Kind: c.Kind,
		}
	}
	e, err := jobevent.New(typ, meta, data)
	e.SetTime(c.ReceivedAt)
	return e, err
}
