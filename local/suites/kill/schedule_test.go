package kill

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/jobweaver/jobweaver/shared/client"
)

// operated is a job that an operation cancels, unless it completes first.
var operated = &shape{
	name: "is cancelled by an operation", payload: works(0, 0), request: map[string]any{"delayMs": 15_000},
	operated: true, ends: []string{completed, canceled},
}

const (
	scheduleName = "heartbeat"
	scheduleKey  = "of the schedule" // the tag of its jobs
	tickEvery    = 3 * time.Second
)

// schedule makes a schedule that fires while everything is killed, and pauses it in the end.
func (l *load) schedule(ctx context.Context) {
	body, err := json.Marshal(map[string]any{
		"name": scheduleName, "cron": "@every " + tickEvery.String(), "overlap": "allow", "missed": "all",
		"job": map[string]any{"jobType": "WITNESS", "tags": []string{scheduleKey}, "payload": map[string]any{"key": scheduleKey}},
	})
	if err != nil {
		panic(err) // it is JSON
	}
	err = within(ctx, drainWithin, func(ctx context.Context) error {
		_, err := l.fixture.api.Do(ctx, http.MethodPut, "/api/schedules/"+scheduleName, "application/json", body, nil)
		return err
	})
	if err != nil {
		l.fixture.complain("make a schedule: %v", err)
	}
	<-ctx.Done()
	l.paused = time.Now()
	l.ask(context.WithoutCancel(ctx), true, "/api/schedules/"+scheduleName+"/pause", "application/json", nil, nil)
}

// operate cancels a few jobs by one operation.
func (l *load) operate(ctx context.Context, rnd *rand.Rand) {
	var orders []*order
	for range 5 + rnd.IntN(10) {
		orders = append(orders, l.newOrder(rnd, operated, "batch", true))
	}
	l.submitAll(ctx, orders)
	ids := make([]string, 0, len(orders))
	for _, o := range orders {
		if o.id != "" {
			ids = append(ids, o.id)
		}
	}
	if len(ids) == 0 {
		return
	}
	body, err := json.Marshal(map[string]any{"command": "cancel", "jobIds": ids, "idempotencyKey": "cancel " + orders[0].key})
	if err != nil {
		panic(err) // it is JSON
	}
	var made struct{ OperationID string }
	if l.ask(ctx, true, "/api/operations", "application/json", body, &made) {
		l.mu.Lock()
		l.operations = append(l.operations, operation{made.OperationID, len(ids)})
		l.mu.Unlock()
	}
}

// operation is an operation that got its 202.
type operation struct {
	id   string
	jobs int
}

// checkOperations: each operation handled all of its jobs and has ended, and they cancelled at least one job.
func (e *evidence) checkOperations(ctx context.Context, api *client.Client) {
	for _, o := range e.load.operations {
		var is struct {
			Status   string
			Progress struct{ Matched, Asked, Applied, Refused, Skipped int }
		}
		_, err := api.Do(ctx, http.MethodGet, "/api/operations/"+o.id, "", nil, &is)
		p := is.Progress
		if err != nil || is.Status != completed || p.Matched != o.jobs || p.Applied+p.Refused+p.Skipped != o.jobs {
			e.find("", "an operation on %d jobs is %+v: %v", o.jobs, is, err)
		}
	}
	cancelled := 0
	for _, job := range e.jobs {
		if o := e.orders[job.key()]; o != nil && o.shape.operated && job.Status == canceled {
			cancelled++
		}
	}
	if len(e.load.operations) > 0 && cancelled == 0 {
		e.find("", "%d operations cancelled no job at all", len(e.load.operations))
	}
}

// takeScheduled removes the jobs of the schedule from the evidence, and compares them with its ticks: no tick is
// missing between the first and the last, and each has one job, which ran and completed.
func (e *evidence) takeScheduled(ctx context.Context, api *client.Client) {
	jobs := map[string]*shown{}
	for id, job := range e.jobs {
		if job.key() == scheduleKey {
			jobs[id] = job
			delete(e.jobs, id)
		}
	}
	ticks, err := ticksOf(ctx, api)
	ticks = slices.DeleteFunc(ticks, func(t tick) bool { return t.Outcome == "skipped" && t.At.After(e.load.paused) })
	if err != nil || len(ticks) < 3 {
		e.find("", "the schedule has %d ticks: %v", len(ticks), err)
	}
	fired := map[string]bool{}
	for i, tick := range ticks {
		if i > 0 && tick.At.Sub(ticks[i-1].At) != tickEvery {
			e.find("", "the schedule has a tick at %s and none before it but at %s", clock(tick.At), clock(ticks[i-1].At))
		}
		if job := jobs[tick.JobID]; job == nil || fired[tick.JobID] || job.Status != completed {
			e.find(tick.JobID, "the tick of %s was %s, its job is %v", clock(tick.At), tick.Outcome, job)
		} else if len(e.ran[tick.JobID]) == 0 {
			e.find(tick.JobID, "completed for a tick, and never ran")
		}
		fired[tick.JobID] = true
	}
	for id := range jobs {
		if !fired[id] {
			e.find(id, "is of the schedule, and of no tick")
		}
		delete(e.ran, id)
	}
}

type tick struct {
	At             time.Time
	Outcome, JobID string
}

// ticksOf returns the ticks of the schedule, the first one first.
func ticksOf(ctx context.Context, api *client.Client) ([]tick, error) {
	var page struct{ Ticks []tick }
	path := "/api/schedules/" + scheduleName + "/ticks?" + url.Values{"limit": {"200"}}.Encode()
	if _, err := api.Do(ctx, http.MethodGet, path, "", nil, &page); err != nil {
		return nil, fmt.Errorf("list ticks: %w", err)
	}
	slices.SortFunc(page.Ticks, func(a, b tick) int { return a.At.Compare(b.At) })
	return page.Ticks, nil
}
