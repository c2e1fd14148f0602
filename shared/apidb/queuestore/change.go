package queuestore

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/controlstore"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/nullable"
)

// maxQueues bounds the created queues: each worker is a member of a consumer group for each of them.
const maxQueues = 100

// Errors of changes.
var (
	ErrNoQueue error = apierror.New(apierror.NotFound, "there is no such queue")
	errTooMany error = apierror.New(apierror.InvalidStateTransition, "there are %d created queues already", maxQueues)
)

// change runs fn in a transaction that no other change of the queue overlaps.
func (s *Store) change(
	ctx context.Context, entry *apidb.Audit, name string, fn func(q *gen.Queries, now *gen.Queue) error,
) error {
	err := apidb.AuditedTx(ctx, s.db, entry, func(q *gen.Queries, _ *apidb.Audit) error {
		if err := q.ControlLock(ctx, gen.ControlLockParams{Kind: string(jobevent.ControlCreated), Name: name}); err != nil {
			return err
		}
		row, err := q.QueueByName(ctx, name)
		if errors.Is(err, pgx.ErrNoRows) {
			return fn(q, nil)
		}
		if err != nil {
			return err
		}
		return fn(q, &row)
	})
	s.Forget() // also after an error: the commit may have succeeded
	return apidb.Classify("change queue "+name, err)
}

// Put creates a queue, or takes back its removal. makeTopic is called before a new queue is stored; the rows are locked
// meanwhile. It returns the control
// that has to be published, if the workers do not know the queue.
func (s *Store) Put(
	ctx context.Context, entry *apidb.Audit, name, workers, by string, makeTopic func(context.Context) error,
) (queue Queue, created bool, control *controlstore.Control, err error) {
	err = s.change(ctx, entry, name, func(q *gen.Queries, now *gen.Queue) error {
		created, control = now == nil || State(now.State) == removed, nil
		switch {
		case created:
			if n, err := q.QueuesCount(ctx); err != nil {
				return err
			} else if n >= maxQueues {
				return errTooMany
			}
			if err := makeTopic(ctx); err != nil {
				return err
			}
			row, err := q.QueueCreate(ctx, gen.QueueCreateParams{Name: name, Workers: workers, CreatedBy: by})
			if err != nil {
				return err
			}
			queue = newQueue(row)
		case now.Workers != workers:
			return apierror.New(apierror.InvalidStateTransition,
				"%s serves the queue: remove it before you create it for %s", now.Workers, workers)
		case State(now.State) == Removing:
			row, err := q.QueueKeep(ctx, name)
			if err != nil {
				return err
			}
			queue = newQueue(row)
		default:
			queue = newQueue(*now)
		}
		control, err = serve(ctx, q, name, workers, by)
		return err
	})
	return queue, created, control, err
}

// serve stores which function serves the queue; empty: none does any more. It returns the control if that is a change.
func serve(ctx context.Context, q *gen.Queries, name, workers, by string) (*controlstore.Control, error) {
	now, err := q.ControlByName(ctx, gen.ControlByNameParams{Kind: string(jobevent.ControlCreated), Name: name})
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return nil, err
	}
	if nullable.Value(now.Workers) == workers {
		return nil, nil
	}
	return putControl(ctx, q, gen.ControlPutParams{
		Kind: string(jobevent.ControlCreated), Name: name, Workers: nullable.Text(workers), UpdatedBy: by,
	})
}

func putControl(ctx context.Context, q *gen.Queries, p gen.ControlPutParams) (*controlstore.Control, error) {
	row, err := q.ControlPut(ctx, p)
	if err != nil {
		return nil, err
	}
	control := controlstore.FromRow(row)
	return &control, nil
}

// Uses are what keeps a queue from being removed.
type Uses struct {
	Jobs               int64 // that have not ended
	Schedules, Batches int64 // that make further jobs in it
}

// Remove begins the removal of a queue: it takes no new jobs. Unless refusal finds a reason against it.
func (s *Store) Remove(
	ctx context.Context, entry *apidb.Audit, name string, refusal func(Uses) error,
) (queue Queue, err error) {
	err = s.change(ctx, entry, name, func(q *gen.Queries, now *gen.Queue) error {
		switch {
		case now == nil || State(now.State) == removed:
			return ErrNoQueue
		case State(now.State) == Removing:
			queue = newQueue(*now)
			return nil
		}
		jobs, err := q.QueueJobs(ctx, name)
		if err != nil {
			return err
		}
		named, err := q.QueueNamed(ctx, name)
		if err != nil {
			return err
		}
		if err := refusal(Uses{Jobs: jobs, Schedules: named.Schedules, Batches: named.Batches}); err != nil {
			return err
		}
		row, err := q.QueueRemoving(ctx, name)
		queue = newQueue(row)
		return err
	})
	return queue, err
}
