// Package command applies the numbered commands of the API, answers its reports, and puts controls into force.
package command

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobevent/emit"
	"github.com/jobweaver/jobweaver/shared/schedulerdb"
)

// Name is the function's name.
const Name = "command"

const (
	// young is the age up to which a job may arrive after its command: they are on different topics.
	young     = 5 * time.Second
	arrival   = 300 * time.Millisecond
	lookEvery = 20 * time.Millisecond
)

// Function applies commands.
type Function struct {
	// Arrival is how long a batch waits for a young job that it has a command for and that ingest has not stored yet.
	// A command for an unknown job would change nothing, and the API would repeat it only after some 10 s.
	Arrival time.Duration

	store *schedulerdb.Store
}

// New returns the function on the scheduler's database.
func New(store *schedulerdb.Store) *Function { return &Function{Arrival: arrival, store: store} }

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
		if err := f.awaitJobs(ctx, commands); err != nil {
			return nil, err
		}
		more, err := f.store.Command(ctx, commands)
		if err != nil {
			return nil, err
		}
		effects.Runs, effects.Jobs = append(effects.Runs, more.Runs...), append(effects.Jobs, more.Jobs...)
		effects.Cancels = append(effects.Cancels, more.Cancels...)
	}
	return effects.Events(Name)
}

// awaitJobs waits a short time until ingest has stored the young jobs of the commands.
func (f *Function) awaitJobs(ctx context.Context, commands []jobevent.Command) error {
	ids := youngJobs(commands, time.Now())
	for until := time.Now().Add(f.Arrival); len(ids) > 0 && time.Now().Before(until); {
		known, err := f.store.Known(ctx, ids)
		if err != nil {
			return err
		}
		if len(known) == len(ids) {
			return nil
		}
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
			return fmt.Errorf("wait for jobs to arrive: %w", ctx.Err())
		}
	}
	return nil
}

// youngJobs returns, without duplicates, the jobs that were accepted a short time ago, by the time in their ids, or
// that were held until their command came. The clock of the gateway that made an id may be ahead of this one. A job
// with a delete is left out: it has ended, so it had arrived.
func youngJobs(commands []jobevent.Command, now time.Time) (ids []uuid.UUID) {
	for _, c := range commands {
		if c.JobID.Version() != 7 || c.Command == jobevent.CommandDelete {
			continue
		}
		made := time.UnixMilli(int64(binary.BigEndian.Uint64(c.JobID[:8]) >> 16))
		if c.Released || now.Sub(made).Abs() < young {
			ids = append(ids, c.JobID)
		}
	}
	slices.SortFunc(ids, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
	return slices.Compact(ids)
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
