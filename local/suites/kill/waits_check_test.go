package kill

import (
	"encoding/json"
	"testing"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/local/suites/kill/witness"
)

// called returns evidence of a job that has called one job, and got its output.
func called() (e *evidence, caller, child *shown) {
	ended := func(key string, output string) *shown {
		job := &shown{JobID: uuid.NewString(), Status: completed, Tags: []string{key}, Output: json.RawMessage(output)}
		e.jobs[job.JobID] = job
		return job
	}
	e = &evidence{chaos: &chaos{}, orders: map[string]*order{}, jobs: map[string]*shown{}}
	e.orders["k1"] = &order{key: "k1", shape: &shape{name: "calls", calls: 1, ends: one(completed)}}
	return e, ended("k1", `{"attempt": 2, "of": [{"attempt": 3}]}`), ended(witness.Called("k1", 0), `{"attempt": 3}`)
}

func TestTheChecksOfCallsFindEachViolation(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lie  func(e *evidence, caller, child *shown)
		find string // in one of the findings; empty: there must be none
	}{
		"nothing": {func(_ *evidence, _, _ *shown) {}, ""},
		"a call made no job": {
			func(e *evidence, _, child *shown) { delete(e.jobs, child.JobID) }, "has called 0 jobs and got 1 outputs, not 1",
		},
		"a call made two jobs": {func(e *evidence, _, child *shown) {
			twin := *child
			twin.JobID = uuid.NewString()
			e.jobs[twin.JobID] = &twin
		}, "has called 2 jobs"},
		"the output of another attempt": {
			func(_ *evidence, caller, _ *shown) { caller.Output = json.RawMessage(`{"of": [{"attempt": 1}]}`) }, `got {"attempt": 1}`,
		},
		"the job that was called has failed": {func(_ *evidence, _, child *shown) { child.Status = failed }, "which is FAILED"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, caller, child := called()
			c.lie(e, caller, child)
			e.checkCalls(caller, e.orders["k1"])
			e.wants(t, c.find)
		})
	}
}
