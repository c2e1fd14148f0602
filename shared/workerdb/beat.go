package workerdb

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/workerdb/internal/gen"
)

// Held is an attempt that a worker has claimed and not settled.
type Held struct {
	Key
	StartedAt time.Time // zero: not started
}

// Beat is what a worker reports of itself.
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

	// Unseen is how far this worker's last beat is from this one, by the database's clock. Other workers go by that
	// clock, and it may have been stepped, forward or back, or this process's may have stood still with its machine.
	Unseen time.Duration
}

// Beat writes that the worker is alive, what it has and when that started if it has run for a while, and
// reads what has become of it.
func (s *Store) Beat(ctx context.Context, b Beat) (Changed, error) {
	see := gen.WorkerSeeParams{WorkerID: b.WorkerID, Queues: b.Queues, Free: int32(b.Free)}
	running, keys := startParams(b)
	jobIDs, attempts := columns(keys)
	fold := gen.ClaimsFoldParams{WorkerID: b.WorkerID, Answered: b.Answered, JobIDs: jobIDs, Attempts: attempts}
	changes := gen.AttemptChangedManyParams{JobIDs: jobIDs, Attempts: attempts, WorkerID: b.WorkerID}
	var unseen int64
	var rows []gen.ExecutionAttempt
	// All goes with BEGIN, and COMMIT after it: a worker that is frozen or cut off in between keeps its own row locked,
	// and cannot be settled as lost until the server ends its session. WorkerSee comes first: whichever worker is about
	// to settle this one's attempts as lost has its row locked, and then its verdict is among what is read below.
	err := pgpool.TxInBatches(ctx, s.pool, func(b *pgx.Batch) {
		pgpool.QueueOne(b, &unseen, pgx.RowTo[int64], gen.WorkerSee, see.WorkerID, see.Queues, see.Free)
		b.Queue(gen.ClaimsFold, fold.WorkerID, fold.JobIDs, fold.Attempts, fold.Answered)
		if len(running.JobIDs) > 0 {
			b.Queue(gen.AttemptStartMany, running.JobIDs, running.Attempts, running.StartedAgos, running.WorkerID, running.Lease)
		}
		if len(keys) > 0 {
			pgpool.QueueMany(b, &rows, pgx.RowToStructByPos[gen.ExecutionAttempt], gen.AttemptChangedMany,
				changes.JobIDs, changes.Attempts, changes.WorkerID)
		}
	}, func(pgpool.DB, *pgpool.Later) error { return nil })
	if err != nil {
		return Changed{}, fmt.Errorf("write the heartbeat of worker %s: %w", b.WorkerID, err)
	}
	changed := Changed{Unseen: (time.Duration(unseen) * time.Microsecond).Abs()}
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
	running.WorkerID, running.Lease, keys = b.WorkerID, lease, make([]Key, 0, len(b.Held))
	now := time.Now()
	for _, h := range b.Held {
		keys = append(keys, h.Key)
		if !h.StartedAt.IsZero() && now.Sub(h.StartedAt) >= soon {
			running.JobIDs = append(running.JobIDs, h.JobID)
			running.Attempts = append(running.Attempts, int32(h.Attempt))
			running.StartedAgos = append(running.StartedAgos, ago(now, h.StartedAt))
		}
	}
	return running, keys
}

// Reap settles attempts of workers that have been silent too long, and attempts far past their timeout, a bounded
// number a call. The worker has just sent a heartbeat. It may call Reap only while its own heartbeats have got
// through without a gap of Silence, by its own clock and by the database's: after an outage, and after a step of that
// clock, all workers look silent. The caller publishes the outcomes that Reap returns.
func (s *Store) Reap(ctx context.Context, workerID string) ([]Outcome, error) {
	lost, err := s.q.AttemptSettleLost(ctx, gen.AttemptSettleLostParams{
		Silence: Silence, HalfSilence: Silence / 2, JudgeID: workerID, MaxAttempts: maxReaped,
	})
	if err != nil {
		return nil, fmt.Errorf("settle lost attempts: %w", pgpool.Classify(err))
	}
	outcomes := outcomesOf(lost)
	overdue, err := s.q.AttemptSettleOverdue(ctx, gen.AttemptSettleOverdueParams{
		Silence: Silence, Lease: lease, MaxAttempts: maxReaped,
	})
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
