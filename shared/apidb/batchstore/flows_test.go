package batchstore

import (
	"testing"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

func TestAFlowHasCompletedIfItsCancelledJobsWereSkipped(t *testing.T) {
	t.Parallel()
	a, undo, after, other, outside := uuid.New(), uuid.New(), uuid.New(), uuid.New(), uuid.New()
	graph := []apibody.FlowJob{
		{JobID: a},
		{JobID: undo, After: []apibody.FlowEdge{{JobID: a, On: jobstate.WhenFailed}}},
		{JobID: after, After: []apibody.FlowEdge{{JobID: other, On: jobstate.WhenEnded}, {JobID: undo, On: jobstate.WhenCompleted}}},
		{JobID: other, After: []apibody.FlowEdge{{JobID: outside, On: jobstate.WhenFailed}}},
	}
	for name, c := range map[string]struct {
		a, undo, after, other jobstate.Status
		outside               jobstate.Status // empty: it is deleted
		want                  bool
	}{
		"the undoing was skipped":          {jobstate.Completed, jobstate.Cancelled, jobstate.Completed, jobstate.Completed, "", true},
		"and what came after it":           {jobstate.Completed, jobstate.Cancelled, jobstate.Cancelled, jobstate.Completed, "", true},
		"what was undone was cancelled":    {jobstate.Cancelled, jobstate.Cancelled, jobstate.Completed, jobstate.Completed, "", false},
		"a job that waited for none":       {jobstate.Completed, jobstate.Completed, jobstate.Completed, jobstate.Cancelled, "", false},
		"one that came after the undoing":  {jobstate.Completed, jobstate.Completed, jobstate.Cancelled, jobstate.Completed, "", false},
		"one that came after another kind": {jobstate.Completed, jobstate.Completed, jobstate.Cancelled, jobstate.Cancelled, "", false},
		"a job outside has completed":      {jobstate.Completed, jobstate.Completed, jobstate.Completed, jobstate.Cancelled, jobstate.Completed, true},
		"a job outside has failed":         {jobstate.Completed, jobstate.Completed, jobstate.Completed, jobstate.Cancelled, jobstate.Failed, false},
	} {
		states := map[uuid.UUID]jobstate.Status{a: c.a, undo: c.undo, after: c.after, other: c.other}
		cancelled := int64(0)
		for _, state := range states {
			if state == jobstate.Cancelled {
				cancelled++
			}
		}
		if onlySkips(graph, states, map[uuid.UUID]jobstate.Status{outside: c.outside}, cancelled+1) {
			t.Errorf("%s: the job of an element was cancelled, too", name)
		}
		if got := onlySkips(graph, states, map[uuid.UUID]jobstate.Status{outside: c.outside}, cancelled); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
