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

// Count is a count of the rows: the attempts that are out and the jobs that wait.
type Count struct {
	revision int64          // of the ledger with which the rows were compared
	drift    dispatch.Delta // what has to be added to that ledger
	asked    int            // attempts with an unanswered cancel
	at       time.Time      // of the count
	leaseAt  time.Time      // when the first lease ends; zero: no attempt is out
	lastAt   time.Time      // when the last lease ends
	unserved unservedLanes  // lanes of jobs that no live worker runs
	figures  *telemetry.QueueFigures
}

// Figures returns the figures for the metrics.
func (c Count) Figures() *telemetry.QueueFigures { return c.figures }

// Count counts the rows and compares them with the ledger. It blocks no transaction. Rows and ledger come from the same
// snapshot of the database, and every commit changes both alike. So a difference in that snapshot still exists later,
// whatever was committed meanwhile.
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
		counted.NoteFloor(row.Queue, "", row.Rank)
		if row.FairnessKey != nil { // a cohort
			counted.NoteKey(row.Queue, *row.FairnessKey)
		}
	}
	keys, err := q.KeysPending(ctx)
	if err != nil {
		return c, fmt.Errorf("find waiting fairness keys: %w", err)
	}
	for _, row := range keys {
		counted.NoteKey(row.Queue, row.FirstKey)
		counted.NoteKey(row.Queue, row.LastKey)
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
	if kept.ControlsRevision() > 0 || kept.IsSorted() || kept.HadBuilds() {
		if err := s.countLanes(ctx, q, kept, &counted); err != nil {
			return c, err
		}
	}
	if c.unserved, err = s.countUnserved(ctx, q, kept); err != nil {
		return c, err
	}
	c.drift = kept.Drift(counted)
	c.figures = figuresOf(&counted, c.at)
	c.figures.NoWorker, c.figures.NoWorkerLanes = c.unserved.figures(c.at)
	return c, nil
}

// figuresOf converts a count at an instant of the database's clock. It leaves out jobs in lanes: an operator's control
// makes them wait.
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

// countControlled counts the attempts by job type and owner, which matter in an installation that has or had controls.
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
	return nil
}

// countLanes finds the lanes of controls, and of kinds those that a live worker runs: the ledger has no others. It also
// counts the attempts that pull workers have by kind.
func (s *Store) countLanes(ctx context.Context, q *gen.Queries, kept *dispatch.Ledger, counted *dispatch.Delta) error {
	waiting, err := q.LanesPending(ctx)
	if err != nil {
		return fmt.Errorf("find waiting lanes: %w", err)
	}
	for _, row := range waiting {
		counted.NoteFloor(row.Queue, row.Lane, row.Rank)
	}
	set, err := s.controlsOf(ctx, q, kept.ControlsRevision())
	if err != nil {
		return err
	}
	kept.UseControls(set)
	live, err := q.WorkersLive(ctx, silentAfter)
	if err != nil {
		return fmt.Errorf("list workers: %w", err)
	}
	workers, err := typedWorkers(ctx, q, live)
	if err != nil {
		return err
	}
	kept.CompareTypes(workers)
	lanes, err := lanesOf(ctx, q, kept.LiveRanges())
	if err != nil {
		return err
	}
	for _, row := range lanes {
		counted.NoteWaiting(row.Queue, row.Lane, row.FirstKey, row.Rank)
		counted.NoteKey(row.Queue, row.LastKey)
	}
	asked := kept.AskedQueues()
	if len(asked) == 0 {
		return nil
	}
	out, err := countAsked(ctx, q, asked)
	counted.SetAsked(out)
	return err
}
