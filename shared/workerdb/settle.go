package workerdb

import (
	"context"
	"fmt"
	"slices"

	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/workerdb/internal/gen"
)

// Settle writes outcomes of this worker's open attempts, and returns for each the one that is in the
// table then, in the same order: its own, or what somebody else has put there first (which counts).
// An attempt that this worker does not have gets an outcome without a kind: nothing is said of it.
// The instants of an outcome are taken by how long ago they are, and come back in database time.
func (s *Store) Settle(ctx context.Context, workerID string, outcomes []Outcome) ([]Outcome, error) {
	rows, err := s.q.AttemptSettleMany(ctx, settleParams(workerID, outcomes))
	if err != nil {
		return nil, fmt.Errorf("settle %d attempts: %w", len(outcomes), pgpool.Classify(err))
	}
	mine := make(map[Key]gen.AttemptSettleManyRow, len(rows))
	for _, row := range rows {
		mine[Key{row.JobID, int(row.Attempt)}] = row
	}
	settled := slices.Clone(outcomes)
	var missing []int
	for i := range settled {
		row, ok := mine[settled[i].Key]
		if !ok {
			missing = append(missing, i)
			continue
		}
		settled[i].StartedAt, settled[i].FinishedAt = orZero(row.StartedAt), orZero(row.FinishedAt)
		settled[i].WorkerID = workerID
	}
	if len(missing) == 0 {
		return settled, nil
	}
	keys := make([]Key, len(missing))
	for at, i := range missing {
		keys[at] = settled[i].Key
	}
	found, err := s.get(ctx, keys)
	if err != nil {
		return nil, err
	}
	for _, i := range missing {
		settled[i] = outcomeOf(found[settled[i].Key])
	}
	return settled, nil
}

func settleParams(workerID string, outcomes []Outcome) gen.AttemptSettleManyParams {
	outcomes = slices.Clone(outcomes)
	slices.SortFunc(outcomes, func(a, b Outcome) int { return a.Compare(b.Key) })
	p := gen.AttemptSettleManyParams{WorkerID: workerID}
	for _, o := range outcomes {
		p.JobIDs = append(p.JobIDs, o.JobID)
		p.Attempts = append(p.Attempts, int32(o.Attempt))
		p.Outcomes = append(p.Outcomes, string(o.Kind))
		p.StartedAgos = append(p.StartedAgos, ago(o.StartedAt))
		p.FinishedAgos = append(p.FinishedAgos, max(0, ago(o.FinishedAt)))
		p.Outputs = append(p.Outputs, o.Output)
		p.ErrorCodes = append(p.ErrorCodes, o.ErrorCode)
		p.Messages = append(p.Messages, o.Message)
		p.Retryables = append(p.Retryables, o.Retryable)
		p.RetryAfterMss = append(p.RetryAfterMss, o.RetryAfter.Milliseconds())
		p.CallbackTimeoutMss = append(p.CallbackTimeoutMss, o.CallbackTimeout.Milliseconds())
	}
	return p
}

// Leave ends a worker that has finished: an attempt that it still has open, such as one whose claim was
// never answered, is settled as interrupted and returned: say it.
func (s *Store) Leave(ctx context.Context, workerID string) ([]Outcome, error) {
	rows, err := s.q.AttemptSettleLeft(ctx, workerID)
	if err != nil {
		return nil, fmt.Errorf("settle what worker %s left: %w", workerID, pgpool.Classify(err))
	}
	if err := s.q.WorkerLeave(ctx, workerID); err != nil {
		return nil, fmt.Errorf("leave as worker %s: %w", workerID, pgpool.Classify(err))
	}
	return outcomesOf(rows), nil
}
