package kill

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/retry"
)

const (
	flowKey  = "of a flow" // the tag of the jobs of flows
	elements = 5           // of each fan-out
)

// flow submits a flow: work that may fail, a job that gets its output, one that undoes it, and one that ends all. Beside
// them a list becomes a job for each of its elements. The payload of a job names the output that it gets, so that a job
// without it fails. Work that fails once is retried with its flow.
func (l *load) flow(ctx context.Context, rnd *rand.Rand) {
	step := func(steps ...any) map[string]any {
		return map[string]any{"jobType": "SIMULATION", "tags": []string{flowKey}, "maxRetryCount": 0, "payload": map[string]any{"steps": steps}}
	}
	after := func(job map[string]any, after ...any) map[string]any {
		job["after"] = after
		return job
	}
	log, fails := map[string]any{"type": "LOG", "message": "hi"}, []int{0, 1, 1000}[rnd.IntN(3)]
	work := step()
	work["jobType"], work["payload"] = "WITNESS", map[string]any{"key": flowKey, "failAttempts": fails}
	list := map[string]any{"jobType": "ECHO", "tags": []string{flowKey}, "payload": make([]int, elements)}
	each := after(step(map[string]any{"type": "SLEEP", "durationMs": map[string]string{"$item": "value"}}), "list")
	each["forEach"] = map[string]string{"$output": "list"}
	key := l.name("flow ")
	jobs := map[string]any{
		"work": work,
		"use": after(step(map[string]any{
			"type": "SLEEP", "durationMs": map[string]string{"$output": "work", "path": "$.attempt"},
		}), "work"),
		"undo": after(step(log), map[string]string{"name": "work", "on": "failed"}),
		"end":  after(step(log), map[string]string{"name": "use", "on": "ended"}, map[string]string{"name": "undo", "on": "ended"}),
		"list": list,
		"each": each,
		"sum": after(step(map[string]any{
			"type": "SLEEP", "durationMs": map[string]string{"$output": "each", "path": fmt.Sprintf("$[%d].steps", elements-1)},
		}), "each"),
	}
	if fails == 1 { // a flow that was compensated is retried as a new run, in which the work would fail again
		delete(jobs, "undo")
		jobs["end"] = after(step(log), map[string]string{"name": "use", "on": "ended"})
	}
	body, err := json.Marshal(map[string]any{"name": key, "idempotencyKey": key, "jobs": jobs})
	if err != nil {
		panic(err) // it is JSON
	}
	var answer client.MadeFlow
	if l.ask(ctx, true, "/api/flows", "application/json", body, &answer) {
		made := &flowMade{name: key, fails: fails}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.flows = append(l.flows, made)
		if fails == 1 {
			l.following.Go(func() { l.retryFlow(made, answer.FlowID) })
		}
	}
}

// retryFlow retries a flow once it has failed. Its work has not failed if its first attempt was lost.
func (l *load) retryFlow(made *flowMade, id string) {
	for {
		switch flow, err := l.fixture.api.Flows.Get(l.follow, id, 30*time.Second); {
		case wrong(err):
			l.fixture.complain("GET flow %s: %v", id, err)
			return
		case err == nil && flow.Status == completed:
			return
		case err == nil && flow.FinishedAt != nil:
			if l.insist(http.MethodPost, "/api/flows/"+id+"/retry", http.StatusConflict) {
				made.retried = true
				l.count("flow retried")
			}
			return
		}
		if !retry.Pause(l.follow, 200*time.Millisecond) {
			return
		}
	}
}

// flowMade is a flow that got its 201.
type flowMade struct {
	name    string
	fails   int // that many attempts of its work
	retried bool
}

// flowsOf returns all flows with their graphs, by name.
func flowsOf(ctx context.Context, api *client.Client) (map[string]*client.Flow, error) {
	flows := map[string]*client.Flow{}
	for f, err := range api.Flows.List(ctx, client.BatchFilter{}) {
		if err != nil {
			return nil, fmt.Errorf("list flows: %w", err)
		}
		whole, err := api.Flows.Get(ctx, f.FlowID, 0)
		if err != nil {
			return nil, fmt.Errorf("read flow %s: %w", f.FlowID, err)
		}
		flows[f.Name] = whole
	}
	return flows, nil
}

// endFlows waits until each flow has ended.
func (h *fixture) endFlows(limit time.Duration) {
	h.t.Helper()
	err := within(h.t.Context(), limit, func(ctx context.Context) error {
		flows, err := flowsOf(ctx, h.api)
		for name, f := range flows {
			if f.FinishedAt == nil {
				return fmt.Errorf("%s is %s with %v", name, f.Status, f.Counts)
			}
		}
		return err
	})
	if err != nil {
		h.t.Error(err)
	}
}

// takeFlows removes the jobs of flows from the evidence. In each flow exactly those jobs have run whose conditions were
// met, and a job that uses an output got it.
func (e *evidence) takeFlows(ctx context.Context, api *client.Client) {
	flows, err := flowsOf(ctx, api)
	if err != nil {
		e.find("", "the flows cannot be read: %v", err)
	}
	for _, made := range e.load.flows {
		want := map[string]string{"work": completed, "use": completed, "undo": client.Cancelled, "end": completed}
		if made.fails > 1 {
			want["work"], want["use"] = client.Failed, client.Cancelled
		}
		switch made.fails {
		case 0:
		case 1:
			delete(want, "undo")
		default:
			want["undo"] = completed
		}
		want["list"], want["each"], want["sum"] = completed, completed, completed
		f := flows[made.name]
		if f == nil || len(f.Jobs) != len(want) {
			e.find("", "%s has %+v", made.name, f)
			continue
		}
		for name, status := range want {
			if job := f.Jobs[name]; job.Status != status {
				e.find(job.JobID, "job %s of %s is %s, want %s", name, made.name, job.Status, status)
			}
		}
		for name, job := range f.Jobs {
			want := 0
			if made.retried && (name == "work" || name == "use") {
				want = 1
			}
			if is := e.jobs[job.JobID]; is == nil || is.redriven() != want {
				e.find(job.JobID, "job %s of %s is to be retried %d times, and is %+v", name, made.name, want, is)
			}
		}
		of := f.Jobs["each"].Elements
		if of == nil || of.Total != elements || of.Counts[completed] != elements || f.Total != int64(len(want)+elements) {
			e.find(f.Jobs["each"].JobID, "the fan-out of %s has %+v, and the flow %d jobs", made.name, of, f.Total)
		}
	}
	for id, job := range e.jobs {
		if job.key() != flowKey {
			continue
		}
		e.checkHistory(job)
		e.checkStarts(id, e.ran[id])
		letters := len(e.dead)
		maps.DeleteFunc(e.dead, func(letter string, _ int) bool { return strings.HasPrefix(letter, id+".") })
		if letters -= len(e.dead); job.Status == failed && letters != 1 && !e.wiped || job.Status != failed && letters > job.redriven() {
			e.find(id, "%s in a flow, with %d dead letters", job.Status, letters)
		}
		delete(e.jobs, id)
		delete(e.ran, id)
	}
}
