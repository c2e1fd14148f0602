package schedulerdb

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobevent/emit"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/internal/gen"
)

// Restored is the store as it was restored from a backup, with the queries that correct what differs from the API's
// database then. No function may run meanwhile.
type Restored struct{ s *Store }

// Restored is for jobweaver after-restore.
func (s *Store) Restored() Restored { return Restored{s} }

// RestoredJob is how far a job has come.
type RestoredJob gen.RestoredJobsRow

// Jobs returns the next jobs in the order of their ids.
func (r Restored) Jobs(ctx context.Context, after uuid.UUID, limit int) (jobs []RestoredJob, err error) {
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

// Accepted returns jobs as the API accepted them, as far as that is known, in the form that apidb inserts.
func (r Restored) Accepted(ctx context.Context, ids []uuid.UUID) (jobs json.RawMessage, err error) {
	err = r.s.tx(ctx, func(q *gen.Queries) error {
		jobs, err = q.RestoredAccepted(ctx, ids)
		return err
	})
	return jobs, err
}

// Adopt brings jobs to the state of the last status that the scheduler published and the API received, and returns the
// ids of those that it has changed. asked is what the API has of each job, which may have been changed. cancels are the
// instants since which the API waits for a cancel; zero: it does not.
func (r Restored) Adopt(
	ctx context.Context, words []json.RawMessage, asked []jobevent.Created, cancels []time.Time,
) (adopted []uuid.UUID, err error) {
	p := gen.RestoredAdoptParams{Words: words, CancelRequestedAts: cancels, Grace: callbackGrace}
	for i := range asked {
		text, err := jobevent.Encode(&asked[i])
		if err != nil {
			return nil, fmt.Errorf("write what job %s asks for: %w", asked[i].JobID, err)
		}
		p.AskedFors = append(p.AskedFors, text)
	}
	err = r.s.tx(ctx, func(q *gen.Queries) error {
		adopted, err = q.RestoredAdopt(ctx, p)
		return err
	})
	return adopted, err
}

// Cancel cancels jobs that the API does not have any more, if they have not ended.
func (r Restored) Cancel(ctx context.Context, ids []uuid.UUID) (cancelled int64, err error) {
	err = r.s.tx(ctx, func(q *gen.Queries) error {
		cancelled, err = q.RestoredCancel(ctx, ids)
		return err
	})
	return cancelled, err
}

// Snapshots returns the whole state of jobs.
func (r Restored) Snapshots(ctx context.Context, ids []uuid.UUID) (effects emit.Effects, err error) {
	err = r.s.tx(ctx, func(q *gen.Queries) error {
		effects.Jobs, err = snapshots(ctx, q, ids)
		return err
	})
	return effects, err
}

// Controls returns the controls that are in force, or were.
func (r Restored) Controls(ctx context.Context) (kept []jobevent.Control, err error) {
	err = r.s.tx(ctx, func(q *gen.Queries) error {
		kept, err = readControls(ctx, q)
		return err
	})
	return kept, err
}
