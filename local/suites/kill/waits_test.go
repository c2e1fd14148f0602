package kill

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/jobweaver/jobweaver/local/suites/kill/witness"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/retry"
)

// waitingShapes are for pull workers: their handlers wait, and keep no slot meanwhile.
var waitingShapes = []*shape{
	{name: "receives", weight: 4, payload: works(0, 50, "receives", true), request: pulledBy(), receives: true, ends: one(completed)},
	{name: "calls", weight: 4, payload: works(0, 50, "calls", 2), request: pulledBy(), calls: 2, ends: one(completed)},
	{
		name: "receives and calls", weight: 2, payload: works(0, 50, "receives", true, "calls", 1), request: pulledBy(),
		receives: true, calls: 1, ends: one(completed),
	},
}

// calledShape is the shape of a job that a handler calls.
var calledShape = &shape{name: "is called", ends: one(completed)}

// byCall is how a job was submitted that a handler has called.
const byCall = "call"

func pulledBy() map[string]any { return map[string]any{"queue": pullQueue} }

// pulled reports whether a pull worker has run a job. The API does not name the processes of pull workers.
func (e *evidence) pulled(id string) bool {
	return slices.ContainsFunc(e.ran[id], func(r run) bool { return strings.HasPrefix(r.process, "poller") })
}

// expectWaits sends the event for which a job waits, whether or not its submit is answered, and expects the jobs that it
// calls. The caller holds the mutex.
func (l *load) expectWaits(rnd *rand.Rand, o *order) {
	for i := range o.shape.calls {
		l.orders = append(l.orders, &order{key: witness.Called(o.key, i), shape: calledShape, how: byCall, asked: o.asked})
	}
	if o.shape.receives {
		wait := time.Duration(rnd.IntN(3000)) * time.Millisecond // before the job waits, or after
		l.following.Go(func() { l.sendEvent(o.key, wait) })
	}
}

// sendEvent sends an event until it is answered, and then once more: it is known by then.
func (l *load) sendEvent(key string, wait time.Duration) {
	e := client.CloudEvent{
		ID: key, Source: "/kill", Type: witness.EventType, Data: json.RawMessage(fmt.Sprintf(`{"key": %q}`, key)),
	}
	for sent := 0; sent < 2 && retry.Pause(l.follow, wait); {
		_, err := l.fixture.api.SendEvent(l.follow, e)
		if l.note(err); wrong(err) {
			l.fixture.complain("POST event %s: %v", key, err)
			return
		}
		if wait = 200 * time.Millisecond; err == nil {
			l.count("event sent")
			sent++
		}
	}
}

// children returns the jobs that a job has called; nil: one is not there.
func (e *evidence) children(o *order) (list []*shown) {
	for i := range o.shape.calls {
		for _, job := range e.jobs {
			if job.key() == witness.Called(o.key, i) {
				list = append(list, job)
			}
		}
	}
	return list
}

// calledALostJob reports whether a job has failed because one that it called has lost its worker too often.
func (e *evidence) calledALostJob(job *shown, o *order) bool {
	return job.Status == failed && job.LastError.ErrorCode == string(apierror.ChildFailed) &&
		slices.ContainsFunc(e.children(o), func(child *shown) bool {
			return child.Status == failed && e.lostByUs(child) > maxLost
		})
}

// checkCalls: a job that has completed has called each of its jobs once, and got their outputs.
func (e *evidence) checkCalls(job *shown, o *order) {
	if o.shape.calls == 0 || job.Status != completed {
		return
	}
	var got struct{ Of []json.RawMessage }
	if err := json.Unmarshal(job.Output, &got); err != nil {
		e.find(job.JobID, "has the output %s", job.Output)
	}
	list := e.children(o)
	if len(list) != o.shape.calls || len(got.Of) != o.shape.calls {
		e.find(job.JobID, "has called %d jobs and got %d outputs, not %d", len(list), len(got.Of), o.shape.calls)
		return
	}
	for i, child := range list {
		if child.Status != completed || !sameOutput(child.Output, got.Of[i]) {
			e.find(job.JobID, "got %s of job %s, which is %s: %s", got.Of[i], child.JobID, child.Status, child.Output)
		}
	}
}

// sameOutput compares the outputs of jobs of this test.
func sameOutput(a, b json.RawMessage) bool {
	var x, y struct{ Attempt int }
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && x == y && x.Attempt > 0
}
