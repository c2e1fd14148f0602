package schedulerdb

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/dispatch"
	"github.com/jobweaver/jobweaver/shared/nullable"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/emit"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// result has the effects of a transaction, and the jobs that must be read after its commit.
type result struct {
	emit.Effects

	sentOut []uuid.UUID // dispatched jobs; read into Runs after the commit
	changed []uuid.UUID // jobs that the clock made ready; read into Jobs after the commit

	// For the metrics.
	transitions []dispatch.Transition
	askedAgain  []string // the queue of each attempt that was asked about; few
}

// count adds a committed transaction to the metrics.
func (r *result) count() {
	for _, t := range r.transitions {
		telemetry.JobTransitions(t.JobType, string(t.To), t.Jobs)
	}
	for _, queue := range r.askedAgain {
		telemetry.LeasesExpired(queue, 1)
	}
}

// readRest reads the payloads of dispatched attempts and the histories of jobs that the clock made ready. It does so
// after the commit: the server must not hold the lock of the ledger while it sends thousands of rows to a slow or
// frozen process. If the process dies before it has read them, the watchdog asks about the attempts when their lease is
// over, and the API asks about the jobs.
func (s *Store) readRest(ctx context.Context, r *result) error {
	q := gen.New(s.pool)
	jobs, err := snapshots(ctx, q, r.changed)
	if err != nil {
		return pgpool.Classify(err)
	}
	r.Jobs = append(r.Jobs, jobs...)
	if len(r.sentOut) == 0 {
		return nil
	}
	named := membersNamed(r.sentOut)
	rows, err := q.JobsRunOrders(ctx, gen.JobsRunOrdersParams{
		JobIDs: r.sentOut, FromIDs: named.FromIDs, ToIDs: named.ToIDs, Wanted: named.Wanted,
	})
	if err != nil {
		return fmt.Errorf("read run orders: %w", pgpool.Classify(err))
	}
	r.Runs = slices.Grow(r.Runs, len(rows))
	for _, row := range rows {
		r.Runs = append(r.Runs, emit.RunOrder(row))
	}
	return nil
}

// snapshotsOf converts rows. The statements return the same columns, but sqlc makes a type for each statement.
func snapshotsOf[R gen.JobsSnapshotRow | gen.JobsSaveRow](rows []R) []emit.Snapshot {
	jobs := make([]emit.Snapshot, len(rows))
	for i, row := range rows {
		jobs[i] = emit.Snapshot(row)
	}
	return jobs
}

// startedSnapshot returns the published columns of a started job.
func startedSnapshot(row gen.JobsStartedRow) emit.Snapshot {
	return emit.Snapshot{
		JobID: row.JobID, TraceID: row.TraceID, Status: row.Status, Version: row.Version, Attempt: row.Attempt,
		RetryCount: row.RetryCount, DueAt: row.DueAt, CallbackDeadlineAt: row.CallbackDeadlineAt,
		CancelRequestedAt: row.CancelRequestedAt, LastCommand: row.LastCommand, History: row.History, Output: row.Output,
		ErrorCode: row.ErrorCode, ErrorMessage: row.ErrorMessage, StartedAt: row.StartedAt, FinishedAt: row.FinishedAt,
		UpdatedAt: row.UpdatedAt, Queue: row.Queue, Rank: row.Rank,
	}
}

// deletedSnapshot returns the few columns that are published of a deleted job.
func deletedSnapshot(row gen.JobsDeleteRow) emit.Snapshot {
	return emit.Snapshot{
		JobID: row.JobID, TraceID: row.TraceID, Status: row.Status, Version: row.Version, Attempt: row.Attempt,
		ErrorCode: row.ErrorCode, FinishedAt: row.FinishedAt, UpdatedAt: row.UpdatedAt, DeletedAt: row.DeletedAt,
	}
}

// classOf returns the class of a row.
func classOf(queue, jobType string, ownerID *string, fairnessKey string) dispatch.Class {
	return dispatch.Class{Queue: queue, JobType: jobType, OwnerID: nullable.Value(ownerID), FairnessKey: fairnessKey}
}
