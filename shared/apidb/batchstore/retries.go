package batchstore

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// retriedAtOnce is how many jobs of a flow one operation runs again.
const retriedAtOnce = 1000

// RetryFlow has the failed and cancelled jobs of a flow of the owner run again, each when what it comes after has ended
// as it has to. It returns how many these may be. If the flow has ended, it goes on, and ends once more. A flow
// of which a compensation has run is refused.
// Why: docs/decisions/groups.md#a-flow-is-retried-step-by-step-in-new-jobs-where-they-completed
func (s *Store) RetryFlow(
	ctx context.Context, entry *apidb.Audit, owner apidb.Owner, id uuid.UUID,
) (jobs int, err error) {
	err = apidb.AuditedTx(ctx, s.db, entry, func(q *gen.Queries, entry *apidb.Audit) error {
		found, err := q.BatchHeld(ctx, gen.BatchHeldParams{BatchID: id, Owner: owner.Filter()})
		if err != nil {
			return err
		}
		batch := &found.Batch
		entry.SetSubject(batch.OwnerID, "batch/"+id.String())
		if err := mayRetry(batch); err != nil {
			return err
		}
		if Status(batch.Status) == Completed {
			return ended(batch)
		}
		again, err := jobsToRetry(ctx, q, batch)
		if err != nil {
			return err
		}
		jobs = len(again)
		left, err := json.Marshal(again)
		if err != nil {
			return fmt.Errorf("write the jobs to retry: %w", err)
		}
		if err := q.FlowRetry(ctx, gen.FlowRetryParams{BatchID: id, Retry: left}); err != nil {
			return err
		}
		return q.BatchesChanged(ctx)
	})
	return jobs, none(err)
}

// mayRetry refuses a batch that is no flow, and a flow of which something is to run again already.
func mayRetry(batch *gen.Batch) error {
	switch {
	case batch.Graph == nil:
		return ErrNone
	case batch.Retry != nil:
		return apierror.New(apierror.InvalidStateTransition, "the flow is being retried")
	case batch.ExpiredAt != nil && batch.FinishedAt == nil:
		return apierror.New(apierror.InvalidStateTransition, "the flow has expired, and has not ended yet")
	}
	return nil
}

func jobsToRetry(ctx context.Context, q *gen.Queries, batch *gen.Batch) (again []uuid.UUID, err error) {
	graph, err := readGraph(batch.BatchID, batch.Graph)
	if err != nil {
		return nil, err
	}
	r := retry{again: map[uuid.UUID]bool{}, decided: map[uuid.UUID]decision{}}
	if err := r.read(ctx, q, batch.BatchID, graph); err != nil {
		return nil, err
	}
	for _, id := range r.jobs {
		if state := r.states[id]; state == jobstate.Failed || state == jobstate.Cancelled {
			again, r.again[id] = append(again, id), true
		}
	}
	if len(again) == 0 {
		return nil, apierror.New(apierror.InvalidStateTransition, "no job of the flow has failed or was cancelled")
	}
	return again, r.refuseCompensated(graph)
}

// refuseCompensated refuses a retry if a job that waits for the failure of a job that would run again has run, or is to
// run: what it undoes would not be done again, and what comes after the retried job would go on without it.
func (r *retry) refuseCompensated(graph []apibody.FlowJob) error {
	for _, job := range graph {
		if !r.ranOrRuns(job.JobID) {
			continue
		}
		for _, edge := range job.After {
			if edge.On == jobstate.WhenFailed && r.again[edge.JobID] && r.decide(edge.JobID) != stays {
				return apierror.New(apierror.FlowCompensated, "%s, which waits for the failure of %s, has run or is to run: "+
					`name in from the jobs that run again with all that come after them, or ask for all`, job.Name, edge.Name)
			}
		}
	}
	return nil
}

// ranOrRuns reports whether a job has completed or has yet to end, or for a fan-out one of its elements.
func (r *retry) ranOrRuns(id uuid.UUID) bool {
	state := r.states[id]
	ran := state != "" && state != jobstate.Failed && state != jobstate.Cancelled
	for _, element := range r.elements[id] {
		ran = ran || r.states[element] != jobstate.Failed && r.states[element] != jobstate.Cancelled
	}
	return ran
}

// retryNext has those jobs of a flow run again that nothing keeps back any more, by an operation, and notes which are
// left. live: a job of the flow has not ended. An operation ends when the states of its jobs show that it was applied.
func (s *Store) retryNext(ctx context.Context, q *gen.Queries, row gen.Batch, live bool) error {
	r := retry{again: map[uuid.UUID]bool{}, decided: map[uuid.UUID]decision{}}
	var ids []uuid.UUID
	if err := json.Unmarshal(row.Retry, &ids); err != nil {
		return fmt.Errorf("read the jobs to retry: %w", err)
	}
	for _, id := range ids {
		r.again[id] = true
	}
	graph, err := readGraph(row.BatchID, row.Graph)
	if err != nil {
		return err
	}
	if err := r.read(ctx, q, row.BatchID, graph); err != nil {
		return err
	}
	for _, state := range r.states { // also of jobs outside the flow
		live = live || !state.Terminal()
	}
	var ready, left []uuid.UUID
	for _, id := range ids {
		switch d := r.decide(id); {
		case d == runsNow && len(ready) < retriedAtOnce:
			ready = append(ready, id)
		case d != stays:
			left = append(left, id)
		}
	}
	p := gen.FlowRetryLeftParams{BatchID: row.BatchID}
	if len(left) > 0 && (live || len(ready) > 0) {
		if p.Retry, err = json.Marshal(left); err != nil {
			return fmt.Errorf("write the jobs to retry: %w", err)
		}
	}
	if err := q.FlowRetryLeft(ctx, p); err != nil || len(ready) == 0 {
		return err
	}
	asked := s.newOperation(apidb.OwnerOf(row.OwnerID), row.BatchID, sweeper, jobevent.CommandRetry)
	asked.Request.Filter, asked.Request.JobIDs = nil, ready
	delay := gen.BatchDelayParams{BatchID: row.BatchID, OperationID: asked.ID}
	if err := q.BatchDelay(ctx, delay); err != nil {
		return err
	}
	return s.operations.InsertInTx(ctx, q, asked)
}

// decision is what becomes of a job that is to run again.
type decision int

const (
	waits   decision = iota // for a job that runs, or runs again later
	runsNow                 // all of its conditions are met
	stays                   // as it is: a condition can no longer be met, or it has been retried on its own
)

// retry decides which jobs of a flow run again now.
type retry struct {
	jobs     []uuid.UUID // of the flow
	again    map[uuid.UUID]bool
	states   map[uuid.UUID]jobstate.Status // of the jobs of the flow, and of others that these come after
	after    map[uuid.UUID][]apibody.FlowEdge
	elements map[uuid.UUID][]uuid.UUID // the jobs of each fan-out
	decided  map[uuid.UUID]decision
}

func (r *retry) read(ctx context.Context, q *gen.Queries, flow uuid.UUID, graph []apibody.FlowJob) error {
	r.states, r.after = map[uuid.UUID]jobstate.Status{}, map[uuid.UUID][]apibody.FlowEdge{}
	r.elements = map[uuid.UUID][]uuid.UUID{}
	for _, job := range graph {
		r.after[job.JobID] = job.After
	}
	rows, err := q.FlowJobs(ctx, flow)
	if err != nil {
		return err
	}
	for _, row := range rows {
		r.jobs, r.states[row.JobID] = append(r.jobs, row.JobID), jobstate.Status(row.Status)
		if row.FanOutID != nil { // it comes after what its fan-out comes after
			r.after[row.JobID] = r.after[*row.FanOutID]
			r.elements[*row.FanOutID] = append(r.elements[*row.FanOutID], row.JobID)
		}
	}
	outside, err := outsideOf(ctx, q, graph)
	maps.Copy(r.states, outside)
	return err
}

func (r *retry) decide(id uuid.UUID) decision {
	if known, is := r.decided[id]; is {
		return known
	}
	r.decided[id] = waits // the graph has no cycles
	d := runsNow
	if state := r.states[id]; state != jobstate.Failed && state != jobstate.Cancelled {
		d = stays
	}
	for _, edge := range r.after[id] {
		state, there := r.states[edge.JobID]
		switch {
		case d == stays, !there: // deleted: how it ended is not known any more
		case r.again[edge.JobID] && r.decide(edge.JobID) != stays, !state.Terminal():
			d = waits
		case !edge.On.Met(state):
			d = stays
		}
	}
	for _, element := range r.elements[id] {
		if d == runsNow && r.again[element] && r.decide(element) != stays {
			d = waits // the fan-out would end as before
		}
	}
	r.decided[id] = d
	return d
}
