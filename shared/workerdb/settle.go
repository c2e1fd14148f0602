package workerdb

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

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
	part := make([]Outcome, len(rest))
	for at, i := range rest {
		part[at] = settled[i]
	}
	rows, err := s.q.AttemptSettleMany(ctx, settleParams(workerID, part))
	if err != nil {
		return nil, fmt.Errorf("settle %d attempts: %w", len(part), pgpool.Classify(err))
	}
	mine := make(map[Key]gen.AttemptSettleManyRow, len(rows))
	for _, row := range rows {
		mine[Key{row.JobID, int(row.Attempt)}] = row
	}
	var missing []int
	for _, i := range rest {
		row, ok := mine[settled[i].Key]
		if !ok {
			missing = append(missing, i)
			continue
		}
		settled[i].StartedAt, settled[i].FinishedAt = nullable.Value(row.StartedAt), nullable.Value(row.FinishedAt)
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

// plain reports whether the attempt completed so soon that no heartbeat has written its start, with no other detail.
func (o Outcome) plain() bool {
	return o.Kind == Completed && !o.StartedAt.IsZero() && o.FinishedAt.Sub(o.StartedAt) < soon &&
		o.ErrorCode == "" && o.Message == "" && !o.Retryable && o.RetryAfter == 0 && o.CallbackTimeout == 0
}

// soon is how long an attempt runs before a heartbeat writes its start: so most rows are written twice, not three
// times.
const soon = 100 * time.Millisecond

// complete writes the plain outcomes with one cheaper statement, and returns the indexes of the outcomes that are left.
// If a row is not open or has a start, all are left.
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
	slices.SortFunc(plain, func(a, b int) int { return outcomes[a].Compare(outcomes[b].Key) })
	p := completeParams(workerID, outcomes, plain)
	done, err := s.q.AttemptCompleteMany(ctx, p)
	if err != nil {
		return nil, err
	}
	if int(done.Attempts) < len(plain) {
		return append(rest, plain...), nil
	}
	for at, i := range plain {
		o := &outcomes[i]
		o.StartedAt = done.At.Add(-time.Duration(p.StartedAgos[at]) * time.Microsecond)
		o.FinishedAt = done.At.Add(-time.Duration(p.FinishedAgos[at]) * time.Microsecond)
		o.WorkerID = workerID
	}
	return rest, nil
}

func completeParams(workerID string, outcomes []Outcome, plain []int) gen.AttemptCompleteManyParams {
	n := len(plain)
	p := gen.AttemptCompleteManyParams{
		WorkerID: workerID, JobIDs: make([]uuid.UUID, n), Attempts: make([]int32, n),
		StartedAgos: make([]int64, n), FinishedAgos: make([]int64, n), Outputs: make([]json.RawMessage, n),
	}
	now := time.Now()
	for at, i := range plain {
		o := &outcomes[i]
		p.JobIDs[at], p.Attempts[at], p.Outputs[at] = o.JobID, int32(o.Attempt), o.Output
		p.StartedAgos[at] = max(0, now.Sub(o.StartedAt).Microseconds())
		p.FinishedAgos[at] = max(0, now.Sub(o.FinishedAt).Microseconds())
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
	rows, err := s.q.AttemptSettleLeft(ctx, workerID)
	if err != nil {
		return nil, fmt.Errorf("settle open attempts of worker %s: %w", workerID, pgpool.Classify(err))
	}
	if err := s.q.WorkerLeave(ctx, workerID); err != nil {
		return nil, fmt.Errorf("write that worker %s left: %w", workerID, pgpool.Classify(err))
	}
	return outcomesOf(rows), nil
}
