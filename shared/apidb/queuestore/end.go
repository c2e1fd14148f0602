package queuestore

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/controlstore"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

const (
	// settled is how long after the beginning of a removal no process accepts jobs by an older list (see KnownAge).
	settled = 10 * time.Second
	// late is how long a removed queue is looked at again: a process that stood still may accept a job or create the
	// topic after all, and a retry may have been stored before the removal and applied after it.
	late = time.Hour
)

// remover is the author of controls that follow from a removal.
const remover = "queue-removal"

// Ending returns the queues for which there is something to End.
func (s *Store) Ending(ctx context.Context) ([]string, error) {
	names, err := s.q.QueuesEnding(ctx, gen.QueuesEndingParams{Settled: settled, Late: late})
	return names, apidb.Classify("find queues that are being removed", err)
}

// End takes the next step of a removal, if it can be taken. An empty queue first loses its workers, then its topic, its
// pause and its limits, and is gone. isServed reports whether a live worker still serves it: it would create the topic
// again. deleteTopic is called while the rows are locked. End returns the controls that have to be published, and
// whether the queue has gone.
//
// A job may turn up in a removed queue. Then the removal begins again, and workers return for the job. A worker that
// stood still during the removal creates the topic again: hasTopic reports that there is one, and End deletes it.
func (s *Store) End(
	ctx context.Context, name string, isServed, hasTopic bool, deleteTopic func(context.Context) error,
) (controls []controlstore.Control, gone bool, err error) {
	err = s.change(ctx, nil, name, func(q *gen.Queries, now *gen.Queue) error {
		controls, gone = nil, false
		add := func(control *controlstore.Control, err error) error {
			if control != nil {
				controls = append(controls, *control)
			}
			return err
		}
		filled, err := q.QueueWasFilled(ctx, name)
		switch {
		case err != nil || now == nil || State(now.State) == Active:
			return err
		case State(now.State) == removed && filled:
			if filled, err = q.QueueHasJobs(ctx, name); err != nil || !filled {
				return err // the census was older than the end of the last jobs
			}
			if _, err := q.QueueRemoving(ctx, name); err != nil {
				return err
			}
			return add(serve(ctx, q, name, now.Workers, remover))
		case State(now.State) == removed && hasTopic && !isServed:
			return deleteTopic(ctx)
		case State(now.State) == removed || filled:
			return nil
		}
		served, err := q.ControlByName(ctx, gen.ControlByNameParams{Kind: string(jobevent.ControlCreated), Name: name})
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		if served.Workers == nil && (isServed || served.AppliedVersion < served.Version) {
			return nil // the workers leave
		}
		if filled, err = q.QueueHasJobs(ctx, name); err != nil || filled {
			if err == nil && served.Workers == nil {
				return add(serve(ctx, q, name, now.Workers, remover)) // one has come
			}
			return err
		}
		if served.Workers != nil {
			return add(serve(ctx, q, name, "", remover))
		}
		if err := deleteTopic(ctx); err != nil {
			return err
		}
		if err := q.QueueRemoved(ctx, name); err != nil {
			return err
		}
		gone = true
		if err := add(lift(ctx, q, name)); err != nil {
			return err
		}
		return q.QueuesForget(ctx)
	})
	return controls, gone, err
}

// lift removes the pause and the limits of a queue, which would hold for a later queue of its name.
func lift(ctx context.Context, q *gen.Queries, name string) (*controlstore.Control, error) {
	of := gen.ControlByNameParams{Kind: string(jobevent.ControlQueue), Name: name}
	if err := q.ControlLock(ctx, gen.ControlLockParams(of)); err != nil {
		return nil, err
	}
	if _, err := q.ControlByName(ctx, of); err != nil {
		if errors.Is(err, pgx.ErrNoRows) {
			return nil, nil
		}
		return nil, err
	}
	return putControl(ctx, q, gen.ControlPutParams{Kind: of.Kind, Name: name, UpdatedBy: remover})
}
