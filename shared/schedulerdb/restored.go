package schedulerdb

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/emit"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/internal/gen"
)

// Restored is a store that was restored from a backup. Its methods correct the differences between it and the API's
// database. No function may run meanwhile.
type Restored struct{ s *Store }

// Restored returns the store's methods for jobweaver after-restore.
func (s *Store) Restored() Restored { return Restored{s} }

// RestoredJob has the versions and numbers of a job, by which after-restore compares it with the API's.
type RestoredJob gen.RestoredJobsRow

// Jobs returns up to limit jobs behind the id after, in the order of their ids.
func (r Restored) Jobs(ctx context.Context, after uuid.UUID, limit int) (jobs []RestoredJob, err error) {
	if after == uuid.Nil {
		if err := r.s.leaveAll(ctx); err != nil {
			return nil, err
		}
	}
	err = r.s.tx(ctx, func(q *gen.Queries) error {
		rows, err := q.RestoredJobs(ctx, gen.RestoredJobsParams{AfterID: after, MaxJobs: int32Of(limit)})
		jobs = make([]RestoredJob, len(rows))
		for i, row := range rows {
			jobs[i] = RestoredJob(row)
		}
		return err
	})
	return jobs, err
}

// Accepted returns jobs as the API accepted them, as far as the rows show it, in the form that apidb inserts.
func (r Restored) Accepted(ctx context.Context, ids []uuid.UUID) (jobs json.RawMessage, err error) {
	err = r.s.tx(ctx, func(q *gen.Queries) error {
		jobs, err = q.RestoredAccepted(ctx, ids)
		return err
	})
	return jobs, err
}

// Adopt brings jobs to the state of the last status that the scheduler published and the API received, and returns the
// ids of the jobs that it has changed. requests are the API's requests, which may have been changed. cancels are the
// instants since which the API waits for a cancel; zero: it does not.
func (r Restored) Adopt(
	ctx context.Context, statuses []json.RawMessage, requests []jobevent.Created, cancels []time.Time,
) (adopted []uuid.UUID, err error) {
	fill := gen.RestoredFillParams{Snapshots: statuses}
	for i := range requests {
		text, err := jobevent.Encode(&requests[i])
		if err != nil {
			return nil, fmt.Errorf("encode request of job %s: %w", requests[i].JobID, err)
		}
		fill.Requests = append(fill.Requests, text)
	}
	ids := createdIDs(requests)
	if err := r.s.leaveCohorts(ctx, ids); err != nil { // in which Ingest has stored jobs that the backup lacked
		return nil, err
	}
	err = r.s.tx(ctx, func(q *gen.Queries) error {
		if err := reviveJobs(ctx, q, ids); err != nil {
			return err
		}
		adopted, err = q.RestoredAdopt(ctx, gen.RestoredAdoptParams{
			Snapshots: statuses, CancelRequestedAts: cancels, Grace: callbackGrace,
		})
		if err != nil {
			return err
		}
		fill.Adopted = adopted
		return q.RestoredFill(ctx, fill)
	})
	return adopted, err
}

// Cancel cancels jobs that have not ended and that the API does not have any more.
func (r Restored) Cancel(ctx context.Context, ids []uuid.UUID) (cancelled int64, err error) {
	if err := r.s.leaveCohorts(ctx, ids); err != nil {
		return 0, err
	}
	err = r.s.tx(ctx, func(q *gen.Queries) error {
		cancelled, err = q.RestoredCancel(ctx, ids)
		return err
	})
	return cancelled, err
}

// Snapshots returns the current state of jobs.
func (r Restored) Snapshots(ctx context.Context, ids []uuid.UUID) (effects emit.Effects, err error) {
	err = r.s.tx(ctx, func(q *gen.Queries) error {
		effects.Jobs, err = snapshots(ctx, q, ids)
		return err
	})
	return effects, err
}

// Controls returns all stored controls, of which some may have been removed.
func (r Restored) Controls(ctx context.Context) (kept []jobevent.Control, err error) {
	err = r.s.tx(ctx, func(q *gen.Queries) error {
		kept, err = readControls(ctx, q)
		return err
	})
	return kept, err
}
