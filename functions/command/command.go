// Package command applies the numbered commands that the API keeps, and answers its reports.
package command

import (
	"context"
	"fmt"
	"math"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/schedulerdb"
)

// Name is the function's name.
const Name = "command"

// Function applies commands.
type Function struct {
	store *schedulerdb.Store
}

// New makes the function on the scheduler's database.
func New(store *schedulerdb.Store) *Function { return &Function{store} }

// Host is how the function is hosted.
func (f *Function) Host() funchost.Function {
	return funchost.Function{
		Name: Name, Topics: []string{jobevent.TopicCommand}, Handle: f.Handle, Ready: f.store.Ping,
	}
}

// Handle takes job.command events.
func (f *Function) Handle(ctx context.Context, batch []event.Event) ([]event.Event, error) {
	commands := make([]jobevent.Command, len(batch))
	for i, e := range batch {
		c, err := jobevent.DecodeAs[jobevent.Command](e, jobevent.TypeCommand)
		if err != nil {
			return nil, err
		}
		if err := check(c); err != nil {
			return nil, err
		}
		commands[i] = c
	}
	say, err := f.store.Command(ctx, commands)
	if err != nil {
		return nil, err
	}
	return say.Events(Name)
}

func check(c jobevent.Command) error {
	switch {
	case c.Command == jobevent.CommandReport && len(c.Reports) > jobevent.MaxReportJobs:
		return fmt.Errorf("take report of %d jobs: %w", len(c.Reports), jobevent.ErrInvalid)
	case c.Command == jobevent.CommandReport:
	case c.JobID == uuid.Nil || c.Number < 1 || c.Number > math.MaxInt32:
		return fmt.Errorf("take command %q without job or number: %w", c.Command, jobevent.ErrInvalid)
	}
	return nil
}
