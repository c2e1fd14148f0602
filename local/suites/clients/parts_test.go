package clients

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/client"
)

const noID = "01936f3e-5f3e-7cc0-8000-0123456789ab"

// collect returns the entries of a list.
func collect[T any](t *testing.T, entries iter.Seq2[*T, error]) (all []*T) {
	t.Helper()
	for entry, err := range entries {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, entry)
	}
	return all
}

// goParts uses schedules, controls, operations and what else an installation has.
func goParts(ctx context.Context, t *testing.T, c *client.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	steps := func(step map[string]any) map[string]any { return map[string]any{"steps": []any{step}} }
	job := client.JobRequest{JobType: "SIMULATION", Payload: steps(map[string]any{"type": "LOG", "message": "hi"})}
	t.Run("schedules", func(t *testing.T) { goSchedules(ctx, t, c, job) })
	t.Run("controls", func(t *testing.T) { goControls(ctx, t, c, job) })
	t.Run("operations", func(t *testing.T) { goOperations(ctx, t, c, job) })
	failing := client.JobRequest{
		JobType: "SIMULATION", Payload: steps(map[string]any{"type": "FAIL", "message": "no", "retryable": false}), OwnerID: "go",
		CallbackURL: "http://127.0.0.1:9/nothing",
	}
	t.Run("failures", func(t *testing.T) { goFailures(ctx, t, c, failing) })
	t.Run("installation", func(t *testing.T) { goInstallation(ctx, t, c) })
}

func must[T any](t *testing.T) func(value T, err error) T {
	t.Helper()
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func goSchedules(ctx context.Context, t *testing.T, c *client.Client, job client.JobRequest) {
	t.Helper()
	schedules, schedule := c.Schedules.Of("go"), must[*client.Schedule](t)
	request := client.ScheduleRequest{Name: "go", Cron: "@yearly", TimeZone: "Europe/Berlin", Job: job}
	made := schedule(schedules.Create(ctx, request))
	if made.OwnerID != "go" || made.Overlap != client.OverlapAllow || len(made.Upcoming) != 5 || made.NextAt == nil {
		t.Errorf("created: %+v", made)
	}
	if _, err := schedules.Create(ctx, request); !errors.Is(err, client.ErrConflict) {
		t.Errorf("created twice: %v", err)
	}
	if paused := schedule(schedules.Pause(ctx, "go")); !paused.Paused || paused.NextAt != nil {
		t.Errorf("paused: %+v", paused)
	}
	if resumed := schedule(schedules.Resume(ctx, "go")); resumed.Paused {
		t.Errorf("resumed: %+v", resumed)
	}
	id := must[string](t)(schedules.Run(ctx, "go"))
	if ran := must[*client.Job](t)(c.Wait(ctx, id)); ran.Status != client.Completed {
		t.Errorf("its job is %s", ran.Status)
	}
	request.Cron, request.Overlap = "@daily", client.OverlapSkip
	schedule(schedules.Set(ctx, "go", request))
	if is := schedule(schedules.Get(ctx, "go")); is.Cron != "@daily" || is.Overlap != client.OverlapSkip {
		t.Errorf("replaced: %+v", is)
	}
	if all := collect(t, schedules.List(ctx)); len(all) != 1 || all[0].Name != "go" {
		t.Errorf("listed: %+v", all)
	}
	collect(t, schedules.Ticks(ctx, "go"))
	if err := schedules.Delete(ctx, "go"); err != nil {
		t.Error(err)
	}
	if _, err := schedules.Get(ctx, "go"); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("after it is deleted: %v", err)
	}
	if times := must[[]time.Time](t)(c.Schedules.Times(ctx, client.ScheduleRequest{Cron: "@hourly"})); len(times) != 5 {
		t.Errorf("its times are %v", times)
	}
}

func goControls(ctx context.Context, t *testing.T, c *client.Client, job client.JobRequest) {
	t.Helper()
	control := must[*client.Control](t)
	must[*client.Queue](t)(c.Queues.Create(ctx, "go-slow", client.QueueOfRunjob))
	control(c.Controls.Set(ctx, client.ControlQueue, "go-slow", client.ControlRequest{MaxRunning: new(1), StartsPerSecond: new(2.5)}))
	if is := control(c.Controls.Pause(ctx, client.ControlQueue, "go-slow")); !is.Paused || *is.MaxRunning != 1 {
		t.Errorf("paused: %+v", is)
	}
	job.Queue, job.FairnessKey = "go-slow", "go/1"
	accepted := must[client.Accepted](t)(c.Submit(ctx, job))
	shares := collect(t, c.Queues.Shares(ctx, "go-slow", "GO/1"))
	for len(shares) == 0 { // they are a second old
		shares = collect(t, c.Queues.Shares(ctx, "go-slow", "GO/1"))
	}
	if shares[0].Waiting != 1 || shares[0].Weight != 1 {
		t.Errorf("shares: %+v", shares[0])
	}
	if is := control(c.Controls.Resume(ctx, client.ControlQueue, "go-slow")); is.Paused || *is.StartsPerSecond != 2.5 {
		t.Errorf("resumed: %+v", is)
	}
	if ran := must[*client.Job](t)(c.Wait(ctx, accepted.JobID)); ran.Status != client.Completed {
		t.Errorf("the job is %s", ran.Status)
	}
	control(c.Controls.Set(ctx, client.ControlFairnessKey, "go/1", client.ControlRequest{Weight: new(7)}))
	all := must[[]client.Control](t)(c.Controls.List(ctx))
	if !slices.ContainsFunc(all, func(o client.Control) bool { return o.Name == "go/1" && *o.Weight == 7 }) {
		t.Errorf("listed: %+v", all)
	}
	control(c.Controls.Delete(ctx, client.ControlFairnessKey, "go/1"))
	control(c.Controls.Delete(ctx, client.ControlQueue, "go-slow"))
	if is := control(c.Controls.Get(ctx, client.ControlFairnessKey, "go/1")); *is.Weight != 1 {
		t.Errorf("after it is deleted: %+v", is)
	}
	if err := c.Queues.Remove(ctx, "go-slow", true); err != nil {
		t.Error(err)
	}
}

func goOperations(ctx context.Context, t *testing.T, c *client.Client, job client.JobRequest) {
	t.Helper()
	job.Delay, job.Tags = time.Hour, []string{"go-operation"}
	must[[]client.BatchResult](t)(c.SubmitBatch(ctx, []client.JobRequest{job, job}))
	operation := must[*client.Operation](t)
	filter := client.Filter{Tag: "go-operation", Status: []string{client.Scheduled, client.Pending}}
	started := operation(c.Operations.Start(ctx, client.OperationRequest{Command: "cancel", Filter: &filter}))
	ended := operation(c.Operations.Wait(ctx, started.OperationID))
	if ended.Status != client.OperationCompleted || ended.Progress.Matched != 2 {
		t.Errorf("ended: %+v", ended)
	}
	if is := operation(c.Operations.Get(ctx, started.OperationID, 0)); !is.FinishedAt.Equal(*ended.FinishedAt) {
		t.Errorf("read again: %+v", is)
	}
	if all := collect(t, c.Operations.List(ctx)); !slices.ContainsFunc(all, func(o *client.Operation) bool { return o.OperationID == started.OperationID }) {
		t.Errorf("listed: %+v", all)
	}
	if _, err := c.Operations.Abort(ctx, noID); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("abort of none: %v", err)
	}
}

func goFailures(ctx context.Context, t *testing.T, c *client.Client, failing client.JobRequest) {
	t.Helper()
	accepted := must[client.Accepted](t)(c.Submit(ctx, failing))
	job := must[*client.Job](t)(c.Wait(ctx, accepted.JobID))
	if dead := collect(t, c.Dead.List(ctx, client.Filter{OwnerID: "go"})); len(dead) != 1 || dead[0].JobID != job.JobID {
		t.Errorf("dead: %+v", dead)
	}
	groups := must[*client.DeadGroups](t)(c.Dead.Groups(ctx, client.DeadGroupFilter{OwnerID: "go"}))
	for len(groups.Groups) == 0 { // they are a second old
		groups = must[*client.DeadGroups](t)(c.Dead.Groups(ctx, client.DeadGroupFilter{OwnerID: "go"}))
	}
	if group := groups.Groups[0]; group.JobType != "SIMULATION" || group.Jobs != 1 {
		t.Errorf("groups: %+v", groups)
	}
	if own := must[[]client.Delivery](t)(c.Deliveries.OfJob(ctx, job.JobID)); len(own) != 1 || own[0].Version != job.Version {
		t.Errorf("deliveries: %+v", own)
	}
	must[*client.Delivery](t)(c.Deliveries.Retry(ctx, job.JobID, job.Version))
	if all := collect(t, c.Deliveries.List(ctx, "")); !slices.ContainsFunc(all, func(d *client.Delivery) bool { return d.JobID == job.JobID }) {
		t.Errorf("deliveries of all: %+v", all)
	}
}

func goInstallation(ctx context.Context, t *testing.T, c *client.Client) {
	t.Helper()
	types := must[[]client.JobType](t)(c.JobTypes.List(ctx))
	if is := must[*client.JobType](t)(c.JobTypes.Get(ctx, "SIMULATION")); !is.Builtin || len(types) == 0 || !json.Valid(is.Schema) {
		t.Errorf("%+v of %d types", is, len(types))
	}
	if err := c.JobTypes.Delete(ctx, "NO-SUCH-TYPE"); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("delete of no type: %v", err)
	}
	workers := must[*client.WorkerList](t)(c.Workers.List(ctx)).Workers
	at := slices.IndexFunc(workers, func(w client.WorkerInfo) bool { return slices.Contains(w.JobTypes, "SIMULATION") })
	if is := must[*client.WorkerDrain](t)(c.Workers.Drain(ctx, workers[at].WorkerID)); !is.Draining {
		t.Errorf("drained: %+v", is)
	}
	if is := must[*client.WorkerDrain](t)(c.Workers.Undrain(ctx, workers[at].WorkerID)); is.Draining {
		t.Errorf("undrained: %+v", is)
	}
	must[[]client.Hook](t)(c.Hooks.List(ctx))
	key := must[*client.Key](t)
	made := key(c.Keys.Create(ctx, client.KeyRequest{Name: "go", Roles: []string{"submit"}, OwnerID: "go"}))
	next := key(c.Keys.Rotate(ctx, made.KeyID, time.Minute))
	if made.Key == "" || next.Key == "" || next.Key == made.Key || len(collect(t, c.Keys.List(ctx, "go"))) != 2 {
		t.Errorf("keys: %+v, %+v", made, next)
	}
	if is := key(c.Keys.Revoke(ctx, next.KeyID)); is.RevokedAt == nil {
		t.Errorf("revoked: %+v", is)
	}
	if is := key(c.Keys.Get(ctx, made.KeyID)); is.Name != "go" || is.Key != "" {
		t.Errorf("stored: %+v", is)
	}
	collect(t, c.Audit.List(ctx, client.AuditFilter{Action: "no-such-action"}))
	collect(t, c.Rejected.List(ctx, client.RejectedFilter{Redriven: new(false)}))
	if _, err := c.Rejected.Get(ctx, noID); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("no rejected record: %v", err)
	}
	if me := must[*client.Me](t)(c.Installation.Me(ctx)); me.Actor != "anonymous" {
		t.Errorf("me: %+v", me)
	}
	owners := must[[]string](t)(c.Installation.Owners(ctx, "G"))
	for !slices.Contains(owners, "go") { // they are some seconds old
		owners = must[[]string](t)(c.Installation.Owners(ctx, "G"))
	}
	if stats := must[*client.Stats](t)(c.Installation.Stats(ctx, "", "SIMULATION")); len(stats.Types) != 1 || len(stats.Throughput.Minutes) != 60 {
		t.Errorf("stats: %+v", stats)
	}
	must[*client.Lag](t)(c.Installation.Lag(ctx))
	if health := must[*client.Health](t)(c.Installation.Health(ctx)); health.Status != "UP" || health.Components["db"].Status != "UP" {
		t.Errorf("health: %+v", health)
	}
}

// The names of members stand in TestTheTypesHaveTheMembersOfTheContract; here the values are right, too.
func TestRequestsOfPartsAreTheContracts(t *testing.T) {
	t.Parallel()
	at, doc := time.Date(2036, 1, 1, 0, 0, 0, 0, time.UTC), contract(t)
	for _, name := range []string{"OperationRequest", "OperationFilter"} {
		doc.Components.Schemas[name].Value.Not = nil // the library reads "not: {}" as in OpenAPI 3.0
	}
	filter := client.Filter{
		Status: []string{client.Failed}, Type: "A", Queue: "q", Tag: "t", OrderingKey: "o", ErrorCode: "E.A", TraceID: noID,
		IdempotencyKey: "k", BatchID: noID, FanOutID: noID, After: noID, Search: "s", OwnerID: "w", Since: at, Until: at, EndedSince: at, EndedUntil: at,
	}
	for schema, requests := range map[string][]any{
		"OperationRequest": {
			client.OperationRequest{Command: "retry", Filter: &filter, IdempotencyKey: "k"},
			client.OperationRequest{Command: "retry", Filter: &client.Filter{NoErrorCode: true}},
			client.OperationRequest{Command: "reschedule", JobIDs: []string{noID}, Delay: time.Second},
			client.OperationRequest{Command: "delete", All: true},
		},
		"ScheduleRequest": {client.ScheduleRequest{
			Name: "n", Cron: "@daily", TimeZone: "UTC", Job: client.JobRequest{JobType: "A", Payload: 1}, Overlap: client.OverlapCancel,
			Missed: client.MissedAll, Paused: true, StartAt: at, EndAt: at,
		}},
		"ControlRequest": {client.ControlRequest{}, client.ControlRequest{Paused: true, MaxRunning: new(0), StartsPerSecond: new(0.5), Weight: new(3)}},
		"KeyRequest":     {client.KeyRequest{Name: "n", Roles: []string{"work"}, WorkTypes: []string{"A"}, WorkQueues: []string{"q"}, OwnerID: "o", ExpiresAt: at}},
		"Callback": {
			client.Callback{JobID: noID, Attempt: 1, Status: client.Completed, Output: 1},
			client.Callback{JobID: noID, Attempt: 1, Status: client.Failed, ErrorCode: "A.B", Message: "no", Retryable: new(false)},
			client.Callback{JobID: noID, Attempt: 1, Status: client.CallbackProgress, Progress: &client.Progress{Percent: 50}},
		},
	} {
		for _, request := range requests {
			text, err := json.Marshal(request)
			if err != nil {
				t.Fatal(err)
			}
			var value any
			if err := json.Unmarshal(text, &value); err != nil {
				t.Fatal(err)
			}
			if err := doc.Components.Schemas[schema].Value.VisitJSON(value); err != nil {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
}
