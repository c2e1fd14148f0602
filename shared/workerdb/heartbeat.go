package workerdb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/workerdb/internal/gen"
)

// Held is an attempt that a worker has claimed and not settled.
type Held struct {
	Key
	TraceID   uuid.UUID
	TimeoutMs int
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

	// Failed is why the starts of attempts without a row were not written, and their marks for a cancel not read.
	Failed error
}

// Heartbeat writes that the worker is live, which attempts it holds, and the starts of those that have run for a while.
// It returns the changes that others have made to these attempts.
func (s *Store) Heartbeat(ctx context.Context, b Heartbeat) (Changed, error) {
	see := gen.WorkerSeeParams{WorkerID: b.WorkerID, Queues: b.Queues, Free: int32(b.Free)}
	h := heldParams(b)
	var unseen int64
	var rows []gen.ExecutionAttempt
	// All statements travel with BEGIN, and COMMIT follows. A worker that is frozen or cut off in between keeps its own
	// row locked, and its attempts cannot be settled as lost until the server ends its session. WorkerSee comes first: a
	// worker that reaps this one's attempts has locked that row, so WorkerSee waits for it, and AttemptChangedMany then
	// reads the outcomes. No other statement waits for a lock: a worker that shares a block may be frozen, too.
	err := pgpool.TxInBatches(ctx, s.pool, func(b *pgx.Batch) {
		pgpool.QueueOne(b, &unseen, pgx.RowTo[int64], gen.WorkerSee, see.WorkerID, see.Queues, see.Free)
		b.Queue(gen.ClaimsFold, see.WorkerID, h.fold.JobIDs, h.fold.Attempts, h.fold.TraceIDs, h.fold.Answered)
		if len(h.running.JobIDs) > 0 {
			b.Queue(gen.AttemptStartMany, h.running.JobIDs, h.running.Attempts, h.running.StartedAgos, h.running.TimeoutMss,
				see.WorkerID, h.running.Lease)
		}
		if len(h.all) > 0 {
			pgpool.QueueMany(b, &rows, pgx.RowToStructByPos[gen.ExecutionAttempt], gen.AttemptChangedMany,
				h.fold.JobIDs, h.fold.Attempts, see.WorkerID)
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
	var moved []moving
	moved, changed.Failed = s.move(ctx, see.WorkerID, h.all)
	for i := range moved {
		if moved[i].cancelWanted {
			changed.CancelWanted = append(changed.CancelWanted, moved[i].Key)
		}
	}
	return changed, nil
}

// heldColumns has the columns of the attempts that a worker holds. The running ones get rows of their own.
type heldColumns struct {
	all     []moving
	fold    gen.ClaimsFoldParams
	running gen.AttemptStartManyParams
}

func heldParams(b Heartbeat) (h heldColumns) {
	now := time.Now()
	h.all = make([]moving, len(b.Held))
	for i, held := range b.Held {
		m := &h.all[i]
		m.Key, m.TraceID, m.timeoutMs, m.StartedAt = held.Key, held.TraceID, held.TimeoutMs, held.StartedAt
		m.waits = held.StartedAt.IsZero() || now.Sub(held.StartedAt) < soon
	}
	h.running.Lease = lease
	h.fold.Answered, h.fold.JobIDs, h.fold.Attempts = b.Answered, []uuid.UUID{}, []int32{}
	h.fold.TraceIDs = []uuid.UUID{}
	for _, held := range h.all {
		h.fold.JobIDs, h.fold.Attempts = append(h.fold.JobIDs, held.JobID), append(h.fold.Attempts, int32(held.Key.Attempt))
		h.fold.TraceIDs = append(h.fold.TraceIDs, held.TraceID)
		if !held.waits {
			h.running.JobIDs = append(h.running.JobIDs, held.JobID)
			h.running.Attempts = append(h.running.Attempts, int32(held.Key.Attempt))
			h.running.StartedAgos = append(h.running.StartedAgos, ago(now, held.StartedAt))
			h.running.TimeoutMss = append(h.running.TimeoutMss, int32(held.timeoutMs))
		}
	}
	return h
}

// Reap settles attempts of silent workers, and attempts a lease past their timeout, a bounded number in a call. The
// worker must have sent a heartbeat just before. It may call Reap only while its own heartbeats have got through
// without a gap of Silence, by its own clock and by the database's: after an outage, or after a step of the database's
// clock, all workers look silent. The caller publishes the outcomes that Reap returns.
func (s *Store) Reap(ctx context.Context, workerID string) ([]Outcome, error) {
	outcomes, err := s.reapSilent(ctx, workerID)
	overdue, overdueErr := s.q.AttemptSettleOverdue(ctx, gen.AttemptSettleOverdueParams{
		Silence: Silence, Lease: lease, MaxAttempts: maxReaped,
	})
	if overdueErr != nil {
		err = errors.Join(err, fmt.Errorf("settle overdue attempts: %w", pgpool.Classify(overdueErr)))
	}
	return append(outcomes, outcomesOf(overdue)...), err
}

// reapSilent settles attempts of silent workers.
func (s *Store) reapSilent(ctx context.Context, workerID string) ([]Outcome, error) {
	silent, err := s.q.WorkersSilent(ctx, gen.WorkersSilentParams{
		Silence: Silence, HalfSilence: Silence / 2, ReaperID: workerID,
	})
	if err != nil {
		return nil, fmt.Errorf("look for silent workers: %w", pgpool.Classify(err))
	}
	if len(silent) == 0 {
		return nil, nil
	}
	var failed error
	for _, id := range silent {
		_, err := s.moveListed(ctx, id)
		failed = errors.Join(failed, err)
	}
	lost, err := s.q.AttemptSettleLost(ctx, gen.AttemptSettleLostParams{
		Silence: Silence, HalfSilence: Silence / 2, ReaperID: workerID, MaxAttempts: maxReaped,
	})
	if err != nil {
		failed = errors.Join(failed, fmt.Errorf("settle lost attempts: %w", pgpool.Classify(err)))
	}
	return outcomesOf(lost), failed
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
