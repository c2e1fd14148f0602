package batchstore

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// Standing is how a job in the graph of a flow stands.
type Standing struct {
	Status   jobstate.Status
	Elements *int32 // of a fan-out; nil: there are no jobs for its elements yet
	Counts   Counts // of these jobs

	RunAgainOf *uuid.UUID // the job that it has replaced in this run
}

// Standings returns how the jobs of a flow stand that are not deleted.
func (s *Store) Standings(ctx context.Context, id uuid.UUID) (map[uuid.UUID]Standing, error) {
	rows, err := s.q.FlowStates(ctx, id)
	if err != nil {
		return nil, apidb.Classify("read the states of a flow", err)
	}
	standings, expanded := make(map[uuid.UUID]Standing, len(rows)), false
	for _, row := range rows {
		standing := Standing{Status: jobstate.Status(row.Status), Elements: row.Elements, RunAgainOf: row.RunAgainOf}
		if row.Elements != nil {
			standing.Counts, expanded = NoJobs(), true
		}
		standings[row.JobID] = standing
	}
	if !expanded {
		return standings, nil
	}
	counts, err := s.q.FanOutCounts(ctx, id)
	for _, row := range counts {
		if of := standings[row.FanOutID]; of.Counts != nil {
			of.Counts[jobstate.Status(row.Status)] = row.Jobs
		}
	}
	return standings, apidb.Classify("count the jobs of elements", err)
}

func states(ctx context.Context, q *gen.Queries, id uuid.UUID) (map[uuid.UUID]jobstate.Status, error) {
	rows, err := q.FlowStates(ctx, id)
	if err != nil {
		return nil, err
	}
	states := make(map[uuid.UUID]jobstate.Status, len(rows))
	for _, row := range rows {
		states[row.JobID] = jobstate.Status(row.Status)
	}
	return states, nil
}

// outsideOf returns the states of the jobs outside a flow that its jobs come after.
func outsideOf(
	ctx context.Context, q *gen.Queries, graph []apibody.FlowJob,
) (map[uuid.UUID]jobstate.Status, error) {
	var ids []uuid.UUID
	for _, job := range graph {
		for _, edge := range job.After {
			if edge.Name == "" {
				ids = append(ids, edge.JobID)
			}
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	rows, err := q.FlowOthers(ctx, ids)
	states := make(map[uuid.UUID]jobstate.Status, len(rows))
	for _, row := range rows {
		states[row.JobID] = jobstate.Status(row.Status)
	}
	return states, err
}

func readGraph(id uuid.UUID, graph json.RawMessage) (jobs []apibody.FlowJob, err error) {
	if graph != nil {
		if err := json.Unmarshal(graph, &jobs); err != nil {
			return nil, fmt.Errorf("read the graph of flow %s: %w", id, err)
		}
	}
	return jobs, nil
}

// onlySkips reports whether each of the cancelled jobs of a flow was skipped, so that the flow has completed: the job
// waited for the failure of a job that completed, in the flow or outside, or for the completion of a skipped job. The
// job of an element, which is not in the graph, is never skipped.
func onlySkips(graph []apibody.FlowJob, states, outside map[uuid.UUID]jobstate.Status, cancelled int64) bool {
	jobs := make(map[uuid.UUID]*apibody.FlowJob, len(graph))
	for i := range graph {
		jobs[graph[i].JobID] = &graph[i]
	}
	skipped := make(map[uuid.UUID]bool, len(graph))
	var isSkipped func(id uuid.UUID) bool
	isSkipped = func(id uuid.UUID) bool {
		if known, seen := skipped[id]; seen || jobs[id] == nil || states[id] != jobstate.Cancelled {
			return known
		}
		for _, edge := range jobs[id].After {
			if edge.On == jobstate.WhenFailed && jobstate.Completed == cmp.Or(states[edge.JobID], outside[edge.JobID]) ||
				edge.On == jobstate.WhenCompleted && isSkipped(edge.JobID) {
				skipped[id] = true
				return true
			}
		}
		skipped[id] = false
		return false
	}
	for id, state := range states {
		if state == jobstate.Cancelled && !isSkipped(id) {
			return false
		}
		if state == jobstate.Cancelled {
			cancelled--
		}
	}
	return cancelled == 0
}
