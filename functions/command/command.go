// Package command applies the numbered commands of the API, answers its reports, and puts controls into force.
package command

import (
	"context"
	"fmt"
	"math"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/schedulerdb"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/emit"
)

// Name is the function's name.
const Name = "command"

// Function applies commands.
type Function struct {
	store *schedulerdb.Store
}

// New returns the function on the scheduler's database.
func New(store *schedulerdb.Store) *Function { return &Function{store: store} }

// Host is how the function is hosted.
func (f *Function) Host() funchost.Function {
	return funchost.Function{
		Name: Name, Topics: []string{jobevent.TopicCommand}, Handle: f.Handle, Ready: f.store.Ping, Pool: f.store.Connections,
	}
}

// Handle takes job.command and control.set events.
func (f *Function) Handle(ctx context.Context, batch []jobevent.Item) ([]jobevent.Item, error) {
	commands, controls, err := decode(batch)
	if err != nil {
		return nil, err
	}
	// Controls come first, so that fewer effects of commands are published again if this batch is redelivered.
	var effects emit.Effects
	if len(controls) > 0 {
		if effects, err = f.store.Control(ctx, controls); err != nil {
			return nil, err
		}
	}
	if len(commands) > 0 {
		more, err := f.store.Command(ctx, commands)
		if err != nil {
			return nil, err
		}
		effects.Add(more)
	}
	return effects.Events(Name)
}

func decode(batch []jobevent.Item) (commands []jobevent.Command, controls []jobevent.Control, err error) {
	for _, e := range batch {
		if e.Type() == jobevent.TypeControl {
			c, err := jobevent.Decode[jobevent.Control](e)
			if err != nil {
				return nil, nil, err
			}
			controls = append(controls, c)
			continue
		}
		c, err := jobevent.DecodeAs[jobevent.Command](e, jobevent.TypeCommand)
		if err != nil {
			return nil, nil, err
		}
		if err := check(c); err != nil {
			return nil, nil, err
		}
		commands = append(commands, c)
	}
	return commands, controls, nil
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
