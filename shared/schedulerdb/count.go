package schedulerdb

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// Count is what the rows say of all that is out and waits.
type Count struct {
	n       int64     // of the ledger that it was compared with
	drift   tally     // what the ledger of that moment had to learn
	asked   int       // attempts whose cancel nobody has answered
	at      time.Time // of the count
	leaseAt time.Time // when the first lease is over; zero: nothing is out
	lastAt  time.Time // when the last one is
	figures *telemetry.QueueFigures
}

// Figures are what of it the metrics tell.
func (c Count) Figures() *telemetry.QueueFigures { return c.figures }

// Count reads it from the rows, holding nobody up. Rows and ledger are of one snapshot, and every
// commit changes both: what differs then still differs now, whatever came meanwhile.
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
	kept, err := readTally(state.InFlight, state.Floors, state.DueFloor)
	if err != nil {
		return Count{}, err
	}
	m, err := readMore(state.More)
	if err != nil {
		return Count{}, err
	}
	kept.running, kept.lanes = m.Running, m.Lanes
	c, rows := Count{n: state.N, at: state.At}, newTally()
	out, err := q.InFlight(ctx)
	if err != nil {
		return c, fmt.Errorf("count attempts in flight: %w", err)
	}
	for _, row := range out {
		rows.out.add(row.Queue, row.WorkerID, row.Partition, int(row.Attempts))
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
		rows.waits(row.Queue, "", row.Rank)
	}
	due, err := q.NextDue(ctx, time.Time{})
	if err != nil {
		return c, fmt.Errorf("read next due instant: %w", err)
	}
	if len(due) > 0 {
		rows.falls(due[0].DueAt)
	}
	if m.Controls > 0 {
		if err := s.countControlled(ctx, q, m.Controls, &rows); err != nil {
			return c, err
		}
	}
	c.drift = kept.missing(rows)
	c.figures = figuresOf(rows, c.at)
	return c, nil
}

// figuresOf tells what was counted, by an instant of the database's clock: what waits in lanes of its own, under a
// control, is late by somebody's will.
func figuresOf(rows tally, at time.Time) *telemetry.QueueFigures {
	f := &telemetry.QueueFigures{At: time.Now(), InFlight: map[string]int{}, Waited: map[string]time.Duration{}}
	for queue, byWorker := range rows.out {
		for _, counts := range byWorker {
			for _, n := range counts {
				f.InFlight[queue] += n
			}
		}
	}
	for queue, rank := range rows.floors {
		f.Waited[queue] = max(at.Sub(rank), 0)
	}
	if !rows.due.IsZero() {
		f.Late = max(at.Sub(rows.due), 0)
	}
	return f
}

// countControlled is for a house that has controls, or had.
func (s *Store) countControlled(ctx context.Context, q *gen.Queries, controls int64, rows *tally) error {
	set, err := s.controlsOf(ctx, q, controls)
	if err != nil {
		return err
	}
	if rows.running, err = countRunning(ctx, q, set); err != nil {
		return err
	}
	rows.countedFor = controls
	waiting, err := q.LanesPending(ctx)
	if err != nil {
		return fmt.Errorf("find waiting lanes: %w", err)
	}
	for _, row := range waiting {
		rows.waits(row.Queue, row.Lane, row.Rank)
	}
	return nil
}
