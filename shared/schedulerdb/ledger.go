package schedulerdb

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/dispatch"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/internal/gen"
)

// lockLedger locks the ledger until the commit, and reads it.
func (s *Store) lockLedger(ctx context.Context, q *gen.Queries) (*dispatch.Ledger, error) {
	row, err := q.DispatchLock(ctx)
	if err != nil {
		return nil, fmt.Errorf("lock dispatch: %w", err)
	}
	return s.readLedger(ctx, q, row)
}

// queueLock adds the statement that locks the ledger to a batch. readLedger then takes the row.
func queueLock(b *pgx.Batch, row *gen.DispatchLockRow) {
	pgpool.QueueOne(b, row, pgx.RowToStructByPos[gen.DispatchLockRow], gen.DispatchLock)
}

func (s *Store) readLedger(ctx context.Context, q *gen.Queries, row gen.DispatchLockRow) (*dispatch.Ledger, error) {
	l, err := dispatch.ReadLedger(dispatch.Row(row))
	if err != nil {
		return nil, err
	}
	set, err := s.controlsOf(ctx, q, l.ControlsRevision())
	if err != nil {
		return nil, err
	}
	l.UseControls(set)
	return l, nil
}

// saveLedger writes the ledger if it changed, and wakes the function dispatch if a job is due sooner than it expects.
// No later statement of the transaction depends on either, so both may travel with COMMIT.
func saveLedger(ctx context.Context, last *gen.Queries, l *dispatch.Ledger) error {
	write, wakeClock := l.Close()
	if wakeClock {
		if err := last.NotifyDue(ctx); err != nil {
			return fmt.Errorf("wake the clock: %w", err)
		}
	}
	if !write {
		return nil
	}
	row := l.Row()
	err := last.DispatchSave(ctx, gen.DispatchSaveParams{
		N: row.N, InFlight: row.InFlight, Floors: row.Floors, DueFloor: row.DueFloor, More: row.More,
	})
	if err != nil {
		return fmt.Errorf("save dispatch state: %w", err)
	}
	return nil
}

// controlsOf returns the controls of a revision, and keeps them, so that each revision is read once. They belong to the
// revision: the ledger that names it is locked by this transaction, or was read in its snapshot, and every change of
// the controls writes the ledger.
func (s *Store) controlsOf(ctx context.Context, q *gen.Queries, revision int64) (*dispatch.Controls, error) {
	if revision == 0 {
		return dispatch.NoControls, nil
	}
	if known := s.controls.Load(); known != nil && known.Revision() == revision {
		return known, nil
	}
	kept, err := readControls(ctx, q)
	if err != nil {
		return nil, err
	}
	set := dispatch.NewControls(revision, kept)
	s.controls.Store(set)
	return set, nil
}

func readControls(ctx context.Context, q *gen.Queries) ([]jobevent.Control, error) {
	rows, err := q.ControlsList(ctx)
	if err != nil {
		return nil, fmt.Errorf("read controls: %w", err)
	}
	kept := make([]jobevent.Control, len(rows))
	for i, row := range rows {
		kept[i] = jobevent.Control{
			Kind: jobevent.ControlKind(row.Kind), Name: row.Name, Version: row.Version, Paused: row.Paused,
			StartsPerSecond: row.StartsPerSecond, Weight: int(row.Weight), Workers: row.Workers,
		}
		if row.MaxRunning != nil {
			most := int(*row.MaxRunning)
			kept[i].MaxRunning = &most
		}
	}
	return kept, nil
}
