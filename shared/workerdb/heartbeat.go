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

// Heartbeat is what a worker writes about itself.
type Heartbeat struct {
	WorkerID string
	Queues   []string
	Free     int // free slots
	Held     []Held

	// Claims up to this number (LastClaim) had been answered before Held was read: their attempts are in Held or settled.
	Answered int64
}

// Changed has the changes that other processes have made to attempts that a worker holds.
type Changed struct {
	CancelWanted []Key
	Settled      []Outcome // by another worker: end these attempts and publish the outcomes

	// Unseen is the time between this worker's last heartbeat and this one by the database's clock, which decides whether
	// the worker is silent. It can differ from the time by the process's clock: the database's clock may have been
	// stepped, or this machine may have been suspended.
	Unseen time.Duration
}

// Heartbeat writes that the worker is live, which attempts it holds, and the starts of those that have run for a while.
// It returns the changes that others have made to these attempts.
func (s *Store) Heartbeat(ctx context.Context, b Heartbeat) (Changed, error) {
	see := gen.WorkerSeeParams{WorkerID: b.WorkerID, Queues: b.Queues, Free: int32(b.Free)}
	running, keys := startParams(b)
	jobIDs, attempts := columns(keys)
	fold := gen.ClaimsFoldParams{WorkerID: b.WorkerID, Answered: b.Answered, JobIDs: jobIDs, Attempts: attempts}
	changes := gen.AttemptChangedManyParams{JobIDs: jobIDs, Attempts: attempts, WorkerID: b.WorkerID}
	var unseen int64
	var rows []gen.ExecutionAttempt
	// All statements travel with BEGIN, and COMMIT follows. A worker that is frozen or cut off in between keeps its own
	// row locked, and its attempts cannot be settled as lost until the server ends its session. WorkerSee comes first: a
	// worker that reaps this one's attempts has locked that row, so WorkerSee waits for it, and AttemptChangedMany then
	// reads the outcomes.
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
		return Changed{}, fmt.Errorf("write heartbeat of worker %s: %w", b.WorkerID, err)
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

func startParams(b Heartbeat) (running gen.AttemptStartManyParams, keys []Key) {
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

// Reap settles attempts of silent workers, and attempts a lease past their timeout, a bounded number in a call. The
// worker must have sent a heartbeat just before. It may call Reap only while its own heartbeats have got through
// without a gap of Silence, by its own clock and by the database's: after an outage, or after a step of the database's
// clock, all workers look silent. The caller publishes the outcomes that Reap returns.
func (s *Store) Reap(ctx context.Context, workerID string) ([]Outcome, error) {
	lost, err := s.q.AttemptSettleLost(ctx, gen.AttemptSettleLostParams{
		Silence: Silence, HalfSilence: Silence / 2, ReaperID: workerID, MaxAttempts: maxReaped,
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

// FreeElsewhere returns the number of free slots of the other live workers, by queue.
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
