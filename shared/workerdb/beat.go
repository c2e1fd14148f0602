package workerdb

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/jobevent"
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
	err := pgpool.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		q := s.q.WithTx(tx)
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

// cleanupBatch bounds one DELETE; oldWorker is how long the row of a dead worker is kept: much longer
// than a process can be frozen and then wake.
const (
	cleanupBatch = 5000
	oldWorker    = 24 * time.Hour
	rowAge       = jobevent.MaxRetention + 24*time.Hour
)

// Cleanup deletes attempts that are older than any record that could ask for them, and long-dead
// workers. It returns how many attempts it has deleted.
func (s *Store) Cleanup(ctx context.Context) (int, error) {
	if err := s.q.WorkersDeleteOld(ctx, oldWorker); err != nil {
		return 0, fmt.Errorf("delete old workers: %w", pgpool.Classify(err))
	}
	before := firstUUID(time.Now().Add(-rowAge))
	deleted := 0
	for {
		n, err := s.q.AttemptDeleteOld(ctx, gen.AttemptDeleteOldParams{
			BeforeID: before, Age: rowAge, MaxAttempts: cleanupBatch,
		})
		deleted += int(n)
		if err != nil {
			return deleted, fmt.Errorf("delete old attempts: %w", pgpool.Classify(err))
		}
		if n < cleanupBatch {
			return deleted, nil
		}
	}
}

// firstUUID is the lowest UUIDv7 of an instant.
func firstUUID(at time.Time) uuid.UUID {
	var id uuid.UUID
	binary.BigEndian.PutUint64(id[:], uint64(at.UnixMilli())<<16|0x7000)
	id[8] = 0x80
	return id
}
