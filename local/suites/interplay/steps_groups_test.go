package interplay

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"
)

func (x *run) bulk(ctx context.Context, s Step) {
	name := fmt.Sprintf("s%d", s.N)
	req := map[string]any{"command": s.Command, "idempotencyKey": x.key(name)}
	if s.Command == "reschedule" {
		req["delayMs"] = s.Ms
	}
	filter := map[string]any{"ownerId": x.owner}
	var ids []string
	switch s.By {
	case "tag":
		filter["tag"] = "red"
	case "ordering":
		filter["orderingKey"] = x.key("o0")
	case "batch":
		if id := x.id(s.Of); id != "" {
			filter["batchId"] = id
		}
	case "elements":
		if id := x.id(s.Of); id != "" {
			filter["fanOutId"] = id
		}
	case "list":
		for _, of := range s.More {
			if id := x.id(of); id != "" && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
		if len(ids) == 0 {
			return
		}
	}
	if ids != nil {
		req["jobIds"] = ids
	} else {
		req["filter"] = filter
	}
	a := x.ask(ctx, s.N, http.MethodPost, "/api/operations", req, Asked{})
	a.Jobs = ids
	x.operation(name, a)
}

func (x *run) operation(name string, a *Asked) {
	var got struct{ OperationID string }
	_ = json.Unmarshal(a.Answer, &got)
	if !a.ok() || got.OperationID == "" {
		return
	}
	x.made(name, got.OperationID)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.bulks[name] = got.OperationID
}

// group sends a command to a batch, a flow or an operation.
func (x *run) group(ctx context.Context, s Step, id string) {
	name := fmt.Sprintf("s%d", s.N)
	switch s.Do {
	case "abort":
		x.ask(ctx, s.N, http.MethodPost, "/api/operations/"+id+"/abort", nil, Asked{})
	case "batch-close":
		x.ask(ctx, s.N, http.MethodPost, "/api/batches/"+id+"/close", nil, Asked{})
	case "batch-cancel", "batch-retry":
		x.operation(name, x.ask(ctx, s.N, http.MethodPost, "/api/batches/"+id+"/"+s.Do[len("batch-"):], nil, Asked{}))
	case "flow-cancel":
		x.operation(name, x.ask(ctx, s.N, http.MethodPost, "/api/flows/"+id+"/cancel", nil, Asked{}))
	default:
		var body any
		switch {
		case s.All:
			body = map[string]any{"all": true}
		case len(s.More) > 0:
			var from []string
			for _, name := range s.More {
				from = append(from, flowName(name))
			}
			body = map[string]any{"from": from}
		}
		x.ask(ctx, s.N, http.MethodPost, "/api/flows/"+id+"/retry", body, Asked{})
	}
}

func (x *run) queueStep(ctx context.Context, s Step) {
	path := "/api/queues/" + x.own(s.Name)
	if s.Do == "queue-put" {
		body := map[string]any{"workers": map[string]string{"q0": "runjob", "q1": "pull"}[s.Name]}
		if x.ask(ctx, s.N, http.MethodPut, path, body, Asked{Admin: true}).ok() {
			x.mu.Lock()
			x.queues[s.Name] = true
			x.mu.Unlock()
		}
		return
	}
	x.ask(ctx, s.N, http.MethodDelete, path+"?drain="+fmt.Sprint(s.All), nil, Asked{Admin: true})
}

// scheduleStep makes, changes, runs or deletes a schedule.
func (x *run) scheduleStep(ctx context.Context, s Step) {
	path := "/api/schedules/" + x.key(s.Name)
	switch s.Do {
	case "schedule-put":
		j := s.Jobs[0]
		req := x.options(j)
		req["payload"] = x.payload(j, nil)
		delete(req, "idempotencyKey")
		a := x.ask(ctx, s.N, http.MethodPut, path+"?ownerId="+x.owner, map[string]any{
			"cron": s.Cron, "overlap": s.Overlap, "missed": s.Missed, "job": req,
		}, Asked{})
		x.mu.Lock()
		defer x.mu.Unlock()
		if a.ok() {
			x.schedule[s.Name], x.scheduled[s.Name] = true, j
			x.rec.Specs[j.Name] = &Spec{Job: j, Way: "schedule", Sent: a.Sent, At: a.At, Status: a.Status}
		}
	case "schedule-delete":
		x.ask(ctx, s.N, http.MethodDelete, path+"?ownerId="+x.owner, nil, Asked{})
	case "schedule-run":
		a := x.ask(ctx, s.N, http.MethodPost, path+"/run?ownerId="+x.owner, nil, Asked{Header: "none"})
		var got results
		_ = json.Unmarshal(a.Answer, &got)
		x.mu.Lock()
		j := x.scheduled[s.Name]
		x.mu.Unlock()
		j.Name = fmt.Sprintf("s%d", s.N)
		x.accepted(j, "schedule", a, got.JobID, got.DecidedBy)
	default:
		x.ask(ctx, s.N, http.MethodPost, path+"/"+s.Do[len("schedule-"):]+"?ownerId="+x.owner, nil, Asked{Header: "none"})
	}
}

// subject returns the name of what a control is about.
func (x *run) subject(kind, name string) string {
	switch {
	case name == "*":
		return name
	case kind == "owner" || kind == "fairnessKey" && name == "":
		return x.owner
	case kind == "type":
		return x.own("type")
	}
	return x.own(name)
}

func (x *run) control(ctx context.Context, s Step) {
	if s.Name == "*" && x.second() {
		return // the first owner does it
	}
	name := x.subject(s.Kind, s.Name)
	of := s.Kind + ":" + name
	x.mu.Lock()
	if x.subjects[of] == nil {
		x.subjects[of] = new(sync.Mutex)
	}
	turn := x.subjects[of]
	x.mu.Unlock()
	turn.Lock() // so that it is known which of two changes comes last
	defer turn.Unlock()
	x.blocked(ctx, of)
	x.mu.Lock()
	limit := Limit{}
	if w := x.open[of]; w != nil {
		w.To, limit = time.Now(), w.Limit
		delete(x.open, of)
	}
	x.mu.Unlock()
	path := "/api/controls/" + s.Kind + "/" + escape(name)
	var a *Asked
	switch s.Do {
	case "control":
		limit = *s.Limit
		a = x.ask(ctx, s.N, http.MethodPut, path, s.Limit, Asked{Admin: true})
	case "resume":
		limit.Paused = false
		a = x.ask(ctx, s.N, http.MethodPost, path+"/resume", nil, Asked{Admin: true})
	default:
		limit = Limit{}
		a = x.ask(ctx, s.N, http.MethodDelete, path, nil, Asked{Admin: true})
	}
	var got struct{ Applied bool }
	_ = json.Unmarshal(a.Answer, &got)
	if !a.ok() || limit == (Limit{}) {
		return
	}
	w := &Window{Kind: s.Kind, Name: name, Limit: limit, From: time.Now(), Applied: got.Applied}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.open[of] = w
	x.rec.Windows = append(x.rec.Windows, w)
}
