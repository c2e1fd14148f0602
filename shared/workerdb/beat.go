package workerdb

import (
	"context"
	"fmt"
	"time"

	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/workerdb/internal/gen"
)

// Held is an attempt that a worker has claimed and not settled.
type Held struct {
	Key
	StartedAt time.Time // zero: not started
}

// Beat is what a worker says of itself.
type Beat struct {
	WorkerID string
	Queues   []string
	Free     int // slots
	Held     []Held

	// Claims up to this number (LastClaim) had been answered before Held was read: what they took is
	// there, or is settled.
	Answered int64
}

// Changed is what others have done to attempts that a worker holds.
type Changed struct {
	CancelWanted []Key
	Settled      []Outcome // taken from this worker: end them and say these
}

// Beat writes that the worker is alive, what it has and when that started if it has run for a while, and
// reads what has become of it.
func (s *Store) Beat(ctx context.Context, b Beat) (Changed, error) {
	var rows []gen.ExecutionAttempt
	// All goes with BEGIN, and COMMIT after it: a worker that is frozen or cut off in between keeps its own row locked,
	// and cannot be judged until the server ends its session.
	err := pgpool.TxInFlights(ctx, s.pool, nil, func(db pgpool.DB) error {
		q := gen.New(db)
		// First: whoever is about to call this worker lost has its row locked, and then its verdict is
		// among what is read below.
		if err := q.WorkerSee(ctx, gen.WorkerSeeParams{
			WorkerID: b.WorkerID, Queues: b.Queues, Free: int32(b.Free),
		}); err != nil {
			return fmt.Errorf("write worker %s: %w", b.WorkerID, err)
		}
		running, keys := startParams(b)
		jobIDs, attempts := columns(keys)
		if err := q.ClaimsFold(ctx, gen.ClaimsFoldParams{
			WorkerID: b.WorkerID, Answered: b.Answered, JobIDs: jobIDs, Attempts: attempts,
		}); err != nil {
			return fmt.Errorf("write what worker %s has: %w", b.WorkerID, err)
		}
		if len(keys) == 0 {
			return nil
		}
		if len(running.JobIDs) > 0 {
			if err := q.AttemptStartMany(ctx, running); err != nil {
				return fmt.Errorf("write starts of %d attempts: %w", len(running.JobIDs), err)
			}
		}
		var err error
		rows, err = q.AttemptChangedMany(ctx, gen.AttemptChangedManyParams{
			JobIDs: jobIDs, Attempts: attempts, WorkerID: b.WorkerID,
		})
		if err != nil {
			return fmt.Errorf("read %d held attempts: %w", len(keys), err)
		}
		return nil
	})
	if err != nil {
		return Changed{}, err
	}
	var changed Changed
	for _, row := range rows {
		if row.Outcome != nil {
			changed.Settled = append(changed.Settled, outcomeOf(row))
		} else if row.CancelWanted {
			changed.CancelWanted = append(changed.CancelWanted, keyOf(row))
		}
	}
	return changed, nil
}

func startParams(b Beat) (running gen.AttemptStartManyParams, keys []Key) {
	running.WorkerID, keys = b.WorkerID, make([]Key, 0, len(b.Held))
	for _, h := range b.Held {
		keys = append(keys, h.Key)
		if !h.StartedAt.IsZero() && time.Since(h.StartedAt) >= soon {
			running.JobIDs = append(running.JobIDs, h.JobID)
			running.Attempts = append(running.Attempts, int32(h.Attempt))
			running.StartedAgos = append(running.StartedAgos, ago(h.StartedAt))
		}
	}
	return running, keys
}

// Judge settles attempts of workers that have been silent too long, and attempts far past their timeout,
// a bounded number a call. The caller may ask for it only while its own beats have got through without a
// gap of Silence: after an outage everybody looks silent. It returns what it settled: say it.
func (s *Store) Judge(ctx context.Context) ([]Outcome, error) {
	lost, err := s.q.AttemptSettleLost(ctx, gen.AttemptSettleLostParams{Silence: Silence, MaxAttempts: maxJudged})
	if err != nil {
		return nil, fmt.Errorf("settle lost attempts: %w", pgpool.Classify(err))
	}
	outcomes := outcomesOf(lost)
	overdue, err := s.q.AttemptSettleOverdue(ctx, gen.AttemptSettleOverdueParams{Lease: lease, MaxAttempts: maxJudged})
	if err != nil {
		return outcomes, fmt.Errorf("settle overdue attempts: %w", pgpool.Classify(err))
	}
	return append(outcomes, outcomesOf(overdue)...), nil
}

// FreeElsewhere counts, by queue, the free slots of the other live workers.
func (s *Store) FreeElsewhere(ctx context.Context, workerID string) (map[string]int, error) {
	rows, err := s.q.WorkersFree(ctx, gen.WorkersFreeParams{WorkerID: workerID, Silence: Silence})
	if err != nil {
		return nil, fmt.Errorf("count free slots of other workers: %w", pgpool.Classify(err))
	}
	free := make(map[string]int, len(rows))
	for _, row := range rows {
		free[row.Queue] = int(row.Free)
	}
	return free, nil
}
