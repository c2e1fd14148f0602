package operationstore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/idtime"
	"github.com/jobweaver/jobweaver/shared/apidb/joblist"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/nullable"
)

// ErrNoOperation is returned when there is no operation with this id.
var ErrNoOperation error = apierror.New(apierror.NotFound, "there is no such operation")

// OperationStatus is how far an operation has come.
type OperationStatus string

// An aborting operation stores no more commands and waits for the answers to those that it has stored.
const (
	OperationRunning   OperationStatus = "RUNNING"
	OperationAborting  OperationStatus = "ABORTING"
	OperationAborted   OperationStatus = "ABORTED"
	OperationCompleted OperationStatus = "COMPLETED"
)

// Operation is one command for many jobs, and its progress.
type Operation struct {
	ID         uuid.UUID
	Command    string
	RunAt      *time.Time // of a reschedule
	By         string
	Filter     json.RawMessage // a apibody.Filter; nil: a list
	Listed     int             // the number of jobs on the list
	Status     OperationStatus
	CreatedAt  time.Time
	UpdatedAt  time.Time
	FinishedAt *time.Time
	Walked     bool // all jobs have been handled
	Matched    int64
	Asked      int64 // matched jobs for which a command was stored
	Applied    int64
	Refused    int64            // by the scheduler
	Skipped    int64            // matched jobs for which no command was stored
	Reasons    map[string]int64 // jobs refused or skipped, by reason
	Skips      []Skip           // the first of these jobs; nil in a list
}

// Ended reports whether the operation is over.
func (o Operation) Ended() bool { return o.FinishedAt != nil }

// Skip is a job that an operation left out, and the reason.
type Skip struct {
	JobID  uuid.UUID
	Reason string
}

// NewOperation is a valid request for an operation.
type NewOperation struct {
	ID          uuid.UUID // UUIDv7
	Request     apibody.Operation
	RequestHash []byte // stored with an idempotency key
	By          string
	Audit       *apidb.Audit
	Whose       apidb.Owner // it handles only jobs of this owner, and only this owner sees it
}

// InsertOperation stores an operation and wakes bulk. For a known idempotency key it returns the known operation, or
// ErrConflict.
func (s *Store) InsertOperation(ctx context.Context, asked NewOperation) (op Operation, replayed bool, err error) {
	by, err := s.decideOperation(ctx, &asked)
	if err != nil {
		return op, false, apidb.Classify("decide how an operation searches", err)
	}
	p, err := asked.params(by)
	if err != nil {
		return op, false, err
	}
	err = apidb.AuditedTx(ctx, s.db, asked.Audit, func(q *gen.Queries, _ *apidb.Audit) error {
		inserted, err := q.OperationInsert(ctx, p)
		if err != nil {
			return err
		}
		if replayed = len(inserted) == 0; !replayed {
			if err := s.checkLimit(ctx, q, asked.Whose); err != nil {
				return err
			}
			if err := q.OperationsWake(ctx); err != nil {
				return err
			}
			op, err = operation(ctx, q, asked.Whose, asked.ID)
			return err
		}
		known, err := q.OperationOfKey(ctx, gen.OperationOfKeyParams{
			Owner: asked.Whose.Filter(), IdempotencyKey: asked.Request.IdempotencyKey,
		})
		if err != nil {
			return err
		}
		if !bytes.Equal(known.RequestHash, asked.RequestHash) {
			return apidb.ErrConflict
		}
		op, err = operation(ctx, q, asked.Whose, known.OperationID)
		return err
	})
	if err != nil {
		return Operation{}, false, apidb.Classify("insert operation", err)
	}
	return op, replayed, nil
}

// InsertInTx stores an operation whose filter has no search, in a transaction that makes other changes, too, and wakes
// bulk.
func (s *Store) InsertInTx(ctx context.Context, q *gen.Queries, asked NewOperation) error {
	p, err := asked.params("")
	if err != nil {
		return err
	}
	if _, err := q.OperationInsert(ctx, p); err != nil {
		return err
	}
	if err := s.checkLimit(ctx, q, asked.Whose); err != nil {
		return err
	}
	return q.OperationsWake(ctx)
}

func (o *NewOperation) params(by joblist.SearchBy) (p gen.OperationInsertParams, err error) {
	req := &o.Request
	p = gen.OperationInsertParams{
		OperationID: o.ID, Owner: o.Whose.Filter(), Command: req.Command, RunAt: req.When.RunAt, ByWhom: o.By,
		IdempotencyKey: nullable.Text(req.IdempotencyKey),
	}
	if req.IdempotencyKey != "" {
		p.RequestHash = o.RequestHash
	}
	if req.Command == jobevent.CommandReschedule && req.When.RunAt == nil {
		ms := req.When.Delay.Milliseconds()
		p.DelayMs = &ms
	}
	if req.Filter == nil {
		p.JobIDs = slices.Clone(req.JobIDs)
		slices.SortFunc(p.JobIDs, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
		return p, nil
	}
	if p.Filter, err = json.Marshal(operationFilter{*req.Filter, by}); err != nil {
		return p, fmt.Errorf("write filter: %w", err)
	}
	return p, nil
}

// Operation returns one of the owner's operations, or ErrNoOperation.
func (s *Store) Operation(ctx context.Context, owner apidb.Owner, id uuid.UUID) (Operation, error) {
	return operation(ctx, s.q, owner, id)
}

func operation(ctx context.Context, q *gen.Queries, owner apidb.Owner, id uuid.UUID) (Operation, error) {
	row, err := q.OperationByID(ctx, gen.OperationByIDParams{OperationID: id, Owner: owner.Filter()})
	if errors.Is(err, pgx.ErrNoRows) {
		return Operation{}, ErrNoOperation
	}
	if err != nil {
		return Operation{}, apidb.Classify("get operation", err)
	}
	op, err := newOperation(gen.OperationsListRow(row))
	if err != nil {
		return op, err
	}
	skips, err := q.OperationSkips(ctx, id)
	for _, skip := range skips {
		op.Skips = append(op.Skips, Skip(skip))
	}
	return op, apidb.Classify("get skipped jobs", err)
}

// ListOperations returns the owner's newest operations before one (uuid.Nil: all), without skipped jobs; more reports
// that others follow.
func (s *Store) ListOperations(
	ctx context.Context, owner apidb.Owner, before uuid.UUID, limit int,
) (ops []Operation, more bool, err error) {
	if before == uuid.Nil {
		before = uuid.Max
	}
	rows, err := s.listOperations(ctx, owner, before, limit+1)
	if err != nil {
		return nil, false, apidb.Classify("list operations", err)
	}
	rows, more = apidb.Cut(rows, limit)
	ops = make([]Operation, len(rows))
	for i, row := range rows {
		if ops[i], err = newOperation(row); err != nil {
			return nil, false, err
		}
	}
	return ops, more, nil
}

func (s *Store) listOperations(ctx context.Context, owner apidb.Owner, before uuid.UUID, most int) (
	[]gen.OperationsListRow, error,
) {
	if owner.IsEveryone() {
		return s.q.OperationsList(ctx, gen.OperationsListParams{BeforeID: before, MaxOperations: int32(most)})
	}
	owned, err := s.q.OperationsListOwned(ctx, gen.OperationsListOwnedParams{
		Owner: owner.ID(), BeforeID: before, MaxOperations: int32(most),
	})
	rows := make([]gen.OperationsListRow, len(owned))
	for i := range owned {
		rows[i] = gen.OperationsListRow(owned[i])
	}
	return rows, err
}

// AbortOperation aborts a running operation of the owner, and returns it as it is then.
func (s *Store) AbortOperation(
	ctx context.Context, entry *apidb.Audit, owner apidb.Owner, id uuid.UUID,
) (Operation, error) {
	err := apidb.AuditedTx(ctx, s.db, entry, func(q *gen.Queries, entry *apidb.Audit) error {
		owners, err := q.OperationAbort(ctx, gen.OperationAbortParams{OperationID: id, Owner: owner.Filter()})
		if err != nil {
			return err
		}
		for _, of := range owners { // none, if it does not run any more
			entry.SetOwner(of)
		}
		return q.OperationsWake(ctx)
	})
	if err != nil {
		return Operation{}, apidb.Classify("abort operation", err)
	}
	return s.Operation(ctx, owner, id)
}

// EndedOperations returns those of the operations that have ended, for requests that wait for them.
func (s *Store) EndedOperations(ctx context.Context, ids []uuid.UUID) ([]uuid.UUID, error) {
	ended, err := s.q.OperationsEnded(ctx, ids)
	return ended, apidb.Classify("find ended operations", err)
}

// UnfinishedOperations returns one operation of each owner, then a second one of each, and so on; those after one
// come first.
func (s *Store) UnfinishedOperations(ctx context.Context, after uuid.UUID, limit int) ([]uuid.UUID, error) {
	ids, err := s.q.OperationsUnfinished(ctx, gen.OperationsUnfinishedParams{AfterID: after, MaxOperations: int32(limit)})
	return ids, apidb.Classify("find unfinished operations", err)
}

// ForgetOperations deletes the operations that ended longer than age ago.
func (s *Store) ForgetOperations(ctx context.Context, age time.Duration) error {
	now, err := s.db.Now(ctx)
	if err != nil {
		return err
	}
	_, err = s.q.OperationsForget(ctx, gen.OperationsForgetParams{
		BeforeID: idtime.Before(now, age), FinishedBefore: now.Add(-age),
	})
	return apidb.Classify("forget operations", err)
}

func newOperation(row gen.OperationsListRow) (Operation, error) {
	op := Operation{
		ID: row.OperationID, Command: row.Command, RunAt: row.RunAt, By: row.ByWhom, Filter: row.Filter,
		Listed: int(row.Listed), Status: OperationStatus(row.Status), CreatedAt: row.CreatedAt, UpdatedAt: row.UpdatedAt,
		FinishedAt: row.FinishedAt, Walked: row.Walked, Matched: row.Matched, Asked: row.Asked, Applied: row.Applied,
		Refused: row.Refused, Skipped: row.Skipped,
	}
	if err := json.Unmarshal(row.Reasons, &op.Reasons); err != nil {
		return op, fmt.Errorf("read reasons of operation %s: %w", op.ID, err)
	}
	filter, err := readFilter(row.Filter)
	if err == nil && filter != nil {
		op.Filter, err = json.Marshal(filter.Filter) // without the chosen search
	}
	if err != nil {
		return op, fmt.Errorf("show filter of operation %s: %w", op.ID, err)
	}
	return op, nil
}
