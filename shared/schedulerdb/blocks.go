package schedulerdb

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/dispatch"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobevent/emit"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/internal/gen"
)

// findBlocks finds out, under the lock of the ledger, what blocks new jobs beside room: nil, nothing.
func findBlocks(ctx context.Context, q *gen.Queries, jobs []jobevent.Created) (*dispatch.Blocks, error) {
	question, b := dispatch.Ask(jobs)
	if b == nil {
		return nil, nil
	}
	ends, err := q.JobsEnds(ctx, question.After)
	if err != nil {
		return nil, fmt.Errorf("read jobs that others wait for: %w", err)
	}
	for _, row := range ends {
		b.NoteEnd(row.JobID, jobstate.Status(row.Status))
	}
	arrived, err := q.OrderKnown(ctx, question.Predecessors)
	if err != nil {
		return nil, fmt.Errorf("read jobs that others come after: %w", err)
	}
	for _, id := range arrived {
		b.NoteArrived(id)
	}
	lines, err := q.OrderTaken(ctx, gen.OrderTakenParams{OrderingKeys: question.Keys, OwnerIDs: question.Owners})
	if err != nil {
		return nil, fmt.Errorf("read whose turn it is: %w", err)
	}
	for _, row := range lines {
		b.NoteLine(dispatch.OrderKey{Key: row.OrderingKey, Owner: row.OwnerID},
			dispatch.Line{HasTurn: row.HasTurn, First: row.FirstInLine})
	}
	b.Decide(jobs)
	return b, nil
}

// addBlocks adds what blocks a job to a statement to which the job has just been added.
func addBlocks(p *gen.JobsInsertParams, b *dispatch.Blocks, job *jobevent.Created) {
	if b == nil {
		return
	}
	last := len(p.JobIDs) - 1
	setLast(&p.BlockedBys, last, b.By(job.JobID))
	setLast(&p.WaitsFors, last, int32Of(len(b.Dependencies[job.JobID])))
	setLast(&p.RunsAnyways, last, job.RunAnyway)
	setLast(&p.OrderingKeys, last, job.OrderingKey)
	setLast(&p.OrderNumbers, last, job.OrderNumber)
}

// setLast sets the value of the last row of a statement. An array begins with the first row that has a value other than
// zero, and the entries that it lacks at its end are null: most batches have none.
func setLast[T comparable](values *[]T, last int, value T) {
	var zero T
	if value == zero {
		return
	}
	*values = append(*values, make([]T, last-len(*values))...)
	*values = append(*values, value)
}

// insertBlocks writes the dependencies of inserted jobs, and the gaps in front of them.
func insertBlocks(ctx context.Context, q *gen.Queries, b *dispatch.Blocks, l *dispatch.Ledger) error {
	var p gen.DependenciesInsertParams
	for id, after := range b.Dependencies {
		for _, afterID := range after {
			p.JobIDs, p.AfterIDs = append(p.JobIDs, id), append(p.AfterIDs, afterID)
		}
	}
	if len(p.JobIDs) > 0 {
		n, err := q.DependenciesInsert(ctx, p)
		if err != nil {
			return fmt.Errorf("insert dependencies: %w", err)
		}
		l.NoteDependencies(n)
	}
	var gaps gen.OrderGapsInsertParams
	for _, job := range b.Gaps {
		gaps.JobIDs, gaps.OrderAfters = append(gaps.JobIDs, job.JobID), append(gaps.OrderAfters, *job.OrderAfter)
		gaps.OrderingKeys, gaps.OwnerIDs = append(gaps.OrderingKeys, job.OrderingKey), append(gaps.OwnerIDs, job.OwnerID)
	}
	if len(gaps.JobIDs) > 0 {
		if err := q.OrderGapsInsert(ctx, gaps); err != nil {
			return fmt.Errorf("insert gaps of an order: %w", err)
		}
	}
	for _, id := range b.TooLate {
		l.NoteEnded(id, nil, nil)
	}
	return nil
}

// closeGaps closes the gaps that these jobs left while they were missing. The jobs behind them may have the turn now.
func closeGaps(ctx context.Context, q *gen.Queries, l *dispatch.Ledger, ids []uuid.UUID) error {
	rows, err := q.OrderGapsClose(ctx, ids)
	if err != nil {
		return fmt.Errorf("close gaps of an order: %w", err)
	}
	for _, row := range rows {
		l.NoteTurn(dispatch.OrderKey{Key: row.OrderingKey, Owner: row.OwnerID})
	}
	return nil
}

// closeGapOfUnusable closes the gap that the job left, unless its own predecessor is missing.
func closeGapOfUnusable(ctx context.Context, q *gen.Queries, l *dispatch.Ledger, job jobevent.Created) error {
	if job.OrderingKey == "" || job.OrderAfter == nil || *job.OrderAfter == job.JobID {
		return closeGaps(ctx, q, l, []uuid.UUID{job.JobID})
	}
	arrived, err := q.OrderKnown(ctx, []uuid.UUID{*job.OrderAfter})
	if err != nil {
		return fmt.Errorf("read the job that an unusable one comes after: %w", err)
	}
	if len(arrived) > 0 {
		return closeGaps(ctx, q, l, []uuid.UUID{job.JobID})
	}
	err = q.OrderGapsInsert(ctx, gen.OrderGapsInsertParams{
		OrderAfters: []uuid.UUID{*job.OrderAfter}, JobIDs: []uuid.UUID{job.JobID},
		OrderingKeys: []string{jobevent.CleanText(job.OrderingKey, nameMost)},
		OwnerIDs:     []string{jobevent.CleanText(job.OwnerID, nameMost)},
	})
	if err != nil {
		return fmt.Errorf("insert gap of an order: %w", err)
	}
	return nil
}

// settleBlocks writes what blocks new jobs, and at once releases those that need not wait.
func (s *Store) settleBlocks(
	ctx context.Context, q *gen.Queries, b *dispatch.Blocks, l *dispatch.Ledger,
) ([]emit.Snapshot, error) {
	if err := insertBlocks(ctx, q, b, l); err != nil {
		return nil, err
	}
	if err := closeGaps(ctx, q, l, slices.Collect(maps.Keys(b.Arrived))); err != nil {
		return nil, err
	}
	return s.release(ctx, q, "ingest", l)
}
