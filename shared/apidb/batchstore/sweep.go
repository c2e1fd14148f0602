package batchstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apidb/schedulestore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/nullable"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/sealing"
)

const (
	// sweepMost is how many batches one sweep looks at, each with a few reads of an index.
	sweepMost = 500
	// sweepEvery is the time between two sweeps while a batch is closed that has not ended, and sweepNext that between
	// two parts of one.
	sweepEvery = time.Second
	sweepNext  = 100 * time.Millisecond

	// sweeper is the author of the commands of a sweep.
	sweeper = "cron"
)

// Swept is what to publish after a sweep.
type Swept struct {
	Jobs   []jobevent.Created
	Failed []error // of batches that could not be handled; the next sweep tries again
}

// Sweep looks at the next batches that are closed or may expire. It ends those whose jobs have all ended, and inserts
// the job that follows a batch in the transaction of its end; so of concurrent processes one inserts it. Of expired
// batches it cancels what waits. next is when the next sweep is due, at most idle.
func (s *Store) Sweep(ctx context.Context, rules schedulestore.Rules, idle time.Duration) (
	swept Swept, next time.Duration, err error,
) {
	due, err := s.q.BatchesDue(ctx, gen.BatchesDueParams{AfterID: s.last, MaxBatches: sweepMost})
	if err != nil {
		return swept, 0, apidb.Classify("look for batches to end", err)
	}
	next = min(idle, max(time.Duration(due.ExpiresIn*float64(time.Second)), sweepNext))
	if due.Closed > 0 {
		next = min(next, sweepEvery)
	}
	if s.last = due.LastID; due.Seen < sweepMost {
		s.last = uuid.Nil
	} else {
		next = min(next, sweepNext)
	}
	for _, id := range due.BatchIDs {
		job, err := s.settle(ctx, rules, id)
		if err != nil && ctx.Err() != nil {
			return swept, next, err
		}
		if err != nil {
			swept.Failed, next = append(swept.Failed, fmt.Errorf("batch %s: %w", id, err)), max(next, sweepEvery)
		}
		if job != nil {
			swept.Jobs = append(swept.Jobs, *job)
		}
	}
	return swept, next, nil
}

// settle expires or ends a batch, or cancels its waiting jobs, whichever is due. It returns the job that was inserted.
func (s *Store) settle(ctx context.Context, rules schedulestore.Rules, id uuid.UUID) (*jobevent.Created, error) {
	var end ending
	notify, done := s.db.BeginChange()
	defer done()
	err := s.db.RawTx(ctx, func(tx pgx.Tx) error {
		end = ending{tx: tx, q: gen.New(tx), db: s.db, store: s, rules: rules}
		if err := end.run(ctx, id); err != nil || !notify || end.job == nil {
			return err
		}
		return apidb.NotifyChange(ctx, end.q, apidb.ChangeStatus, []uuid.UUID{end.job.JobID})
	})
	if err != nil {
		return nil, apidb.Classify("end batch", err)
	}
	s.jobs.CountAccepted(end.jobs, end.accepted)
	if !end.cancels {
		return end.job, nil
	}
	return end.job, s.cancelWaiting(ctx, id, end.owner)
}

// cancelWaiting has the waiting jobs of an expired batch cancelled by an operation. The batch does not end before the
// operation has; if jobs wait then, such as one that ran and failed meanwhile, there is another one.
func (s *Store) cancelWaiting(ctx context.Context, id uuid.UUID, owner string) error {
	asked := s.newOperation(apidb.OwnerOf(owner), id, sweeper, jobevent.CommandCancel,
		jobstate.Scheduled, jobstate.Pending, jobstate.Queued, jobstate.Waiting, jobstate.Retrying)
	return s.db.Tx(ctx, func(q *gen.Queries) error {
		if err := q.BatchDelay(ctx, gen.BatchDelayParams{BatchID: id, OperationID: asked.ID}); err != nil {
			return err
		}
		return s.operations.InsertInTx(ctx, q, asked)
	})
}

// ending is the transaction that settles a batch.
type ending struct {
	tx    pgx.Tx
	q     *gen.Queries
	db    *apidb.Store
	store *Store
	rules schedulestore.Rules

	owner    string
	cancels  bool // waiting jobs are to be cancelled
	jobs     []jobstore.NewJob
	accepted []jobstore.Accepted
	job      *jobevent.Created // new
}

func (e *ending) run(ctx context.Context, id uuid.UUID) error {
	// A batch that is open may have submits under way, which an end of the joining must wait for.
	if err := e.q.BatchHold(ctx, jobstore.BatchLock(id)); err != nil {
		return err
	}
	rows, err := e.q.BatchLock(ctx, id)
	if err != nil {
		return err
	}
	if len(rows) == 0 { // open, or in the hands of another process
		_, err := e.q.BatchExpire(ctx, id)
		return err
	}
	row := rows[0].Batch
	live, err := e.q.BatchLive(ctx, gen.BatchLiveParams{BatchID: id, OperationID: row.OperationID})
	switch {
	case err != nil || live.Delayed:
		return err
	case row.Retry != nil:
		if expired, err := e.q.BatchExpire(ctx, id); err != nil || expired > 0 {
			return err
		}
		return e.store.retryNext(ctx, e.q, row, live.Live)
	case !live.Live:
		return e.end(ctx, row)
	case row.ExpiredAt == nil:
		_, err := e.q.BatchExpire(ctx, id)
		return err
	}
	e.owner, e.cancels = row.OwnerID, live.Waiting
	return nil
}

// end ends the batch, and inserts the job that follows it.
func (e *ending) end(ctx context.Context, row gen.Batch) error {
	batch, err := newBatch(row)
	if err != nil {
		return err
	}
	if batch.Counts, err = counts(ctx, e.q, batch.ID); err != nil {
		return err
	}
	if batch.Counts.Ended() < batch.Counts.Total() { // a job was retried since the look for one that has not ended
		return nil
	}
	now, err := e.q.Now(ctx)
	if err != nil {
		return err
	}
	batch.Status, batch.FinishedAt = batch.Counts.status(batch.ExpiredAt != nil), &now
	if batch.Graph != nil && batch.Status == Cancelled {
		states, err := states(ctx, e.q, batch.ID)
		if err != nil {
			return err
		}
		outside, err := outsideOf(ctx, e.q, batch.Graph)
		if err != nil {
			return err
		}
		if len(states) == len(batch.Graph) && onlySkips(batch.Graph, states, outside, batch.Counts[jobstate.Cancelled]) {
			batch.Status = Completed
		}
	}
	p := gen.BatchEndParams{BatchID: batch.ID, Status: string(batch.Status)}
	if p.Counts, err = json.Marshal(batch.Counts); err != nil {
		return fmt.Errorf("write counts: %w", err)
	}
	if err := e.follow(ctx, &batch, row.Round); err != nil {
		refused := (*apierror.Error)(nil)
		if !errors.As(err, &refused) {
			return err
		}
		p.FollowUpError = &refused.Message
	}
	if len(e.accepted) > 0 {
		p.FollowUpID = &e.accepted[0].JobID
	}
	return e.q.BatchEnd(ctx, p)
}

// follow inserts the job that follows the batch, if it has one. An *apierror.Error refuses the job for good.
func (e *ending) follow(ctx context.Context, batch *Batch, round int32) error {
	member, stored := onComplete, batch.OnComplete
	if batch.Status != Completed {
		member, stored = onFailure, batch.OnFailure
	}
	if stored == nil {
		return nil
	}
	plain, err := e.rules.Sealer.Open(placeOf(batch.ID, member), stored)
	if err != nil {
		return fmt.Errorf("open %s: %w", member, err) // its key may not have reached this process yet: tried again
	}
	req, err := FollowUp(plain, batch, e.rules)
	if err != nil {
		return err
	}
	e.jobs = []jobstore.NewJob{e.newJob(batch, req, round)}
	err = pgx.BeginFunc(ctx, e.tx, func(inner pgx.Tx) (err error) {
		e.accepted, err = jobstore.InsertInTx(ctx, gen.New(inner), e.jobs)
		return err
	})
	if err = pgpool.Classify(err); errors.Is(err, jobevent.ErrInvalid) {
		e.jobs, e.accepted = nil, nil
		return apierror.New(apierror.InvalidJobRequest, "the database refuses the job")
	}
	if err != nil {
		return fmt.Errorf("insert %s: %w", member, err)
	}
	if e.accepted[0].New() {
		created := e.accepted[0].Created(e.jobs[0])
		e.job = &created
	}
	return nil
}

// newJob returns the job that follows a batch. It carries the batch's end as its event, so that no second job can have
// it.
func (e *ending) newJob(batch *Batch, req jobspec.Request, round int32) jobstore.NewJob {
	id, traceID := e.db.NewIDAt(*batch.FinishedAt), uuid.New()
	copy(traceID[:6], id[:6]) // the same millisecond, so that it needs no entry in jobs_of_trace
	id = jobevent.JobID(id, e.rules.KeepTrace == nil || e.rules.KeepTrace(traceID))
	req.Payload = e.rules.Sealer.Seal(sealing.OfJob(id, sealing.Payload), req.Payload)
	return jobstore.NewJob{
		JobID: id, TraceID: traceID, Request: req, Whose: apidb.Everyone,
		EventSource: jobstore.BatchSource + batch.ID.String(), EventID: strconv.Itoa(int(round)),
	}
}

// FollowUp reads the request of a job that follows a batch, with the summary of the batch where its payload has
// {"$batch": "summary"}. An error that refuses it is an *apierror.Error.
func FollowUp(job json.RawMessage, batch *Batch, rules schedulestore.Rules) (jobspec.Request, error) {
	req, err := apibody.DecodeFollowUp(job, newSummary(batch))
	if err != nil {
		return req, err
	}
	req.OwnerID = batch.OwnerID
	rules.Defaults.FillIn(&req)
	return req, req.Validate(rules.Rules)
}

// summary is how a batch has ended, as the job that follows it gets it.
type summary struct {
	BatchID    uuid.UUID  `json:"batchId"`
	Name       *string    `json:"name"`
	Status     Status     `json:"status"`
	Total      int64      `json:"total"`
	Counts     Counts     `json:"counts"`
	CreatedAt  time.Time  `json:"createdAt"`
	ClosedAt   *time.Time `json:"closedAt"`
	ExpiredAt  *time.Time `json:"expiredAt"`
	FinishedAt *time.Time `json:"finishedAt"`
}

func newSummary(b *Batch) summary {
	return summary{
		BatchID: b.ID, Name: nullable.Text(b.Name), Status: b.Status, Total: b.Counts.Total(), Counts: b.Counts,
		CreatedAt: b.CreatedAt.UTC(), ClosedAt: inUTC(b.ClosedAt), ExpiredAt: inUTC(b.ExpiredAt),
		FinishedAt: inUTC(b.FinishedAt),
	}
}

func inUTC(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	at := t.UTC()
	return &at
}
