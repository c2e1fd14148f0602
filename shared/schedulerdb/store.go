// Package schedulerdb is the store of the scheduler's functions: jobs, their attempts and their order, in the database
// jobweaver_scheduler. A method runs one transaction and returns the effects that its caller has to publish. The
// package dispatch decides which jobs go out.
package schedulerdb

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/jobweaver/jobweaver/shared/dispatch"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// Config are the scheduler's settings.
type Config struct {
	Lease   time.Duration `envconfig:"LEASE" default:"15s" desc:"how long watchdog waits for a report of an attempt before it asks about it"`
	MaxLost int           `envconfig:"MAX_LOST" default:"3" desc:"how many times in a row a job may be lost before it fails"`

	NoWorkerTimeout time.Duration `envconfig:"NO_WORKER_TIMEOUT" default:"24h" desc:"how long a job waits for a worker that runs its type before it fails; 0: without end"`
}

const (
	// silentAfter is how long a worker counts as live after its last heartbeat.
	silentAfter = 10 * time.Second
	// callbackGrace is how long after the deadline of a callback the API is asked whether the callback has come: the clock
	// of the outside system may be a little behind.
	callbackGrace = time.Second
	// transactionTimeout bounds how long a process that freezes within a transaction can hold the lock of the ledger.
	transactionTimeout = 8 * time.Second
	// maxRate bounds the attempts a second that a worker can report to finish.
	maxRate = 1e6
)

// Store is the scheduler's database.
type Store struct {
	pool     *pgxpool.Pool
	cfg      Config
	cohort   int                               // the most members of a cohort
	controls atomic.Pointer[dispatch.Controls] // the last ones that were read
	walks    struct {
		sync.Mutex
		walk
		kinds map[string]string // up to which lane the look for jobs without a worker has come, by queue
	}
}

func (c Config) check() error {
	switch {
	case c.Lease <= 0:
		return fmt.Errorf("LEASE: %s is not positive", c.Lease)
	case c.MaxLost < 0 || c.MaxLost > math.MaxInt16:
		return fmt.Errorf("MAX_LOST: %d is not from 0 to %d", c.MaxLost, math.MaxInt16)
	case c.NoWorkerTimeout < 0:
		return fmt.Errorf("NO_WORKER_TIMEOUT: %s is negative", c.NoWorkerTimeout)
	}
	return nil
}

// NewestOfSchema is what the newest migration brings that the store needs. Open waits for a database to have it.
const NewestOfSchema = "ended_cohorts"

// Open connects to the database at url. An error about a setting begins with the setting's name.
func Open(ctx context.Context, url string, cfg Config) (*Store, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	pool, err := pgpool.Open(ctx, url, pgpool.ApplicationName("jobweaver-scheduler"), pgpool.IndexOnly(),
		pgpool.PlannedOnce(), pgpool.TransactionTimeout(transactionTimeout))
	if err != nil {
		return nil, err
	}
	if err := pgpool.AwaitSchema(ctx, pool, "jobweaver_scheduler", NewestOfSchema); err != nil {
		pool.Close()
		return nil, fmt.Errorf("open jobweaver_scheduler: %w", err)
	}
	return &Store{pool: pool, cfg: cfg, cohort: jobevent.BlockSize}, nil
}

// Close ends all connections.
func (s *Store) Close() { s.pool.Close() }

// Connections returns the figures of the connection pool.
func (s *Store) Connections() telemetry.Pool { return pgpool.Figures(s.pool) }

// Ping returns an error unless the database answers and accepts writes.
func (s *Store) Ping(ctx context.Context) error { return pgpool.Writable(ctx, s.pool) }

// tx runs a transaction that takes no part in dispatching.
func (s *Store) tx(ctx context.Context, body func(q *gen.Queries) error) error {
	return pgpool.Tx(ctx, s.pool, func(tx pgx.Tx) error { return body(gen.New(tx)) })
}

// step is a transaction that may dispatch. Its Queries are sent at once. Queries on last return nothing: they travel
// with COMMIT, or with flush before a statement that has to see their effect.
type step struct {
	*gen.Queries
	last  *gen.Queries
	flush func(context.Context) error
}

// locked runs a transaction that holds the lock of the ledger, and does not dispatch.
func (s *Store) locked(ctx context.Context, body func(q *gen.Queries) error) error {
	return s.step(ctx, &result{}, nil, func(t step) error {
		if _, err := t.DispatchLock(ctx); err != nil {
			return fmt.Errorf("lock ledger: %w", err)
		}
		return body(t.Queries)
	})
}

// step runs such a transaction. The statements that first queues travel with BEGIN; first may be nil. After the commit,
// step adds the transaction to the metrics and reads the rest of the result.
func (s *Store) step(ctx context.Context, r *result, first func(*pgx.Batch), body func(t step) error) error {
	if first == nil {
		first = func(*pgx.Batch) {}
	}
	err := pgpool.TxInBatches(ctx, s.pool, first, func(now pgpool.DB, later *pgpool.Later) error {
		return body(step{gen.New(now), gen.New(later), later.Flush})
	})
	if err != nil {
		return err
	}
	r.count()
	return s.readRest(ctx, r)
}
