package workerdb

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/workerdb/internal/gen"
)

// Order is a run order: one item of a run-job event.
type Order struct {
	Key
	TraceID   uuid.UUID
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

// LastClaim returns the number of the latest claim, for Heartbeat.Answered.
func (s *Store) LastClaim() int64 { return s.claims.Load() }

// Claim claims the attempts that no worker has claimed, and returns the results in the order of the orders. Only one
// order of an attempt gets Claimed: a second one in the batch gets OpenMine.
func (s *Store) Claim(ctx context.Context, workerID string, orders []Order) ([]Claim, error) {
	claims := make([]Claim, len(orders))
	var at time.Time
	if slices.ContainsFunc(orders, func(o Order) bool { return !o.ExpiresAt.IsZero() }) {
		var err error
		if at, err = s.q.Now(ctx); err != nil {
			return nil, fmt.Errorf("read the time: %w", pgpool.Classify(err))
		}
	}
	var runnable, rest []indexed
	for i := range orders {
		claims[i].At = at
		one := indexed{orders[i].Key, i}
		if _, ends := orders[i].unstarted(at); ends {
			rest = append(rest, one)
		} else {
			runnable = append(runnable, one)
		}
	}
	left, err := s.claimBlocks(ctx, workerID, orders, runnable)
	if err != nil {
		return nil, fmt.Errorf("claim %d attempts: %w", len(orders), err)
	}
	if rest = append(rest, left...); len(rest) == 0 {
		return claims, nil
	}
	if rest, err = s.claimApart(ctx, workerID, orders, rest, claims); err != nil {
		return nil, fmt.Errorf("claim %d attempts: %w", len(orders), err)
	}
	return claims, s.lookUp(ctx, workerID, orders, rest, claims)
}

// indexed is the key of an order, and its index in a batch.
type indexed struct {
	Key
	at int
}

// unstarted returns the outcome, without its instant, of an order whose attempt must not start, by an instant of the
// database's clock.
func (o *Order) unstarted(at time.Time) (Outcome, bool) {
	outcome := Outcome{Key: o.Key, TraceID: o.TraceID}
	switch {
	case o.Cancel:
		outcome.ErrorCode, outcome.Message = string(apierror.Cancelled), "cancelled before it started"
	case !o.ExpiresAt.IsZero() && !o.ExpiresAt.After(at):
		outcome.ErrorCode, outcome.Message = string(apierror.Expired), "not started before its expiresAt"
	default:
		return outcome, false
	}
	outcome.Kind = jobevent.KindCancelled
	return outcome, true
}

// claimBlocks claims attempts by bits of their blocks, and returns those that it did not get: some of their block were
// taken before.
func (s *Store) claimBlocks(
	ctx context.Context, workerID string, orders []Order, some []indexed,
) (left []indexed, err error) {
	if len(some) == 0 {
		return nil, nil
	}
	all := slices.Clone(some)
	all, of := blocksOf(all, func(o *indexed) Key { return o.Key })
	p := gen.BlocksClaimParams{
		WorkerID: workerID, Number: s.claims.Add(1), BlockIDs: of.ids, BlockAttempts: of.attempts, Wanted: of.wanted,
	}
	p.JobIDs, p.Attempts, p.TraceIDs = listed(all, orders)
	rows, err := s.q.BlocksClaim(ctx, p)
	if err != nil {
		return nil, pgpool.Classify(err)
	}
	if len(rows) == len(of.ids) && len(all) == len(some) {
		return nil, nil
	}
	got := make(map[block]bool, len(rows))
	for _, row := range rows {
		got[block{row.BlockID, row.Attempt}] = true
	}
	first := make(map[Key]int, len(all))
	for _, o := range all {
		first[o.Key] = o.at
	}
	for _, o := range some {
		if !got[o.block()] || first[o.Key] != o.at {
			left = append(left, o)
		}
	}
	return left, nil
}

// listed returns the columns of a row of claims.
func listed(all []indexed, orders []Order) (jobIDs []uuid.UUID, attempts []int32, traceIDs []uuid.UUID) {
	jobIDs, attempts, traceIDs = make([]uuid.UUID, len(all)), make([]int32, len(all)), make([]uuid.UUID, len(all))
	for i, o := range all {
		jobIDs[i], attempts[i], traceIDs[i] = o.JobID, int32(o.Key.Attempt), orders[o.at].TraceID
	}
	return jobIDs, attempts, traceIDs
}

// claimApart claims attempts with rows of their own, and settles those that must not start. It fills in the claims of
// those that it got, and returns the others.
func (s *Store) claimApart(
	ctx context.Context, workerID string, orders []Order, some []indexed, claims []Claim,
) (left []indexed, err error) {
	var open []indexed
	all := make([]moving, len(some))
	for i, o := range some {
		outcome, ends := orders[o.at].unstarted(claims[o.at].At)
		all[i] = moving{Outcome: outcome, timeoutMs: orders[o.at].TimeoutMs}
		if !ends {
			open = append(open, o)
		}
	}
	moved, err := s.take(ctx, workerID, orders, open, all)
	if err != nil {
		return nil, err
	}
	for _, o := range some {
		outcome, ok := moved[o.Key]
		if !ok {
			left = append(left, o)
			continue
		}
		delete(moved, o.Key)
		if outcome.Kind != "" {
			claims[o.at] = Claim{State: Settled, Outcome: outcome}
		}
	}
	return left, nil
}

// take gives attempts that no worker has taken rows of their own, and returns those. The open ones among them are
// listed as a claim.
func (s *Store) take(
	ctx context.Context, workerID string, orders []Order, open []indexed, all []moving,
) (taken map[Key]Outcome, err error) {
	p := moveParams(workerID, all)
	p.Takes = true
	claim := gen.ClaimInsertParams{WorkerID: workerID}
	if len(open) > 0 {
		claim.Number = s.claims.Add(1)
		claim.JobIDs, claim.Attempts, claim.TraceIDs = listed(open, orders)
	}
	moved, err := s.moveAs(ctx, p, all, func(b *pgx.Batch) {
		if len(open) > 0 {
			b.Queue(gen.ClaimInsert, claim.WorkerID, claim.Number, claim.JobIDs, claim.Attempts, claim.TraceIDs)
		}
		b.Queue(gen.BlocksEnsure, p.BlockIDs, p.BlockAttempts)
	})
	taken = make(map[Key]Outcome, len(moved))
	for i := range moved {
		moved[i].WorkerID = workerID
		taken[moved[i].Key] = moved[i].Outcome
	}
	return taken, err
}

// lookUp fills in the claims of attempts that were taken before.
func (s *Store) lookUp(ctx context.Context, workerID string, orders []Order, some []indexed, claims []Claim) error {
	if len(some) == 0 {
		return nil
	}
	keys := make([]Key, 0, len(some))
	var cancels []Key
	for _, o := range some {
		keys = append(keys, o.Key)
		if orders[o.at].Cancel {
			cancels = append(cancels, o.Key)
		}
	}
	if err := s.wantCancel(ctx, cancels); err != nil {
		return err
	}
	found, err := s.get(ctx, keys)
	if err != nil {
		return err
	}
	for _, o := range some {
		outcome, ok := found[o.Key]
		switch {
		case !ok:
			return fmt.Errorf("claim attempt %v: its row is gone", o.Key)
		case outcome.Kind != "":
			outcome.TraceID = orders[o.at].TraceID
			claims[o.at] = Claim{State: Settled, Outcome: outcome}
		case outcome.WorkerID == workerID:
			claims[o.at].State = OpenMine
		default:
			claims[o.at].State = OpenElsewhere
		}
	}
	return nil
}

// Cancel cancels attempts of any worker. An attempt that no worker has claimed is settled as cancelled, so that it
// never starts; Cancel returns its outcome, which the caller publishes. An open attempt is marked: its worker reads the
// mark with its next heartbeat.
func (s *Store) Cancel(ctx context.Context, workerID string, orders []Order) ([]Outcome, error) {
	all := make([]moving, len(orders))
	for i, o := range orders {
		o.Cancel = true
		all[i].Outcome, _ = o.unstarted(time.Time{})
	}
	taken, err := s.take(ctx, workerID, nil, nil, all)
	if err != nil {
		return nil, fmt.Errorf("cancel %d attempts: %w", len(orders), err)
	}
	var open []Key
	for _, o := range orders {
		if _, ok := taken[o.Key]; !ok {
			open = append(open, o.Key)
		}
	}
	return slices.Collect(maps.Values(taken)), s.wantCancel(ctx, open)
}
