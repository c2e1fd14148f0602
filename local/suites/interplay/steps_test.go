package interplay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/jobweaver/jobweaver/shared/client"
)

func (x *run) step(ctx context.Context, s Step) {
	if s.Ended {
		x.awaitEnd(ctx, s)
	}
	switch s.Do {
	case "submit":
		x.submit(ctx, s)
	case "repeat":
		x.repeat(ctx, s)
	case "batch":
		x.makeBatch(ctx, s)
	case "flow":
		x.makeFlow(ctx, s)
	case "cancel", "retry", "reschedule", "patch", "delete", "run-again":
		if id := x.id(s.Of); id != "" {
			x.command(ctx, s, id)
		}
	case "bulk":
		x.bulk(ctx, s)
	case "abort", "batch-close", "batch-cancel", "batch-retry", "flow-cancel", "flow-retry":
		if id := x.id(s.Of); id != "" {
			x.group(ctx, s, id)
		}
	case "control", "lift", "resume":
		x.control(ctx, s)
	case "queue-put", "queue-remove":
		x.queueStep(ctx, s)
	case "alert-put", "alert-pause", "alert-resume", "alert-test":
		x.alertStep(ctx, s)
	case "intrude":
		x.intrude(ctx, s)
	case "kill", "stop", "drain", "retain", "kill one", "stop one":
		if x.second() {
			return // the first owner does it
		}
		if err := x.Disturb(ctx, s.Do, s.Name, time.Duration(s.Ms)*time.Millisecond); err != nil && ctx.Err() == nil {
			x.trouble("%s: %v", s.Do, err)
		}
	default:
		x.scheduleStep(ctx, s)
	}
}

// awaitEnd waits for a while until what a step is about has ended, so that it does not always come too early.
func (x *run) awaitEnd(ctx context.Context, s Step) {
	path := map[bool]string{true: "/api/batches/", false: "/api/jobs/"}[strings.HasPrefix(s.Do, "batch")]
	if strings.HasPrefix(s.Do, "flow") {
		path = "/api/flows/"
	}
	of := s.Of
	if len(s.More) > 0 && s.Do == "bulk" {
		of = s.More[0]
		path = "/api/jobs/"
	}
	if id := x.id(of); id != "" {
		_, _ = x.API.Do(ctx, http.MethodGet, path+id+"?wait=4s", "", nil, nil)
	}
}

// keyed reports whether a request may be sent twice.
func keyed(j Job) Asked {
	if j.Idem == "" && !j.OwnID {
		return Asked{Header: "none"}
	}
	return Asked{}
}

type results struct {
	JobID     string
	DecidedBy string
	Status    int
	Error     struct{ ErrorCode string }
	Results   []results
	Jobs      []results
}

func (x *run) submit(ctx context.Context, s Step) {
	switch s.Way {
	case "outbox", "rollback":
		x.enqueue(ctx, s)
		return
	case "many", "events":
		x.submitMany(ctx, s)
		return
	}
	j := s.Jobs[0]
	req, ok := x.request(j)
	if !ok {
		return
	}
	var a *Asked
	switch s.Way {
	case "hook":
		a = x.ask(ctx, s.N, http.MethodPost, "/hooks/"+x.hook, map[string]any{
			"jobType": req["jobType"], "queue": req["queue"], "tag": x.owner, "payload": req["payload"],
		}, Asked{})
	case "event":
		a = x.binaryEvent(ctx, s, req)
	case "structured":
		a = x.ask(ctx, s.N, http.MethodPost, "/events", x.event(j.Name, req), Asked{Type: "application/cloudevents+json"})
	default:
		a = x.ask(ctx, s.N, http.MethodPost, "/api/jobs", req, keyed(j))
	}
	var got results
	_ = json.Unmarshal(a.Answer, &got)
	x.accepted(j, s.Way, a, got.JobID, got.DecidedBy)
}

func (x *run) event(name string, req map[string]any) map[string]any {
	delete(req, "idempotencyKey")
	delete(req, "jobId")
	return map[string]any{
		"specversion": "1.0", "id": name, "source": "/interplay/" + x.base, "type": "io.jobweaver.job.submit.v1",
		"datacontenttype": "application/json", "data": req,
	}
}

// binaryEvent submits an event of another type: its data is the payload, and the job has no owner.
func (x *run) binaryEvent(ctx context.Context, s Step, req map[string]any) *Asked {
	query := url.Values{}
	for name, value := range req {
		switch name {
		case "jobType", "queue", "priority", "maxRetryCount", "timeoutMs", "delayMs", "runAt", "expiresAt", "orderingKey",
			"fairnessKey", "callbackUrl":
			query.Set(name, fmt.Sprint(value))
		case "tags":
			query["tags"] = value.([]string)
		}
	}
	return x.ask(ctx, s.N, http.MethodPost, "/events?"+query.Encode(), map[string]any{
		"specversion": "1.0", "id": s.Jobs[0].Name, "source": "/interplay/" + x.base, "type": "com.example.happened",
		"datacontenttype": "application/json", "data": req["payload"],
	}, Asked{Type: "application/cloudevents+json"})
}

func (x *run) submitMany(ctx context.Context, s Step) {
	var requests []any
	var jobs []Job
	a := Asked{}
	for _, j := range s.Jobs {
		req, ok := x.request(j)
		if !ok {
			continue
		}
		if s.Way == "events" {
			requests = append(requests, x.event(j.Name, req))
		} else {
			requests = append(requests, req)
			if keyed(j).Header != "" {
				a.Header = "none"
			}
		}
		jobs = append(jobs, j)
	}
	if len(jobs) == 0 {
		return
	}
	var answered *Asked
	if s.Way == "events" {
		answered = x.ask(ctx, s.N, http.MethodPost, "/events", requests, Asked{Type: "application/cloudevents-batch+json"})
	} else {
		answered = x.ask(ctx, s.N, http.MethodPost, "/api/jobs/batch", map[string]any{"jobs": requests}, a)
	}
	var got results
	_ = json.Unmarshal(answered.Answer, &got)
	got.Results = append(got.Results, got.Jobs...)
	for i, j := range jobs {
		one := *answered
		r := results{}
		if i < len(got.Results) {
			r = got.Results[i]
			if r.Status > 0 {
				one.Status, one.Code = r.Status, r.Error.ErrorCode
			}
		}
		x.accepted(j, s.Way, &one, r.JobID, r.DecidedBy)
	}
}

// accepted writes down what became of a request for a job.
func (x *run) accepted(j Job, way string, a *Asked, id, by string) {
	x.mu.Lock()
	spec := &Spec{Job: j, Way: way, Sent: a.Sent, At: a.At, Status: a.Status, Code: a.Code, By: by, Owner: x.ownerOf(way)}
	spec.Foreign = spec.Owner != x.owner
	if way == "event" || way == "hook" { // its request cannot name one: RETRY_POLICIES does
		spec.Job.Policy = "fixed"
	}
	if a.ok() && id != "" {
		spec.ID, spec.Made = id, by == "" && a.Status == http.StatusAccepted
	}
	x.rec.Specs[j.Name] = spec
	if slices.Contains([]string{"one", "structured", "event", "hook"}, way) {
		x.asked[j.Name] = a
	}
	if a.ok() && id != "" {
		a.Jobs = append(a.Jobs, id)
	}
	x.mu.Unlock()
	if spec.ID != "" {
		x.made(j.Name, id)
	}
}

// repeat sends the request for a job again.
func (x *run) repeat(ctx context.Context, s Step) {
	x.id(s.Of)
	x.mu.Lock()
	before := x.asked[s.Of]
	spec := Spec{}
	if s := x.rec.Specs[s.Of]; s != nil {
		spec = *s
	}
	x.mu.Unlock()
	if before == nil || !before.ok() {
		return
	}
	if spec.Job.OwnID && spec.ID != "" {
		if _, err := x.API.Get(ctx, spec.ID, 0); errors.Is(err, client.ErrNotFound) {
			spec.Deleted = spec.ID
		}
	}
	a := x.ask(ctx, s.N, before.Method, before.Path, before.Body, Asked{Header: "none", Type: before.Type})
	var got results
	_ = json.Unmarshal(a.Answer, &got)
	spec.Sent, spec.At, spec.Status, spec.Code, spec.By, spec.ID, spec.Made = a.Sent, a.At, a.Status, a.Code, got.DecidedBy, "", false
	if a.ok() {
		spec.ID, spec.Made = got.JobID, got.DecidedBy == "" && a.Status == http.StatusAccepted
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.rec.Specs[fmt.Sprintf("%s again s%d", s.Of, s.N)] = &spec
}

func (x *run) makeBatch(ctx context.Context, s Step) {
	name := fmt.Sprintf("s%d", s.N)
	req := map[string]any{"name": x.key(name), "ownerId": x.owner, "closed": s.Closed, "idempotencyKey": x.key(name)}
	if s.Ms > 0 {
		req["expiresAt"] = instant(s.Ms)
	}
	if s.OnComplete {
		req["onComplete"] = x.followUp(name, "complete")
	}
	if s.OnFailure {
		req["onFailure"] = x.followUp(name, "failure")
	}
	var jobs []Job
	requests := []any{}
	for _, j := range s.Jobs {
		own := j
		own.Batch, own.OwnID, own.Idem, own.Unique, own.Drop = "", false, "", "", false
		if one, ok := x.request(own); ok {
			jobs, requests = append(jobs, own), append(requests, one)
		}
	}
	req["jobs"] = requests
	a := x.ask(ctx, s.N, http.MethodPost, "/api/batches", req, Asked{})
	var got struct{ BatchID string }
	_ = json.Unmarshal(a.Answer, &got)
	if !a.ok() || got.BatchID == "" {
		return
	}
	x.made(name, got.BatchID)
	x.mu.Lock()
	x.batches[name] = got.BatchID
	x.mu.Unlock()
	x.members(ctx, jobs, got.BatchID, a)
}

// members finds the jobs that a batch was created with: its answer does not have their ids.
func (x *run) members(ctx context.Context, jobs []Job, batch string, a *Asked) {
	if len(jobs) == 0 {
		return
	}
	var ids []string
	err := x.patiently(ctx, func() error {
		var page struct{ Jobs []struct{ JobID string } }
		_, err := x.API.Do(ctx, http.MethodGet, "/api/jobs?limit=200&batchId="+batch, "", nil, &page)
		ids = nil
		for _, j := range page.Jobs {
			ids = append(ids, j.JobID)
		}
		return err
	})
	if err != nil {
		x.trouble("list batch: %v", err)
		return
	}
	for _, id := range ids {
		job, err := x.API.Get(ctx, id, 0)
		if err != nil {
			continue
		}
		i := slices.IndexFunc(jobs, func(j Job) bool { return nameIn(job.Payload) == j.Name })
		if i >= 0 {
			one := *a
			one.Status = http.StatusAccepted
			x.accepted(jobs[i], "batch", &one, id, "")
		}
	}
}

// nameIn returns the name of the request that a payload came with.
func nameIn(payload json.RawMessage) string {
	var p struct {
		Name    string
		Subject string // of a mail
		Title   string // of a report
		Data    struct{ Name string }
		Steps   []struct{ Message string }
	}
	_ = json.Unmarshal(payload, &p)
	if len(p.Steps) > 0 {
		return p.Steps[0].Message
	}
	return p.Name + p.Data.Name + p.Subject + p.Title
}

func (x *run) makeFlow(ctx context.Context, s Step) {
	name := fmt.Sprintf("s%d", s.N)
	jobs, fanOuts := map[string]any{}, map[string]bool{}
	var accepted []Job
	for _, j := range s.Jobs {
		if req, ok := x.flowRequest(j, fanOuts); ok {
			jobs[flowName(j.Name)] = req
			accepted = append(accepted, j)
		}
		fanOuts[j.Name] = j.ForEach != ""
	}
	if len(jobs) != len(s.Jobs) {
		return
	}
	req := map[string]any{"name": x.key(name), "ownerId": x.owner, "jobs": jobs, "idempotencyKey": x.key(name)}
	if s.Ms > 0 {
		req["expiresAt"] = instant(s.Ms)
	}
	if s.OnComplete {
		req["onComplete"] = x.followUp(name, "complete")
	}
	if s.OnFailure {
		req["onFailure"] = x.followUp(name, "failure")
	}
	a := x.ask(ctx, s.N, http.MethodPost, "/api/flows", req, Asked{})
	var got struct {
		FlowID string
		Jobs   map[string]string
	}
	_ = json.Unmarshal(a.Answer, &got)
	if !a.ok() {
		return
	}
	x.made(name, got.FlowID)
	x.mu.Lock()
	x.flows[name] = got.FlowID
	x.mu.Unlock()
	for _, j := range accepted {
		one := *a
		one.Status = http.StatusAccepted
		x.accepted(j, "flow", &one, got.Jobs[flowName(j.Name)], "")
	}
}

func (x *run) command(ctx context.Context, s Step, id string) {
	path := "/api/jobs/" + id
	as := x.as(s.Of)
	patch := as
	patch.Type = "application/merge-patch+json"
	var a *Asked
	switch s.Do {
	case "delete":
		a = x.ask(ctx, s.N, http.MethodDelete, path, nil, as)
	case "reschedule":
		a = x.ask(ctx, s.N, http.MethodPost, path+"/reschedule", map[string]any{"delayMs": s.Ms}, as)
	case "patch":
		a = x.ask(ctx, s.N, http.MethodPatch, path, x.patch(s.Patch, x.kindOf(s.Of)), patch)
	case "run-again":
		x.runAgain(ctx, s, path)
		return
	default:
		a = x.ask(ctx, s.N, http.MethodPost, path+"/"+s.Do, nil, as)
	}
	a.Jobs = []string{id}
}

func (x *run) kindOf(name string) string {
	x.mu.Lock()
	defer x.mu.Unlock()
	if t := x.things[name]; t != nil {
		return t.kind
	}
	return ""
}

func (x *run) runAgain(ctx context.Context, s Step, path string) {
	change := x.patch(s.Patch, x.kindOf(s.Of))
	name := fmt.Sprintf("s%d", s.N)
	change["idempotencyKey"] = x.key(name)
	a := x.ask(ctx, s.N, http.MethodPost, path+"/run-again", change, x.as(s.Of))
	var got results
	_ = json.Unmarshal(a.Answer, &got)
	x.mu.Lock()
	old := Spec{}
	if spec := x.rec.Specs[s.Of]; spec != nil {
		old = *spec
	}
	x.mu.Unlock()
	j := old.Job // the new job has the payload, and so the name, of the old one
	j.After, j.DelayMs, j.ExpiresMs, j.Unique, j.Debounce, j.Uses, j.ForEach = nil, 0, 0, "", "", "", ""
	if p := s.Patch; p != nil {
		j.DelayMs, j.ExpiresMs = p.DelayMs, p.ExpiresMs
		if p.MaxRetries != nil {
			j.MaxRetries = p.MaxRetries
		}
	}
	j.Name, j.Idem, j.OwnID = name, name, false
	x.accepted(j, "run-again", a, got.JobID, got.DecidedBy)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.rec.Specs[name].Foreign, x.rec.Specs[name].Owner = old.Foreign, old.Owner
}
