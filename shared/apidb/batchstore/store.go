// Package batchstore stores batches, ends them when their jobs have ended, and makes the jobs that follow them.
//
// Why a sweep ends batches: docs/decisions/groups.md#a-batch-ends-by-a-sweep-once
package batchstore

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/readcache"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apidb/operationstore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/nullable"
	"github.com/jobweaver/jobweaver/shared/sealing"
)

// Store is safe for concurrent use. Its errors are classified as those of apidb.Store are.
type Store struct {
	db         *apidb.Store
	q          *gen.Queries
	jobs       *jobstore.Store
	operations *operationstore.Store
	live       readcache.Caches[uuid.UUID, Counts] // of batches that have not ended

	last uuid.UUID // of the sweep before, which only one goroutine does
}

// New makes the store on a database.
func New(db *apidb.Store, jobs *jobstore.Store, operations *operationstore.Store) *Store {
	return &Store{db: db, q: db.Queries(), jobs: jobs, operations: operations}
}

// ErrNone is returned for an id that is not the id of a batch of the owner.
var ErrNone error = apierror.New(apierror.BatchNotFound, "there is no such batch")

// Status is how far a batch has come.
type Status string

// The states of a batch. An open batch takes jobs. A running one is closed, and some of its jobs have not ended. All
// others have ended: COMPLETED if each job has completed; else EXPIRED if it had not ended by its expiresAt; else
// FAILED if a job has failed; else CANCELLED.
const (
	Open      Status = "OPEN"
	Running   Status = "RUNNING"
	Completed Status = "COMPLETED"
	Failed    Status = "FAILED"
	Cancelled Status = "CANCELLED"
	Expired   Status = "EXPIRED"
)

// Statuses lists every state.
func Statuses() []Status { return []Status{Open, Running, Completed, Failed, Cancelled, Expired} }

// Counts are the jobs of a batch by state.
type Counts map[jobstate.Status]int64

// NoJobs returns the counts of no jobs, with each state.
func NoJobs() Counts {
	counts := Counts{}
	for _, state := range jobstate.All() {
		counts[state] = 0
	}
	return counts
}

// Total is how many jobs there are.
func (c Counts) Total() (n int64) {
	for _, jobs := range c {
		n += jobs
	}
	return n
}

// Ended is how many of the jobs have ended.
func (c Counts) Ended() int64 {
	return c[jobstate.Completed] + c[jobstate.Failed] + c[jobstate.Cancelled]
}

// Percent is how many of a hundred jobs have ended, rounded down; 0: there are no jobs.
func (c Counts) Percent() int64 { return c.Ended() * 100 / max(c.Total(), 1) }

// status returns how a batch has ended whose jobs have all ended.
func (c Counts) status(expired bool) Status {
	switch {
	case expired:
		return Expired
	case c[jobstate.Failed] > 0:
		return Failed
	case c[jobstate.Cancelled] > 0:
		return Cancelled
	}
	return Completed
}

// Batch is a batch and its progress.
type Batch struct {
	ID             uuid.UUID
	OwnerID        string
	Name           string
	Status         Status
	CreatedAt      time.Time
	ClosedAt       *time.Time
	ExpiresAt      *time.Time
	ExpiredAt      *time.Time // what was waiting has been cancelled since
	FinishedAt     *time.Time
	Counts         Counts          // nil in a list, if the batch has not ended; not to be changed
	OnComplete     json.RawMessage // perhaps sealed; nil in a list
	OnFailure      json.RawMessage
	IdempotencyKey string            // empty in a list, and if the request had none
	FollowUpID     *uuid.UUID        // the job that was made at the end
	FollowUpError  string            // why none could be made
	Graph          []apibody.FlowJob // of a flow; nil in a list, and if the batch is none
	Run            int32             // of a flow, from 1 on; 0 in a list
	EarlierRuns    []EarlierRun      // of a flow, the last few; nil in a list
}

// Finished reports whether the batch has ended.
func (b *Batch) Finished() bool { return b.FinishedAt != nil }

// Places of the sealed job requests of a batch.
func placeOf(id uuid.UUID, member string) sealing.Place {
	return sealing.OfJob(id, sealing.Field(member))
}

// Seal seals the request of a job that follows the batch.
func Seal(sealer *sealing.Sealer, id uuid.UUID, member string, job json.RawMessage) json.RawMessage {
	return sealer.Seal(placeOf(id, member), job)
}

// OpenFollowUps opens the sealed requests, and returns the members that cannot be opened, which are null then.
func (b *Batch) OpenFollowUps(sealer *sealing.Sealer) (sealed []string) {
	for _, of := range []struct {
		member string
		job    *json.RawMessage
	}{{onComplete, &b.OnComplete}, {onFailure, &b.OnFailure}} {
		plain, err := sealer.Open(placeOf(b.ID, of.member), *of.job)
		if *of.job = plain; err != nil {
			sealed = append(sealed, of.member)
		}
	}
	return sealed
}

// The members of a batch that are requests of jobs.
const (
	onComplete = "onComplete"
	onFailure  = "onFailure"
)

// Get returns one of the owner's batches, or ErrNone.
func (s *Store) Get(ctx context.Context, owner apidb.Owner, id uuid.UUID) (Batch, error) {
	found, err := s.q.BatchByID(ctx, gen.BatchByIDParams{BatchID: id, Owner: owner.Filter()})
	if err != nil {
		return Batch{}, none(fmt.Errorf("get batch: %w", err))
	}
	batch, err := newBatch(found.Batch)
	if err != nil || batch.Finished() {
		return batch, err
	}
	// Readers share a count of many jobs, which is made at the expense of the batch's owner.
	batch.Counts, err = s.live.Of(id).GetRarely(ctx, 0, Counts.Total, func(ctx context.Context) (Counts, error) {
		return counts(apidb.WithCaller(ctx, batch.OwnerID), s.q, id)
	})
	return batch, apidb.Classify("count the jobs of a batch", err)
}

func counts(ctx context.Context, q *gen.Queries, id uuid.UUID) (Counts, error) {
	rows, err := q.BatchCounts(ctx, id)
	if err != nil {
		return nil, err
	}
	counts := NoJobs()
	for _, row := range rows {
		counts[jobstate.Status(row.Status)] = row.Jobs
	}
	return counts, nil
}

// Filter chooses batches. An empty field chooses all.
type Filter struct {
	Flows   bool // flows in place of other batches
	Status  Status
	OwnerID string
	Before  uuid.UUID // batches after this one in the list, that is older ones
	Limit   int
}

// List returns the owner's newest matching batches, without the counts of those that have not ended; more reports that
// others follow.
func (s *Store) List(ctx context.Context, owner apidb.Owner, f Filter) (batches []Batch, more bool, err error) {
	if f.OwnerID != "" {
		if !owner.Sees(f.OwnerID) {
			return nil, false, nil
		}
		owner = apidb.OwnerOf(f.OwnerID)
	}
	if f.Before == uuid.Nil {
		f.Before = uuid.Max
	}
	rows, err := s.list(ctx, owner, f)
	if err != nil {
		return nil, false, apidb.Classify("list batches", err)
	}
	rows, more = apidb.Cut(rows, f.Limit)
	batches = make([]Batch, len(rows))
	for i, row := range rows {
		if batches[i], err = newBatch(gen.Batch{
			BatchID: row.BatchID, OwnerID: row.OwnerID, Name: row.Name, CreatedAt: row.CreatedAt, ExpiresAt: row.ExpiresAt,
			Status: row.Status, ClosedAt: row.ClosedAt, ExpiredAt: row.ExpiredAt, FinishedAt: row.FinishedAt,
			Counts: row.Counts, FollowUpID: row.FollowUpID, FollowUpError: row.FollowUpError,
		}); err != nil {
			return nil, false, err
		}
	}
	return batches, more, nil
}

func (s *Store) list(ctx context.Context, owner apidb.Owner, f Filter) ([]gen.BatchesListRow, error) {
	status := nullable.Text(string(f.Status))
	if owner.IsEveryone() {
		return s.q.BatchesList(ctx, gen.BatchesListParams{
			BeforeID: f.Before, Status: status, MaxBatches: int32(f.Limit + 1), IsFlow: f.Flows,
		})
	}
	owned, err := s.q.BatchesListOwned(ctx, gen.BatchesListOwnedParams{
		Owner: owner.ID(), BeforeID: f.Before, Status: status, MaxBatches: int32(f.Limit + 1), IsFlow: f.Flows,
	})
	rows := make([]gen.BatchesListRow, len(owned))
	for i := range owned {
		rows[i] = gen.BatchesListRow(owned[i])
	}
	return rows, err
}

// Ended returns those of the batches that have ended, for requests that wait for them.
func (s *Store) Ended(ctx context.Context, ids []uuid.UUID) ([]uuid.UUID, error) {
	ended, err := s.q.BatchesEnded(ctx, ids)
	return ended, apidb.Classify("find ended batches", err)
}

func newBatch(row gen.Batch) (Batch, error) {
	batch := Batch{
		ID: row.BatchID, OwnerID: row.OwnerID, Name: nullable.Value(row.Name), Status: Status(row.Status),
		CreatedAt: row.CreatedAt, ClosedAt: row.ClosedAt, ExpiresAt: row.ExpiresAt, ExpiredAt: row.ExpiredAt,
		FinishedAt: row.FinishedAt, OnComplete: row.OnComplete, OnFailure: row.OnFailure, FollowUpID: row.FollowUpID,
		FollowUpError: nullable.Value(row.FollowUpError), Run: row.Run, IdempotencyKey: nullable.Value(row.IdempotencyKey),
	}
	var err error
	if row.EarlierRuns != nil {
		if err := json.Unmarshal(row.EarlierRuns, &batch.EarlierRuns); err != nil {
			return batch, fmt.Errorf("read the earlier runs of flow %s: %w", batch.ID, err)
		}
	}
	if batch.Graph, err = readGraph(batch.ID, row.Graph); err != nil || row.Counts == nil {
		return batch, err
	}
	if err := json.Unmarshal(row.Counts, &batch.Counts); err != nil {
		return batch, fmt.Errorf("read the counts of batch %s: %w", batch.ID, err)
	}
	return batch, nil
}
