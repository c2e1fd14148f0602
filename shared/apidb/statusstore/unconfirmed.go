package statusstore

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/commandstore"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/nullable"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// UnconfirmedJobs returns jobs without a status, as they were accepted, at those of the ages 10, 20, 40, 80, 160, 300,
// 600 … s that are not below the least.
func (s *Store) UnconfirmedJobs(ctx context.Context, p apidb.Page, least time.Duration) ([]jobevent.Created, error) {
	rows, err := s.q.JobsUnconfirmed(ctx, gen.JobsUnconfirmedParams{
		MaxBytes: apidb.MaxPageBytes, Since: p.Since, Until: p.Until, AfterID: p.After, MaxJobs: int32(p.Limit),
		Least: least,
	})
	if err != nil {
		return nil, apidb.Classify("find unconfirmed jobs", err)
	}
	return CreatedOf(rows)
}

// CreatedOf returns jobs as they were accepted. The statements return the same columns, but sqlc makes a type for
// each.
func CreatedOf[R gen.JobsUnconfirmedRow | gen.RestoredAcceptedRow | gen.HeldReleaseRow](
	rows []R,
) ([]jobevent.Created, error) {
	jobs := make([]jobevent.Created, len(rows))
	for i := range rows {
		row := gen.JobsUnconfirmedRow(rows[i])
		spec, err := jobevent.ReadSpec(row.Spec)
		if err != nil {
			return nil, fmt.Errorf("job %s: %w", row.JobID, err)
		}
		jobs[i] = jobevent.Created{
			JobID: row.JobID, TraceID: row.TraceID, OwnerID: row.OwnerID, JobType: row.JobType, Queue: row.Queue,
			Payload: row.Payload, Spec: spec, RunAt: row.RunAt, CreatedAt: row.CreatedAt,
			ExpiresAt: row.ExpiresAt, OrderAfter: row.OrderAfter, After: row.AfterIDs,
			OrderingKey: nullable.Value(row.OrderingKey), OrderNumber: nullable.Value(row.OrderNumber),
			RunAnyway: nullable.Value(row.RunsAnyway), FairnessKey: nullable.Value(row.FairnessKey),
			FlowID: row.FlowID, Event: row.Event,
		}
		for _, condition := range row.AfterConditions {
			jobs[i].Conditions = append(jobs[i].Conditions, jobstate.Condition(condition))
		}
		if row.Inputs != nil {
			if err := json.Unmarshal(row.Inputs, &jobs[i].Inputs); err != nil {
				return nil, fmt.Errorf("read inputs of job %s: %w", row.JobID, err)
			}
		}
	}
	return jobs, nil
}

// maxChangeBytes bounds the size of the changes in one pass; the rest is published later.
const maxChangeBytes = 8 << 20

// UnconfirmedCommands returns unanswered commands, at the same ages.
func (s *Store) UnconfirmedCommands(ctx context.Context, p apidb.Page) ([]commandstore.Command, error) {
	rows, err := s.q.CommandsUnconfirmed(ctx, gen.CommandsUnconfirmedParams{
		Since: p.Since, Until: p.Until, AfterID: p.After, MaxCommands: int32(p.Limit), MaxBytes: maxChangeBytes,
	})
	if err != nil {
		return nil, apidb.Classify("find unconfirmed commands", err)
	}
	commands := make([]commandstore.Command, len(rows))
	for i, row := range rows {
		commands[i] = commandstore.Command{
			JobID: row.JobID, TraceID: row.TraceID, Number: int(row.Number), Command: row.Command, By: row.ByWhom,
			RunAt: row.RunAt, Version: row.Version,
		}
		if row.Change == nil {
			continue
		}
		if err := json.Unmarshal(row.Change, &commands[i].Change); err != nil {
			return nil, fmt.Errorf("read the change of job %s: %w", row.JobID, err)
		}
	}
	return commands, nil
}

// JobsInFlight returns QUEUED, RUNNING and WAITING jobs, each when its last status has the least age, and once for
// every further minute.
func (s *Store) JobsInFlight(ctx context.Context, p apidb.Page, least time.Duration) ([]jobevent.ReportJob, error) {
	rows, err := s.q.JobsInFlight(ctx, gen.JobsInFlightParams{
		Since: p.Since, Until: p.Until, AfterID: p.After, MaxJobs: int32(p.Limit), Least: least,
	})
	if err != nil {
		return nil, apidb.Classify("find jobs in flight", err)
	}
	jobs := make([]jobevent.ReportJob, len(rows))
	for i, row := range rows {
		jobs[i] = jobevent.ReportJob(row)
	}
	return jobs, nil
}

// JobsWaiting returns the other jobs that have not ended, whatever their age.
func (s *Store) JobsWaiting(ctx context.Context, after uuid.UUID, limit int) ([]jobevent.ReportJob, error) {
	rows, err := s.q.JobsWaiting(ctx, gen.JobsWaitingParams{AfterID: after, MaxJobs: int32(limit)})
	if err != nil {
		return nil, apidb.Classify("find waiting jobs", err)
	}
	jobs := make([]jobevent.ReportJob, len(rows))
	for i, row := range rows {
		jobs[i] = jobevent.ReportJob(row)
	}
	return jobs, nil
}

// ForgetStatuses resets jobs that the scheduler does not know to what was accepted, so that reconcile publishes them
// again. The worker's database still has the outcome of an earlier attempt. A job that the scheduler may have deleted
// for its age, after an end that never arrived here, is left alone: it could run twice.
func (s *Store) ForgetStatuses(ctx context.Context, unknown []jobevent.ReportJob) error {
	p := gen.JobsForgetStatusesParams{MaxAge: jobevent.MaxRetention}
	for _, job := range unknown {
		p.JobIDs, p.Versions = append(p.JobIDs, job.JobID), append(p.Versions, job.Version)
	}
	notify, done := s.db.BeginChange()
	defer done()
	var n int64
	err := s.db.Tx(ctx, func(q *gen.Queries) (err error) {
		if n, err = q.JobsForgetStatuses(ctx, p); err == nil && notify {
			err = apidb.NotifyChange(ctx, q, apidb.ChangeStatus, p.JobIDs)
		}
		return err
	})
	if err == nil {
		telemetry.Logger(ctx).WarnContext(ctx, "the scheduler does not know jobs that it knew",
			"jobs", len(unknown), "republished", n)
	}
	return apidb.Classify(fmt.Sprintf("forget statuses of %d jobs", len(unknown)), err)
}
