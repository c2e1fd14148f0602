// Package workerdb is the workers' store, the database jobweaver_worker. Its rows alone decide which worker runs an
// attempt and what the outcome is.
//
// Why open attempts are listed by claim: docs/decisions/workers.md#a-worker-lists-its-open-attempts-claim-by-claim
package workerdb

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/nullable"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/telemetry"
	"github.com/jobweaver/jobweaver/shared/workerdb/internal/gen"
)

const (
	// Silence is the age of a worker's last heartbeat at which other workers settle its attempts as lost. A worker that
	// has sent no heartbeat for that long starts no attempt and reaps none.
	Silence = 10 * time.Second

	lease     = 15 * time.Second // how far past its timeout an attempt must be before another worker ends it
	maxReaped = 1000             // attempts that one call of Reap settles, of each kind
)

// Kinds of an Outcome that are not a jobevent.Kind.
const (
	Completed jobevent.Kind = "completed"
	Waiting   jobevent.Kind = "waiting"
)

// Store is the database jobweaver_worker. Its errors wrap jobevent.ErrInvalid if the input can never be stored. Any
// other error may be temporary.
type Store struct {
	pool *pgxpool.Pool
	q    *gen.Queries

	claims atomic.Int64 // the number of the latest claim
}

// NewestOfSchema is a view of the newest migration. Open waits for a database to have it.
const NewestOfSchema = "attempts"

// Open connects to the database at url.
func Open(ctx context.Context, url string) (*Store, error) {
	pool, err := pgpool.Open(ctx, url, pgpool.ApplicationName("jobweaver-worker"), pgpool.IndexOnly(),
		pgpool.PlannedOnce(), pgpool.TransactionTimeout(Silence*4/5))
	if err != nil {
		return nil, err
	}
	if err := pgpool.AwaitSchema(ctx, pool, "jobweaver_worker", NewestOfSchema); err != nil {
		pool.Close()
		return nil, fmt.Errorf("open jobweaver_worker: %w", err)
	}
	return &Store{pool: pool, q: gen.New(pool)}, nil
}

// Close ends all connections.
func (s *Store) Close() { s.pool.Close() }

// Connections returns the figures of the connection pool.
func (s *Store) Connections() telemetry.Pool { return pgpool.Figures(s.pool) }

// Ping returns an error unless the database answers and accepts writes.
func (s *Store) Ping(ctx context.Context) error { return pgpool.Writable(ctx, s.pool) }

// Key names an attempt.
type Key struct {
	JobID   uuid.UUID
	Attempt int
}

// Compare orders keys as every batch locks them.
func (k Key) Compare(other Key) int {
	return cmp.Or(bytes.Compare(k.JobID[:], other.JobID[:]), cmp.Compare(k.Attempt, other.Attempt))
}

// Outcome is the outcome of an attempt.
type Outcome struct {
	Key
	TraceID         uuid.UUID
	WorkerID        string        // the worker that claimed the attempt
	RanBy           string        // the pull worker to which it gave the attempt; not stored
	Kind            jobevent.Kind // or Completed, Waiting
	StartedAt       time.Time     // zero: never started
	FinishedAt      time.Time
	Output          json.RawMessage // completed only; may be nil
	ErrorCode       string          // failed and lost have one
	Message         string
	Retryable       bool
	RetryAfter      time.Duration // 0: as the job's retry policy has it
	CallbackTimeout time.Duration // waiting only
}

func outcomeOf(row gen.ExecutionAttempt) Outcome {
	o := Outcome{
		Key: keyOf(row), TraceID: row.TraceID, WorkerID: row.WorkerID, Output: row.Output, Retryable: row.Retryable,
		RetryAfter: time.Duration(row.RetryAfterMs) * time.Millisecond,
		ErrorCode:  nullable.Value(row.ErrorCode), Message: nullable.Value(row.ErrorMessage),
		StartedAt: nullable.Value(row.StartedAt), FinishedAt: nullable.Value(row.FinishedAt),
		CallbackTimeout: time.Duration(nullable.Value(row.CallbackTimeoutMs)) * time.Millisecond,
	}
	o.Kind = jobevent.Kind(nullable.Value(row.Outcome))
	return o
}

func outcomesOf(rows []gen.ExecutionAttempt) []Outcome {
	outcomes := make([]Outcome, len(rows))
	for i, row := range rows {
		outcomes[i] = outcomeOf(row)
	}
	return outcomes
}

func keyOf(row gen.ExecutionAttempt) Key { return Key{row.JobID, int(row.Attempt)} }

// columns returns the columns of the keys, in the order in which rows are locked.
func columns(keys []Key) (jobIDs []uuid.UUID, attempts []int32) {
	keys = slices.Clone(keys)
	slices.SortFunc(keys, Key.Compare)
	jobIDs, attempts = make([]uuid.UUID, len(keys)), make([]int32, len(keys))
	for i, k := range keys {
		jobIDs[i], attempts[i] = k.JobID, int32(k.Attempt)
	}
	return jobIDs, attempts
}

// ago returns how long before now t lies, in microseconds; -1 for the zero time. Both are instants of this process's
// clock, and the database subtracts the result from an instant of its own clock. A start and an end must use the same
// now: otherwise the time between two readings of the clock is missing from the duration.
func ago(now, t time.Time) int64 {
	if t.IsZero() {
		return -1
	}
	return max(0, now.Sub(t).Microseconds())
}
