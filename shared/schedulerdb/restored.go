package schedulerdb

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/internal/gen"
)

// Restored is the store as it was put back from a backup, for whoever puts right what then differs from the API's
// database. No function may run meanwhile.
type Restored struct{ s *Store }

// Restored is for jobweaver after-restore.
func (s *Store) Restored() Restored { return Restored{s} }

// RestoredJob is how far a job has come.
type RestoredJob gen.RestoredJobsRow

// Jobs gives the next jobs in the order of their ids.
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

// Accepted gives jobs as far as it is known how they were accepted, as apidb's Insert takes them.
func (r Restored) Accepted(ctx context.Context, ids []uuid.UUID) (jobs json.RawMessage, err error) {
	err = r.s.tx(ctx, func(q *gen.Queries) error {
		jobs, err = q.RestoredAccepted(ctx, ids)
		return err
	})
	return jobs, err
}

// Adopt takes jobs to where the scheduler's own word, as the API has heard it, says that they were, and gives those
// that it has taken. asked is what the API has of each job, which may have been changed. cancels say since when the API
// waits for a cancel; zero: it does not.
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

// Cancel ends jobs that the API has no more, where they have not ended.
func (r Restored) Cancel(ctx context.Context, ids []uuid.UUID) (cancelled int64, err error) {
	err = r.s.tx(ctx, func(q *gen.Queries) error {
		cancelled, err = q.RestoredCancel(ctx, ids)
		return err
	})
	return cancelled, err
}

// Tell gives all that there is to say of jobs.
func (r Restored) Tell(ctx context.Context, ids []uuid.UUID) (say Say, err error) {
	err = r.s.tx(ctx, func(q *gen.Queries) error {
		say.Jobs, err = snapshots(ctx, q, ids)
		return err
	})
	return say, err
}

// Controls gives those by which the scheduler goes, or went.
func (r Restored) Controls(ctx context.Context) (kept []jobevent.Control, err error) {
	err = r.s.tx(ctx, func(q *gen.Queries) error {
		rows, err := q.ControlsList(ctx)
		if err != nil {
			return fmt.Errorf("read controls: %w", err)
		}
		kept = make([]jobevent.Control, len(rows))
		for i, row := range rows {
			kept[i] = jobevent.Control{
				Kind: jobevent.ControlKind(row.Kind), Name: row.Name, Version: row.Version, Paused: row.Paused,
				StartsPerSecond: row.StartsPerSecond,
			}
			if row.MaxRunning != nil {
				most := int(*row.MaxRunning)
				kept[i].MaxRunning = &most
			}
		}
		return nil
	})
	return kept, err
}
