package batchstore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apidb/operationstore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/nullable"
	"github.com/jobweaver/jobweaver/shared/pgpool"
)

// NewBatch is a valid request for a batch.
type NewBatch struct {
	ID          uuid.UUID // UUIDv7
	Request     apibody.Batch
	Jobs        []jobstore.NewJob // of its owner, each with the batch's id
	RequestHash []byte            // stored with an idempotency key
	Graph       []apibody.FlowJob // of a flow; nil: the batch is none
}

// Created is the result of a request for a batch.
type Created struct {
	ID       uuid.UUID
	Status   Status
	Jobs     []jobstore.Accepted // none of a repeated request
	Replayed bool
	Graph    []apibody.FlowJob // of a flow
}

// Create stores a batch with its jobs: all of them or, with an error as of jobstore's InsertAllJobs, nothing. For a
// known idempotency key it returns the known batch, or apidb.ErrConflict.
func (s *Store) Create(ctx context.Context, entry *apidb.Audit, asked NewBatch) (made Created, err error) {
	for range jobstore.InsertTries {
		err = apidb.AuditedTx(ctx, s.db, entry, func(q *gen.Queries, entry *apidb.Audit) error {
			var err error
			if made, err = create(ctx, q, asked); err == nil && entry != nil {
				entry.SetSubject(asked.Request.OwnerID, "batch/"+made.ID.String())
				for _, job := range made.Jobs {
					entry.JobIDs = append(entry.JobIDs, job.JobID)
				}
			}
			return err
		})
		if !errors.Is(err, jobstore.ErrCameBetween) {
			break
		}
	}
	if err != nil {
		return Created{}, apidb.Classify("create batch", err)
	}
	s.jobs.CountAccepted(asked.Jobs[:len(made.Jobs)], made.Jobs)
	return made, nil
}

func create(ctx context.Context, q *gen.Queries, asked NewBatch) (Created, error) {
	made := Created{ID: asked.ID, Status: Open, Graph: asked.Graph}
	req := &asked.Request
	p := gen.BatchInsertParams{
		BatchID: asked.ID, OwnerID: req.OwnerID, Name: nullable.Text(req.Name), OnComplete: req.OnComplete,
		OnFailure: req.OnFailure, IdempotencyKey: nullable.Text(req.IdempotencyKey), ExpiresAt: req.ExpiresAt,
	}
	if req.IdempotencyKey != "" {
		p.RequestHash = asked.RequestHash
	}
	if asked.Graph != nil {
		var err error
		if p.Graph, err = json.Marshal(asked.Graph); err != nil {
			return made, fmt.Errorf("write graph: %w", err)
		}
	}
	inserted, err := q.BatchInsert(ctx, p)
	if err != nil {
		return made, err
	}
	if len(inserted) == 0 {
		return known(ctx, q, asked)
	}
	if made.Jobs, err = jobstore.InsertAllInTx(ctx, q, asked.Jobs, asked.Graph != nil); err != nil {
		return made, err
	}
	if req.Closed {
		made.Status = Running
		if _, err := q.BatchClose(ctx, gen.BatchCloseParams{BatchID: asked.ID}); err != nil {
			return made, err
		}
	}
	return made, q.BatchesChanged(ctx)
}

// Known returns the batch that an earlier request with the same idempotency key has made, or apidb.ErrConflict.
// Without one nothing is Replayed.
func (s *Store) Known(ctx context.Context, asked NewBatch) (made Created, err error) {
	if asked.Request.IdempotencyKey == "" {
		return made, nil
	}
	err = s.db.Tx(ctx, func(q *gen.Queries) error {
		if made, err = known(ctx, q, asked); err != nil {
			return err
		}
		return q.AwaitReplicas(ctx) // a repeated response promises as much as the first one
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return Created{}, nil
	}
	return made, apidb.Classify("look for a batch", err)
}

func known(ctx context.Context, q *gen.Queries, asked NewBatch) (Created, error) {
	row, err := q.BatchOfKey(ctx, gen.BatchOfKeyParams{
		OwnerID: asked.Request.OwnerID, IdempotencyKey: asked.Request.IdempotencyKey,
	})
	if err == nil && !bytes.Equal(row.RequestHash, asked.RequestHash) {
		err = apidb.ErrConflict
	}
	if err != nil {
		return Created{}, err
	}
	graph, err := readGraph(row.BatchID, row.Graph)
	return Created{ID: row.BatchID, Status: Status(row.Status), Replayed: true, Graph: graph}, err
}

// Close closes an open batch of the owner, and returns its state. A batch that is closed already stays as it is.
func (s *Store) Close(ctx context.Context, entry *apidb.Audit, owner apidb.Owner, id uuid.UUID) (Status, error) {
	var status Status
	err := apidb.AuditedTx(ctx, s.db, entry, func(q *gen.Queries, entry *apidb.Audit) error {
		if err := q.BatchHold(ctx, jobstore.BatchLock(id)); err != nil {
			return err
		}
		if _, err := q.BatchClose(ctx, gen.BatchCloseParams{BatchID: id, Owner: owner.Filter()}); err != nil {
			return err
		}
		found, err := q.BatchByID(ctx, gen.BatchByIDParams{BatchID: id, Owner: owner.Filter()})
		if err != nil {
			return err
		}
		status = Status(found.Batch.Status)
		entry.SetSubject(found.Batch.OwnerID, "batch/"+id.String())
		return q.BatchesChanged(ctx)
	})
	return status, none(err)
}

// Cancel closes a batch of the owner and cancels all of its jobs, by an operation, whose id it returns. It refuses a
// batch that has ended. The batch is closed before the operation begins, which covers the jobs accepted before it. A
// retry is aborted, which would go on to run jobs again that had ended when the operation came to them.
func (s *Store) Cancel(
	ctx context.Context, entry *apidb.Audit, owner apidb.Owner, id uuid.UUID, by string,
) (operation uuid.UUID, err error) {
	if _, err := s.Close(ctx, nil, owner, id); err != nil {
		return uuid.Nil, err
	}
	return s.operate(ctx, entry, owner, id, s.newOperation(owner, id, by, jobevent.CommandCancel),
		func(q *gen.Queries, batch *gen.Batch, _ uuid.UUID) error {
			if batch.FinishedAt != nil {
				return ended(batch)
			}
			if batch.OperationID != nil {
				if _, err := q.OperationAbort(ctx, gen.OperationAbortParams{OperationID: *batch.OperationID}); err != nil {
					return err
				}
			}
			if batch.Retry != nil {
				return q.FlowRetryLeft(ctx, gen.FlowRetryLeftParams{BatchID: id})
			}
			return nil
		})
}

// Retry runs the failed and cancelled jobs of a batch of the owner again, by an operation, whose id it returns. If the
// batch has ended, it goes on, and ends once more. A completed batch is refused.
func (s *Store) Retry(
	ctx context.Context, entry *apidb.Audit, owner apidb.Owner, id uuid.UUID, by string,
) (operation uuid.UUID, err error) {
	return s.operate(ctx, entry, owner, id, s.newOperation(owner, id, by, jobevent.CommandRetry),
		func(q *gen.Queries, batch *gen.Batch, operation uuid.UUID) error {
			if batch.Graph != nil {
				return apierror.New(apierror.InvalidStateTransition,
					"the batch is a flow: retry it as a flow, so that its jobs run again in their order")
			}
			if Status(batch.Status) == Completed {
				return ended(batch)
			}
			if batch.FinishedAt != nil {
				return q.BatchReopen(ctx, gen.BatchReopenParams{BatchID: id, OperationID: operation})
			}
			return q.BatchDelay(ctx, gen.BatchDelayParams{BatchID: id, OperationID: operation})
		})
}

func ended(batch *gen.Batch) error {
	return apierror.New(apierror.InvalidStateTransition, "the batch is %s", batch.Status)
}

// newOperation returns a command for the jobs of a batch in some states; none: all whose state allows it.
func (s *Store) newOperation(
	owner apidb.Owner, id uuid.UUID, by, command string, states ...jobstate.Status,
) operationstore.NewOperation {
	return operationstore.NewOperation{
		ID: s.db.NewID(), By: by, Whose: owner,
		Request: apibody.Operation{Command: command, Filter: &apibody.Filter{BatchID: &id, Status: states}},
	}
}

// operate stores an operation after a change of the batch, which is locked.
func (s *Store) operate(
	ctx context.Context, entry *apidb.Audit, owner apidb.Owner, id uuid.UUID, asked operationstore.NewOperation,
	change func(q *gen.Queries, batch *gen.Batch, operation uuid.UUID) error,
) (uuid.UUID, error) {
	err := apidb.AuditedTx(ctx, s.db, entry, func(q *gen.Queries, entry *apidb.Audit) error {
		found, err := q.BatchHeld(ctx, gen.BatchHeldParams{BatchID: id, Owner: owner.Filter()})
		if err != nil {
			return err
		}
		entry.SetSubject(found.Batch.OwnerID, "batch/"+id.String())
		if err := change(q, &found.Batch, asked.ID); err != nil {
			return err
		}
		return s.operations.InsertInTx(ctx, q, asked)
	})
	return asked.ID, none(err)
}

// none turns the absence of a row into ErrNone, and classifies other errors.
func none(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return ErrNone
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("change batch: %w", pgpool.Classify(err))
}
