package workerdb

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/nullable"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/workerdb/internal/gen"
)

// Settle writes outcomes of this worker's open attempts. It returns the outcomes that the rows have afterwards, in the
// same order: if another worker has settled an attempt before, that outcome counts. The outcome of an attempt that
// another worker holds has no kind: the caller does not publish it. Settle converts the instants of outcomes from this
// process's clock to the database's.
func (s *Store) Settle(ctx context.Context, workerID string, outcomes []Outcome) ([]Outcome, error) {
	settled := slices.Clone(outcomes)
	rest, err := s.complete(ctx, workerID, settled)
	if err != nil {
		return nil, fmt.Errorf("complete %d attempts: %w", len(outcomes), pgpool.Classify(err))
	}
	if len(rest) == 0 {
		return settled, nil
	}
	if rest, err = s.settleApart(ctx, workerID, settled, rest); err != nil || len(rest) == 0 {
		return settled, err
	}
	keys := make([]Key, len(rest))
	for at, i := range rest {
		keys[at] = settled[i].Key
	}
	found, err := s.get(ctx, keys)
	if err != nil {
		return nil, err
	}
	for _, i := range rest {
		outcome := found[settled[i].Key]
		outcome.TraceID = settled[i].TraceID
		if outcome.WorkerID == workerID {
			outcome.RanBy = settled[i].RanBy
		}
		settled[i] = outcome
	}
	return settled, nil
}

// settleApart settles attempts in rows of their own, with their outcome if they have none yet. It returns the indexes
// of those that have an outcome already, or that this worker does not hold.
func (s *Store) settleApart(
	ctx context.Context, workerID string, outcomes []Outcome, some []int,
) (left []int, err error) {
	all := make([]moving, len(some))
	for at, i := range some {
		all[at].Outcome = outcomes[i]
	}
	moved, err := s.move(ctx, workerID, all)
	if err != nil {
		return nil, err
	}
	settled := make(map[Key]Outcome, len(some))
	for _, m := range moved {
		settled[m.Key] = m.Outcome
	}
	var part []Outcome
	for _, i := range some {
		if _, ok := settled[outcomes[i].Key]; !ok {
			part = append(part, outcomes[i])
		}
	}
	if len(part) > 0 {
		rows, err := s.q.AttemptSettleMany(ctx, settleParams(workerID, part))
		if err != nil {
			return nil, fmt.Errorf("settle %d attempts: %w", len(part), pgpool.Classify(err))
		}
		for _, row := range rows {
			settled[Key{row.JobID, int(row.Attempt)}] = Outcome{
				StartedAt: nullable.Value(row.StartedAt), FinishedAt: nullable.Value(row.FinishedAt),
			}
		}
	}
	for _, i := range some {
		o := &outcomes[i]
		if at, ok := settled[o.Key]; ok {
			o.StartedAt, o.FinishedAt, o.WorkerID = at.StartedAt, at.FinishedAt, workerID
		} else {
			left = append(left, i)
		}
	}
	return left, nil
}

// plain reports whether the attempt completed so soon that no heartbeat has given it a row, with a small output and no
// other detail.
func (o Outcome) plain() bool {
	return o.Kind == Completed && !o.StartedAt.IsZero() && o.FinishedAt.Sub(o.StartedAt) < soon &&
		len(o.Output) <= smallOutput && o.ErrorCode == "" && o.Message == "" && !o.Retryable && o.RetryAfter == 0 &&
		o.CallbackTimeout == 0
}

const (
	// soon is how long an attempt runs before a heartbeat gives it a row, which has its start.
	soon = 100 * time.Millisecond
	// smallOutput bounds the outputs in a block, in bytes: each statement that completes attempts of the block writes all
	// of them again, and in the worst case there are 64 such statements.
	smallOutput = 64
)

// complete writes the plain outcomes of attempts that have no rows of their own, and returns the indexes of the
// outcomes that are left. If not all of them are open in a block, those of the block are left.
func (s *Store) complete(ctx context.Context, workerID string, outcomes []Outcome) (rest []int, err error) {
	plain := make([]int, 0, len(outcomes))
	for i := range outcomes {
		if outcomes[i].plain() {
			plain = append(plain, i)
		} else {
			rest = append(rest, i)
		}
	}
	if len(plain) == 0 {
		return rest, nil
	}
	sent := time.Now()
	done, err := s.q.BlocksComplete(ctx, completeParams(workerID, outcomes, plain, sent))
	if err != nil {
		return nil, err
	}
	at := make(map[block]time.Time, len(done))
	for _, row := range done {
		at[block{row.BlockID, row.Attempt}] = row.At
	}
	for _, i := range plain {
		o := &outcomes[i]
		now, ok := at[o.block()]
		if !ok {
			rest = append(rest, i)
			continue
		}
		o.StartedAt, o.FinishedAt, o.WorkerID = onClock(o.StartedAt, sent, now), onClock(o.FinishedAt, sent, now), workerID
	}
	return rest, nil
}

// completeParams returns the columns of plain outcomes, one an attempt, and sorts these.
func completeParams(workerID string, outcomes []Outcome, plain []int, now time.Time) gen.BlocksCompleteParams {
	unique, of := blocksOf(plain, func(i *int) Key { return outcomes[*i].Key })
	n := len(unique)
	p := gen.BlocksCompleteParams{
		WorkerID: workerID, BlockIDs: of.ids, BlockAttempts: of.attempts, Wanted: of.wanted, Befores: of.befores,
		Untils: of.untils, Places: make([]int16, n), StartedAgos: make([]int64, n), FinishedAgos: make([]int64, n),
		Outputs: make([]json.RawMessage, n),
	}
	for at, i := range unique {
		o := &outcomes[i]
		p.Places[at], p.Outputs[at] = int16(jobevent.PlaceInBlock(o.JobID)), o.Output
		p.StartedAgos[at], p.FinishedAgos[at] = ago(now, o.StartedAt), ago(now, o.FinishedAt)
	}
	return p
}

func settleParams(workerID string, outcomes []Outcome) gen.AttemptSettleManyParams {
	outcomes = slices.Clone(outcomes)
	slices.SortFunc(outcomes, func(a, b Outcome) int { return a.Compare(b.Key) })
	p := gen.AttemptSettleManyParams{WorkerID: workerID}
	now := time.Now()
	for _, o := range outcomes {
		p.JobIDs = append(p.JobIDs, o.JobID)
		p.Attempts = append(p.Attempts, int32(o.Attempt))
		p.Outcomes = append(p.Outcomes, string(o.Kind))
		p.StartedAgos = append(p.StartedAgos, ago(now, o.StartedAt))
		p.FinishedAgos = append(p.FinishedAgos, max(0, ago(now, o.FinishedAt)))
		p.Outputs = append(p.Outputs, o.Output)
		p.ErrorCodes = append(p.ErrorCodes, o.ErrorCode)
		p.Messages = append(p.Messages, o.Message)
		p.Retryables = append(p.Retryables, o.Retryable)
		p.RetryAfterMss = append(p.RetryAfterMss, o.RetryAfter.Milliseconds())
		p.CallbackTimeoutMss = append(p.CallbackTimeoutMss, o.CallbackTimeout.Milliseconds())
	}
	return p
}

// Leave writes that a worker has stopped. It settles the worker's open attempts as interrupted, such as those of a
// claim without an answer, and returns their outcomes, which the caller publishes.
func (s *Store) Leave(ctx context.Context, workerID string) ([]Outcome, error) {
	for more := true; more; {
		var err error
		if more, err = s.moveListed(ctx, workerID); err != nil {
			return nil, err
		}
	}
	rows, err := s.q.AttemptSettleLeft(ctx, workerID)
	if err != nil {
		return nil, fmt.Errorf("settle open attempts of worker %s: %w", workerID, pgpool.Classify(err))
	}
	if err := s.q.WorkerLeave(ctx, workerID); err != nil {
		return nil, fmt.Errorf("write that worker %s left: %w", workerID, pgpool.Classify(err))
	}
	return outcomesOf(rows), nil
}
