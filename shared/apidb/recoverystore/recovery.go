package recoverystore

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/apidb/statusstore"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// RestoredJob is the state of a job by its stored statuses.
type RestoredJob gen.RestoredJobsRow

// Jobs returns the next jobs in the order of their ids.
func (s *Store) Jobs(ctx context.Context, after uuid.UUID, limit int) ([]RestoredJob, error) {
	rows, err := s.q.RestoredJobs(ctx, gen.RestoredJobsParams{AfterID: after, MaxJobs: int32(limit)})
	jobs := make([]RestoredJob, len(rows))
	for i, row := range rows {
		jobs[i] = RestoredJob(row)
	}
	return jobs, apidb.Classify("read restored jobs", err)
}

// KnownUntil returns the latest instant that the database has recorded.
func (s *Store) KnownUntil(ctx context.Context) (time.Time, error) {
	at, err := s.q.RestoredUntil(ctx)
	return at, apidb.Classify("read how far the database goes", err)
}

// RestoredStatus is the stored status of a job.
type RestoredStatus struct {
	JobID             uuid.UUID
	JSON              json.RawMessage
	CancelRequestedAt time.Time // zero: no cancel was requested
}

// Statuses returns the stored statuses of these jobs.
func (s *Store) Statuses(ctx context.Context, ids []uuid.UUID) ([]RestoredStatus, error) {
	rows, err := s.q.RestoredStatuses(ctx, ids)
	statuses := make([]RestoredStatus, len(rows))
	for i, row := range rows {
		statuses[i] = RestoredStatus{row.JobID, row.Status, row.CancelRequestedAt}
		if statuses[i].CancelRequestedAt.Year() <= 1 {
			statuses[i].CancelRequestedAt = time.Time{}
		}
	}
	return statuses, apidb.Classify("read statuses of jobs", err)
}

// Accepted returns these jobs as they were accepted.
func (s *Store) Accepted(ctx context.Context, ids []uuid.UUID) ([]jobevent.Created, error) {
	rows, err := s.q.RestoredAccepted(ctx, ids)
	if err != nil {
		return nil, apidb.Classify("read accepted jobs", err)
	}
	return statusstore.CreatedOf(rows)
}

// Insert inserts jobs from the scheduler's rows, a JSON array of schedulerdb's. Reconcile asks for their statuses.
func (s *Store) Insert(ctx context.Context, jobs json.RawMessage) (int64, error) {
	n, err := s.q.RestoredInsert(ctx, jobs)
	return n, apidb.Classify("insert jobs that the scheduler has", err)
}

// ForgetStatuses deletes the stored statuses of jobs that have not ended. Reconcile asks the scheduler again.
func (s *Store) ForgetStatuses(ctx context.Context, ids []uuid.UUID) (int64, error) {
	n, err := s.q.RestoredForgetStatuses(ctx, ids)
	return n, apidb.Classify("forget statuses of jobs", err)
}

// Number raises the number of each job's next command above those that the scheduler has seen.
func (s *Store) Number(ctx context.Context, seen map[uuid.UUID]int32) (int64, error) {
	p := gen.RestoredNumbersParams{}
	for id, number := range seen {
		p.JobIDs, p.Numbers = append(p.JobIDs, id), append(p.Numbers, number)
	}
	n, err := s.q.RestoredNumbers(ctx, p)
	return n, apidb.Classify("number commands anew", err)
}

// Controls makes the two databases agree about controls, and reuses no version that the scheduler has seen. The newer
// version of a control counts, and reconcile publishes what the scheduler lacks. It returns how many controls
// differed.
func (s *Store) Controls(
	ctx context.Context, kept []jobevent.Control, orderNumber int64,
) (differed int64, err error) {
	err = s.db.Tx(ctx, func(q *gen.Queries) error {
		last, err := q.RestoredControlVersion(ctx)
		if err != nil {
			return err
		}
		newest := last
		for _, c := range kept {
			newest = max(newest, c.Version)
		}
		err = q.RestoredSequences(ctx, gen.RestoredSequencesParams{ControlVersion: newest, OrderNumber: orderNumber})
		if err != nil {
			return err
		}
		differed, err = controlsAgree(ctx, q, kept, last)
		return err
	})
	return differed, apidb.Classify("have controls agree", err)
}

func controlsAgree(
	ctx context.Context, q *gen.Queries, kept []jobevent.Control, last int64,
) (differed int64, err error) {
	var applied gen.RestoredControlsAppliedParams
	for i := range kept {
		c := &kept[i]
		applied.Kinds, applied.Names = append(applied.Kinds, string(c.Kind)), append(applied.Names, c.Name)
		applied.Versions = append(applied.Versions, c.Version)
		var n int64
		switch holds := c.Paused || c.MaxRunning != nil || c.StartsPerSecond != nil || c.Weight > 1 || c.Workers != ""; {
		case c.Version > last:
			p := gen.RestoredControlTakeParams{
				Kind: string(c.Kind), Name: c.Name, Version: c.Version, Paused: c.Paused, StartsPerSecond: c.StartsPerSecond,
			}
			if c.MaxRunning != nil {
				most := int32(*c.MaxRunning)
				p.MaxRunning = &most
			}
			if c.Weight > 1 {
				weight := int16(c.Weight)
				p.Weight = &weight
			}
			if c.Workers != "" {
				p.Workers = &c.Workers
			}
			n, err = q.RestoredControlTake(ctx, p)
		case holds: // if the API still has it, this changes nothing
			n, err = q.RestoredControlLift(ctx, gen.RestoredControlLiftParams{Kind: string(c.Kind), Name: c.Name})
		}
		if err != nil {
			return 0, err
		}
		differed += n
	}
	n, err := q.RestoredControlsApplied(ctx, applied)
	if err != nil {
		return 0, err
	}
	taken, err := q.RestoredQueues(ctx)
	return differed + n + taken, err
}
