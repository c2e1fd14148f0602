// Package schedulerdb keeps which attempt of which job is due, on the database jobweaver_scheduler.
// Each method is one thing that happens, in one transaction; it returns what is to be said of it.
package schedulerdb

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// Config is what an operator may set of the scheduler.
type Config struct {
	Lease   time.Duration `envconfig:"LEASE" default:"15s" desc:"how long watchdog waits for a report of an attempt before it asks about it"`
	MaxLost int           `envconfig:"MAX_LOST" default:"3" desc:"how many times in a row a job may be lost before it fails"`
}

const (
	// silentAfter is how long after its last beat a worker still counts as there.
	silentAfter = 10 * time.Second
	// callbackGrace is how much later than the outside system was told the API is asked whether a callback has
	// come: its clock may be a little behind.
	callbackGrace = time.Second
	// transactionTimeout is how long a process that is frozen while it sends statements can hold the lock of dispatching.
	transactionTimeout = 8 * time.Second
	// dispatchMost bounds one statement of the dispatch step.
	dispatchMost = 2000
	// rateMost bounds the attempts a second that a worker may say it finishes.
	rateMost = 1e6
)

// Store is the scheduler's database.
type Store struct {
	pool     *pgxpool.Pool
	cfg      Config
	controls atomic.Pointer[controlSet]
	walks    struct {
		sync.Mutex
		walk
	}
}

func (c Config) check() error {
	switch {
	case c.Lease <= 0:
		return fmt.Errorf("LEASE: %s is not positive", c.Lease)
	case c.MaxLost < 0 || c.MaxLost > math.MaxInt16:
		return fmt.Errorf("MAX_LOST: %d is not from 0 to %d", c.MaxLost, math.MaxInt16)
	}
	return nil
}

// NewestOfSchema is of the newest migration that the store needs. It opens no database without.
const NewestOfSchema = "jobs.asked"

// Open connects to the database at url. An error of a setting begins with its name.
func Open(ctx context.Context, url string, cfg Config) (*Store, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	pool, err := pgpool.Open(ctx, url, pgpool.ApplicationName("jobweaver-scheduler"), pgpool.IndexOnly(),
		pgpool.TransactionTimeout(transactionTimeout))
	if err != nil {
		return nil, err
	}
	if err := pgpool.AwaitSchema(ctx, pool, "jobweaver_scheduler", NewestOfSchema); err != nil {
		pool.Close()
		return nil, fmt.Errorf("open jobweaver_scheduler: %w", err)
	}
	return &Store{pool: pool, cfg: cfg}, nil
}

// Close ends all connections.
func (s *Store) Close() { s.pool.Close() }

// Connections tell how those to the database do.
func (s *Store) Connections() telemetry.Pool { return pgpool.Figures(s.pool) }

// Ping says whether the database answers.
func (s *Store) Ping(ctx context.Context) error { return s.pool.Ping(ctx) }

func (s *Store) tx(ctx context.Context, body func(q *gen.Queries) error) error {
	return s.txAhead(ctx, nil, body)
}

// txAhead is tx with what body asks first, as pgpool.TxInFlights has it.
func (s *Store) txAhead(ctx context.Context, ahead func(q *gen.Queries), body func(q *gen.Queries) error) error {
	var noted func(pgpool.DB)
	if ahead != nil {
		noted = func(db pgpool.DB) { ahead(gen.New(db)) }
	}
	return pgpool.TxInFlights(ctx, s.pool, noted, func(db pgpool.DB) error { return body(gen.New(db)) })
}

// txSay is tx with what is to be said of it; what happened is counted when it is committed.
func (s *Store) txSay(ctx context.Context, say *Say, body func(q *gen.Queries) error) error {
	return s.txSayAhead(ctx, say, nil, body)
}

func (s *Store) txSayAhead(
	ctx context.Context, say *Say, ahead func(q *gen.Queries), body func(q *gen.Queries) error,
) error {
	if err := s.txAhead(ctx, ahead, body); err != nil {
		return err
	}
	say.count()
	return s.readRest(ctx, say)
}

// readRest reads the payloads of what has gone out, and the histories of what the clock has moved, when the transaction
// is over: a server that sends thousands of them to a slow process, or to one that is frozen, must not hold the lock of
// dispatching meanwhile. Of a process that dies before it has read them the watchdog asks about the attempts when their
// lease is over, and the API about the jobs.
func (s *Store) readRest(ctx context.Context, say *Say) error {
	q := gen.New(s.pool)
	jobs, err := snapshots(ctx, q, say.changed)
	if err != nil {
		return pgpool.Classify(err)
	}
	say.Jobs = append(say.Jobs, jobs...)
	if len(say.out) == 0 {
		return nil
	}
	rows, err := q.JobsRunOrders(ctx, say.out)
	if err != nil {
		return fmt.Errorf("read run orders: %w", pgpool.Classify(err))
	}
	say.Runs = slices.Grow(say.Runs, len(rows))
	for _, row := range rows {
		say.Runs = append(say.Runs, RunOrder(row))
	}
	return nil
}
