package schedulerdb

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/dispatch"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// Count is what the rows show of all that is out and waits.
type Count struct {
	revision int64          // of the ledger with which it was compared
	drift    dispatch.Delta // what that ledger lacked
	asked    int            // attempts whose cancel is not answered
	at       time.Time      // of the count
	leaseAt  time.Time      // when the first lease is over; zero: nothing is out
	lastAt   time.Time      // when the last one is
	figures  *telemetry.QueueFigures
}

// Figures returns the part of it that the metrics show.
func (c Count) Figures() *telemetry.QueueFigures { return c.figures }

// Count reads the rows without holding up any transaction. Rows and ledger are of one snapshot, and every commit
// changes both. So a difference in that snapshot is still there later, whatever was committed meanwhile.
func (s *Store) Count(ctx context.Context) (Count, error) {
	var c Count
	tx := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err := pgx.BeginTxFunc(ctx, s.pool, tx, func(tx pgx.Tx) (err error) {
		c, err = s.count(ctx, gen.New(tx))
		return err
	})
	return c, pgpool.Classify(err)
}

func (s *Store) count(ctx context.Context, q *gen.Queries) (Count, error) {
	state, err := q.DispatchState(ctx)
	if err != nil {
		return Count{}, fmt.Errorf("read dispatch state: %w", err)
	}
	kept, err := dispatch.ReadLedger(dispatch.Row(state))
	if err != nil {
		return Count{}, err
	}
	c, counted := Count{revision: kept.Revision(), at: kept.At}, dispatch.NewDelta()
	out, err := q.InFlight(ctx)
	if err != nil {
		return c, fmt.Errorf("count attempts in flight: %w", err)
	}
	for _, row := range out {
		counted.NoteOut(row.Queue, row.WorkerID, row.Partition, int(row.Attempts))
		c.asked += int(row.Cancels)
		if c.leaseAt.IsZero() || row.LeaseExpiresAt.Before(c.leaseAt) {
			c.leaseAt = row.LeaseExpiresAt
		}
		if row.LastLeaseExpiresAt.After(c.lastAt) {
			c.lastAt = row.LastLeaseExpiresAt
		}
	}
	waiting, err := q.QueuesPending(ctx)
	if err != nil {
		return c, fmt.Errorf("find waiting queues: %w", err)
	}
	for _, row := range waiting {
		counted.NoteWaiting(row.Queue, "", row.Rank)
	}
	due, err := q.NextDue(ctx, time.Time{})
	if err != nil {
		return c, fmt.Errorf("read next due instant: %w", err)
	}
	if len(due) > 0 {
		counted.NoteDue(due[0].DueAt)
	}
	if kept.ControlsRevision() > 0 {
		if err := s.countControlled(ctx, q, kept.ControlsRevision(), &counted); err != nil {
			return c, err
		}
	}
	c.drift = kept.Drift(counted)
	c.figures = figuresOf(&counted, c.at)
	return c, nil
}

// figuresOf converts a count at an instant of the database's clock. It leaves out the jobs in lanes: a control makes
// them late, and that is somebody's will.
func figuresOf(counted *dispatch.Delta, at time.Time) *telemetry.QueueFigures {
	f := &telemetry.QueueFigures{At: time.Now(), InFlight: counted.InFlight(), Waited: map[string]time.Duration{}}
	for queue, rank := range counted.Floors() {
		f.Waited[queue] = max(at.Sub(rank), 0)
	}
	if due := counted.DueFloor(); !due.IsZero() {
		f.Late = max(at.Sub(due), 0)
	}
	return f
}

// countControlled counts what only an installation has that has controls, or had.
func (s *Store) countControlled(ctx context.Context, q *gen.Queries, revision int64, counted *dispatch.Delta) error {
	set, err := s.controlsOf(ctx, q, revision)
	if err != nil {
		return err
	}
	running, err := countRunning(ctx, q, set)
	if err != nil {
		return err
	}
	counted.SetRunning(running, revision)
	waiting, err := q.LanesPending(ctx)
	if err != nil {
		return fmt.Errorf("find waiting lanes: %w", err)
	}
	for _, row := range waiting {
		counted.NoteWaiting(row.Queue, row.Lane, row.Rank)
	}
	return nil
}
