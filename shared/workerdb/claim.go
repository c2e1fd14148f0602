package workerdb

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/workerdb/internal/gen"
)

// Order is a run order: one item of a run-job event.
type Order struct {
	Key
	TraceID   uuid.UUID
	Queue     string
	TimeoutMs int
	Cancel    bool      // settle the attempt as cancelled, do not start it
	ExpiresAt time.Time // from then on, by the database's clock, settle it as cancelled too; zero: never
}

// ClaimState is the result of a claim.
type ClaimState int

// The states of a claim.
const (
	Claimed       ClaimState = iota // this worker has it from now on
	Settled                         // it has an outcome: publish that again
	OpenElsewhere                   // another worker has claimed it
	OpenMine                        // this worker had claimed it before: it holds it, or the answer to the claim was lost
)

// Claim is the answer to one order.
type Claim struct {
	State   ClaimState
	Outcome Outcome   // only if Settled
	At      time.Time // the database's time, if the order expires and this worker has the attempt
}

// carefulClaims is how many claims expect known attempts after a claim that met one: redelivered records come many at a
// time.
const carefulClaims = 16

// LastClaim returns the number of the latest claim, for Heartbeat.Answered.
func (s *Store) LastClaim() int64 { return s.claims.Load() }

// Claim claims the attempts that no worker has claimed, and returns the results in the order of the orders. Only one
// order of an attempt gets Claimed: a second one in the batch gets OpenMine.
func (s *Store) Claim(ctx context.Context, workerID string, orders []Order) ([]Claim, error) {
	claims := make([]Claim, len(orders))
	params := insertParams(workerID, s.claims.Add(1), orders)
	if s.careful.Add(-1) < 0 {
		s.careful.Store(0)
		if all, err := s.insertNew(ctx, params); err != nil {
			return nil, fmt.Errorf("claim %d new attempts: %w", len(orders), pgpool.Classify(err))
		} else if all {
			return claims, nil
		}
	}
	rows, err := s.q.AttemptInsertMany(ctx, params)
	if err != nil {
		return nil, fmt.Errorf("claim %d attempts: %w", len(orders), pgpool.Classify(err))
	}
	inserted := make(map[Key]gen.AttemptInsertManyRow, len(rows))
	for _, row := range rows {
		inserted[Key{row.JobID, int(row.Attempt)}] = row
	}
	var missing []int // indexes into orders
	for i, o := range orders {
		row, ok := inserted[o.Key]
		switch {
		case !ok:
			missing = append(missing, i)
		case row.FinishedAt != nil:
			claims[i] = Claim{State: Settled, Outcome: unstarted(row, o.TraceID, workerID)}
		default:
			claims[i].At = row.At
		}
		delete(inserted, o.Key)
	}
	if len(missing) == 0 {
		return claims, nil
	}
	s.careful.Store(carefulClaims)
	if err := s.lookUp(ctx, workerID, orders, missing, claims); err != nil {
		return nil, err
	}
	return claims, nil
}

// lookUp fills in the claims of attempts that have a row already.
func (s *Store) lookUp(ctx context.Context, workerID string, orders []Order, missing []int, claims []Claim) error {
	keys := make([]Key, 0, len(missing))
	var cancels []Key
	for _, i := range missing {
		keys = append(keys, orders[i].Key)
		if orders[i].Cancel {
			cancels = append(cancels, orders[i].Key)
		}
	}
	if err := s.wantCancel(ctx, cancels); err != nil {
		return err
	}
	found, err := s.get(ctx, keys)
	if err != nil {
		return err
	}
	late := false // an attempt of this worker may expire
	for _, i := range missing {
		row, ok := found[orders[i].Key]
		switch {
		case !ok:
			return fmt.Errorf("claim attempt %v: its row is gone", orders[i].Key)
		case row.Outcome != nil:
			claims[i] = Claim{State: Settled, Outcome: outcomeOf(row)}
		case row.WorkerID == workerID:
			claims[i].State = OpenMine
			late = late || !orders[i].ExpiresAt.IsZero()
		default:
			claims[i].State = OpenElsewhere
		}
	}
	if late {
		return s.addTimes(ctx, claims, missing)
	}
	return nil
}

// addTimes writes the database's time into some of the claims.
func (s *Store) addTimes(ctx context.Context, claims []Claim, some []int) error {
	at, err := s.q.Now(ctx)
	if err != nil {
		return fmt.Errorf("read the time: %w", pgpool.Classify(err))
	}
	for _, i := range some {
		claims[i].At = at
	}
	return nil
}

// Cancel cancels attempts of any worker. An attempt that no worker has claimed is settled as cancelled, so that it
// never starts; Cancel returns its outcome, which the caller publishes. An open attempt is marked: its worker reads the
// mark with its next heartbeat.
func (s *Store) Cancel(ctx context.Context, workerID string, orders []Order) ([]Outcome, error) {
	orders = slices.Clone(orders)
	for i := range orders {
		orders[i].Cancel, orders[i].TimeoutMs = true, 1
	}
	rows, err := s.q.AttemptInsertMany(ctx, insertParams(workerID, 0, orders))
	if err != nil {
		return nil, fmt.Errorf("cancel %d attempts: %w", len(orders), pgpool.Classify(err))
	}
	var outcomes []Outcome
	open := map[Key]uuid.UUID{}
	for _, o := range orders {
		open[o.Key] = o.TraceID
	}
	for _, row := range rows {
		key := Key{row.JobID, int(row.Attempt)}
		outcomes = append(outcomes, unstarted(row, open[key], workerID))
		delete(open, key)
	}
	var keys []Key
	for key := range open {
		keys = append(keys, key)
	}
	return outcomes, s.wantCancel(ctx, keys)
}
