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
	revision int64                 // of the ledger with which the rows were compared
	drift    dispatch.Delta        // what has to be added to that ledger
	asked    int                   // attempts with an unanswered cancel
	at       time.Time             // of the count
	leaseAt  time.Time             // when the first lease ends; zero: no attempt is out
	lastAt   time.Time             // when the last lease ends
	noWorker []dispatch.ScarceType // types of which jobs wait and that no live worker runs
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
	c.noWorker = kept.WithoutWorker()
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
	if kept.ControlsRevision() > 0 || kept.HasScarce() || kept.HadBuilds() {
		if err := countLanes(ctx, q, &counted); err != nil {
			return c, err
		}
	}
	c.drift = kept.Drift(counted)
	c.figures = figuresOf(&counted, c.at)
	for _, t := range c.noWorker {
		c.figures.NoWorker = append(c.figures.NoWorker, telemetry.NoWorker{
			Queue: t.Queue, JobType: t.JobType, For: c.at.Sub(t.Since),
		})
	}
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

func countLanes(ctx context.Context, q *gen.Queries, counted *dispatch.Delta) error {
	waiting, err := q.LanesPending(ctx)
	if err != nil {
		return fmt.Errorf("find waiting lanes: %w", err)
	}
	for _, row := range waiting {
		counted.NoteFloor(row.Queue, row.Lane, row.Rank)
	}
	return nil
}
