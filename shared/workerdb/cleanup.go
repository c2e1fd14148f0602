package workerdb

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/workerdb/internal/gen"
)

const (
	cleanupKey    = 0x6a77_636c_6561_6e // of the advisory lock: any number that no other lock has
	cleanupBatch  = 1000                // rows that one statement visits
	cleanupBlocks = 250                 // blocks, of up to 64 rows each
	// oldWorker is how long the row of a dead worker is kept: much longer than a process can be frozen.
	oldWorker = 24 * time.Hour
)

// Retention is how long rows are kept that nothing needs any more; 0: for ever.
type Retention struct {
	Attempts    time.Duration // since they were settled
	Checkpoints time.Duration // since they were saved
}

// Cleanup deletes attempts and checkpoints that are past their retention and whose jobs are as old, and workers that
// died long ago. It does so in small steps. After each step it calls pause with the duration of the step; if pause
// returns false, Cleanup ends. Only one worker cleans up at a time: others return at once. Cleanup returns the number
// of deleted attempts.
func (s *Store) Cleanup(
	ctx context.Context, keep Retention, pause func(took time.Duration) bool,
) (deleted int, err error) {
	// Cleanup takes a connection out of the pool: the pool's few connections are for claims and settling.
	conn, err := pgpool.Session(ctx, s.pool)
	if err != nil {
		return 0, fmt.Errorf("connect to clean up: %w", pgpool.Classify(err))
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	q := gen.New(conn)
	if got, err := q.CleanupLock(ctx, cleanupKey); err != nil || !got {
		return 0, pgpool.Classify(err)
	}
	defer func() { _ = q.CleanupUnlock(ctx, cleanupKey) }() // if this fails, the end of the session releases the lock
	if err := q.WorkersRestore(ctx); err != nil {
		return 0, fmt.Errorf("restore workers that have claims: %w", pgpool.Classify(err))
	}
	if err := q.WorkersDeleteOld(ctx, oldWorker); err != nil {
		return 0, fmt.Errorf("delete old workers: %w", pgpool.Classify(err))
	}
	if err := deleteOldCheckpoints(ctx, q, keep.Checkpoints, pause); err != nil {
		return 0, err
	}
	return deleteOld(ctx, conn, keep.Attempts, pause)
}

func deleteOldCheckpoints(
	ctx context.Context, q *gen.Queries, age time.Duration, pause func(time.Duration) bool,
) error {
	for age > 0 {
		began := time.Now()
		n, err := q.CheckpointDeleteOld(ctx, gen.CheckpointDeleteOldParams{
			BeforeID: firstUUID(began.Add(-age)), Age: age, MaxCheckpoints: cleanupBatch,
		})
		if err != nil {
			return fmt.Errorf("delete old checkpoints: %w", pgpool.Classify(err))
		}
		if n < cleanupBatch || !pause(time.Since(began)) {
			return nil
		}
	}
	return nil
}

func deleteOld(
	ctx context.Context, conn *pgx.Conn, age time.Duration, pause func(time.Duration) bool,
) (deleted int, err error) {
	q, walk := gen.New(conn), gen.AttemptDeleteOldParams{
		BeforeID: firstUUID(time.Now().Add(-age)), Age: age, MaxBlocks: cleanupBlocks,
	}
	for age > 0 {
		began := time.Now()
		step, err := q.AttemptDeleteOld(ctx, walk)
		if err != nil {
			return deleted, fmt.Errorf("delete old attempts: %w", pgpool.Classify(err))
		}
		deleted += int(step.Deleted)
		if step.Visited < cleanupBlocks || !pause(time.Since(began)) {
			return deleted, nil
		}
		walk.AfterID, walk.AfterAttempt = step.BlockID, step.Attempt
	}
	return 0, nil
}

// firstUUID returns the lowest UUIDv7 of an instant.
func firstUUID(at time.Time) uuid.UUID {
	var id uuid.UUID
	binary.BigEndian.PutUint64(id[:], uint64(at.UnixMilli())<<16|0x7000)
	id[8] = 0x80
	return id
}
