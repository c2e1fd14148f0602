package jobstore

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/nullable"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/retrypolicy"
)

// Request returns the request of one of the owner's jobs, with the defaults at its acceptance, and the number of its
// last command. The payload is returned as stored: sealed, if payloads are sealed. The error is ErrNoJob if there is
// no such job.
func (s *Store) Request(
	ctx context.Context, owner apidb.Owner, id uuid.UUID,
) (req jobspec.Request, command int, err error) {
	row, err := s.q.JobByID(ctx, gen.JobByIDParams{JobID: id, Owner: owner.Filter()})
	if err != nil {
		return req, 0, apidb.Classify("get what a job asked for", err)
	}
	req, err = RequestOf(row.Job)
	return req, int(row.Job.CommandSeq), err
}

// RequestOf returns the request of a row.
func RequestOf(row gen.Job) (jobspec.Request, error) {
	req := jobspec.Request{
		JobType: row.JobType, Payload: row.Payload, MaxRetryCount: int(row.MaxRetryCount), Queue: row.Queue,
		Priority: int(row.Priority), RunAt: row.RunAt, Timeout: time.Duration(row.TimeoutMs) * time.Millisecond,
		IdempotencyKey: nullable.Value(row.IdempotencyKey), Tags: row.Tags, OwnerID: row.OwnerID, ExpiresAt: row.ExpiresAt,
		OrderingKey: nullable.Value(row.OrderingKey), FairnessKey: nullable.Value(row.FairnessKey),
		KeepBuild: nullable.Value(row.KeepBuild), After: row.AfterIDs, RunAnyway: nullable.Value(row.RunsAnyway),
		CallbackURL: nullable.Value(row.CallbackURL), RunAgainOf: nullable.Value(row.RunAgainOf),
		BatchID: nullable.Value(row.BatchID),
	}
	var err error
	if req.Policies, err = policiesOf(row); err != nil {
		return req, err
	}
	if req.Singleton != nil {
		req.OrderingKey = ""
	}
	req.Conditions = conditionsOf(row)
	if row.Inputs != nil {
		if err := json.Unmarshal(row.Inputs, &req.Inputs); err != nil {
			return req, fmt.Errorf("read inputs of job %s: %w", row.JobID, err)
		}
	}
	if req.ForEach, req.Element, err = fanOutOf(row); err != nil {
		return req, err
	}
	if row.RetryPolicy == nil {
		return req, nil
	}
	req.RetryPolicy = new(retrypolicy.Policy)
	if err := json.Unmarshal(row.RetryPolicy, req.RetryPolicy); err != nil {
		return req, fmt.Errorf("read the retry policy of job %s: %w", row.JobID, err)
	}
	return req, nil
}

// fanOutOf returns the array of a job that is a fan-out, or the place of a job that belongs to a fan-out.
func fanOutOf(row gen.Job) (each *jobspec.ForEach, of *jobspec.Element, err error) {
	if row.FanOutID != nil {
		of = &jobspec.Element{FanOut: *row.FanOutID, Index: int(nullable.Value(row.Element))}
	}
	if row.ForEach == nil {
		return nil, of, nil
	}
	if err := json.Unmarshal(row.ForEach, &each); err != nil {
		return nil, nil, fmt.Errorf("read what the fan-out %s is for: %w", row.JobID, err)
	}
	return each, of, nil
}

func conditionsOf(row gen.Job) (conditions []jobstate.Condition) {
	for _, condition := range row.AfterConditions {
		conditions = append(conditions, jobstate.Condition(condition))
	}
	return conditions
}

// policiesOf reads the submit policies of a job. A job that was restored from the scheduler's row has only its turn.
func policiesOf(row gen.Job) (p jobspec.Policies, err error) {
	if key, is := jobspec.SingletonOf(nullable.Value(row.OrderingKey)); is {
		p.Singleton = &jobspec.Singleton{Key: key, Else: jobspec.SingletonQueue}
	}
	if row.Policies == nil {
		return p, nil
	}
	if err := json.Unmarshal(row.Policies, &p); err != nil {
		return p, fmt.Errorf("read the submit policies of job %s: %w", row.JobID, err)
	}
	return p, nil
}
