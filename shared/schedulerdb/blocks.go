package schedulerdb

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/dispatch"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/internal/gen"
)

// findBlocks returns what blocks new jobs, other than a lack of room; nil: nothing does. It runs under the lock of the
// ledger.
func findBlocks(ctx context.Context, q *gen.Queries, jobs []jobevent.Created) (*dispatch.Blocks, error) {
	question, b := dispatch.Ask(jobs)
	if b == nil {
		return nil, nil
	}
	ends, err := q.JobsEnds(ctx, question.After)
	if err != nil {
		return nil, fmt.Errorf("read states of dependencies: %w", err)
	}
	for _, row := range ends {
		b.NoteEnd(row.JobID, jobstate.Status(row.Status))
	}
	arrived, err := q.OrderKnown(ctx, question.Predecessors)
	if err != nil {
		return nil, fmt.Errorf("look for predecessors: %w", err)
	}
	for _, id := range arrived {
		b.NoteArrived(id)
	}
	lines, err := q.OrderTaken(ctx, gen.OrderTakenParams{OrderingKeys: question.Keys, OwnerIDs: question.Owners})
	if err != nil {
		return nil, fmt.Errorf("read turns of ordering keys: %w", err)
	}
	for _, row := range lines {
		b.NoteLine(dispatch.OrderKey{Key: row.OrderingKey, Owner: row.OwnerID},
			dispatch.Line{HasTurn: row.HasTurn, YieldAt: row.YieldAt, First: row.FirstInLine})
	}
	b.Decide(jobs)
	return b, nil
}

// addBlocks writes what blocks a job into the statement to which the job was added last.
func addBlocks(p *gen.JobsInsertParams, b *dispatch.Blocks, job *jobevent.Created) {
	if b == nil {
		return
	}
	last := len(p.JobIDs) - 1
	setLast(&p.BlockedBys, last, b.By(job.JobID))
	setLast(&p.WaitsFors, last, int32Of(len(b.Dependencies[job.JobID])))
	setLast(&p.OrderingKeys, last, job.OrderingKey)
	setLast(&p.OrderNumbers, last, job.OrderNumber)
}

// setLast sets the value of the last row of a statement. In most batches all values are zero, and the array stays nil.
// Otherwise it begins with the first value other than zero, and entries that are missing at its end become null.
func setLast[T comparable](values *[]T, last int, value T) {
	var zero T
	if value == zero {
		return
	}
	*values = append(*values, make([]T, last-len(*values))...)
	*values = append(*values, value)
}

// insertBlocks writes the dependencies of inserted jobs, and the ordering gaps in front of them.
func insertBlocks(ctx context.Context, q *gen.Queries, b *dispatch.Blocks, l *dispatch.Ledger) error {
	var p gen.DependenciesInsertParams
	for id, after := range b.Dependencies {
		for _, d := range after {
			p.JobIDs, p.AfterIDs = append(p.JobIDs, id), append(p.AfterIDs, d.AfterID)
			p.Conditions = append(p.Conditions, string(d.Condition))
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
			return fmt.Errorf("insert ordering gaps: %w", err)
		}
	}
	for _, id := range b.TooLate {
		l.NoteEnded(id, nil, nil)
	}
	return nil
}

// closeGaps closes the ordering gaps that these jobs left until they arrived. The jobs behind a gap may get the turn
// now.
func closeGaps(ctx context.Context, q *gen.Queries, l *dispatch.Ledger, ids []uuid.UUID) error {
	rows, err := q.OrderGapsClose(ctx, ids)
	if err != nil {
		return fmt.Errorf("close ordering gaps: %w", err)
	}
	for _, row := range rows {
		l.NoteTurn(dispatch.OrderKey{Key: row.OrderingKey, Owner: row.OwnerID})
	}
	return nil
}

// closeGapOfUnusable closes the ordering gap of an unusable job. If the job's own predecessor has not arrived, it
// inserts a gap in front of the job instead.
func closeGapOfUnusable(ctx context.Context, q *gen.Queries, l *dispatch.Ledger, job jobevent.Created) error {
	if job.OrderingKey == "" || job.OrderAfter == nil || *job.OrderAfter == job.JobID {
		return closeGaps(ctx, q, l, []uuid.UUID{job.JobID})
	}
	arrived, err := q.OrderKnown(ctx, []uuid.UUID{*job.OrderAfter})
	if err != nil {
		return fmt.Errorf("look for the predecessor of an unusable job: %w", err)
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
		return fmt.Errorf("insert ordering gap: %w", err)
	}
	return nil
}

// settleBlocks writes what blocks new jobs, and notes the keys whose turns they change.
func settleBlocks(ctx context.Context, q *gen.Queries, b *dispatch.Blocks, l *dispatch.Ledger) error {
	if err := insertBlocks(ctx, q, b, l); err != nil {
		return err
	}
	if err := closeGaps(ctx, q, l, slices.Collect(maps.Keys(b.Arrived))); err != nil {
		return err
	}
	for _, key := range b.Overtaken {
		l.NoteTurn(key)
	}
	return nil
}
