package batchstore

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// States returns the states of the jobs of a flow that are not deleted.
func (s *Store) States(ctx context.Context, id uuid.UUID) (map[uuid.UUID]jobstate.Status, error) {
	states, err := states(ctx, s.q, id)
	return states, apidb.Classify("read the states of a flow", err)
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

func readGraph(id uuid.UUID, graph json.RawMessage) (jobs []apibody.FlowJob, err error) {
	if graph != nil {
		if err := json.Unmarshal(graph, &jobs); err != nil {
			return nil, fmt.Errorf("read the graph of flow %s: %w", id, err)
		}
	}
	return jobs, nil
}

// onlySkips reports whether each cancelled job of a flow was skipped, so that the flow has completed: the job waited
// for the failure of a job that completed, or for the completion of a skipped job.
func onlySkips(graph []apibody.FlowJob, states map[uuid.UUID]jobstate.Status) bool {
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
			if edge.On == jobstate.WhenFailed && states[edge.JobID] == jobstate.Completed ||
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
	}
	return true
}
