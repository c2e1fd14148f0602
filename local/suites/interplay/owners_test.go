package interplay

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jobweaver/jobweaver/shared/client"
)

// ownerKey is an API key of an owner.
type ownerKey struct{ KeyID, Key string }

// admit makes the run of a program for a new owner, with a key of its own.
func (i *Installation) admit(ctx context.Context, p Program, base, suffix string) (*run, error) {
	owner, hook := base+suffix, "hooked-"+suffix
	secrets, err := i.secrets(ctx, owner, hook)
	if err != nil {
		return nil, err
	}
	x := &run{
		Installation: i, Program: p, base: base, owner: owner, hook: hook, log: i.Witness.Open(owner, hook, secrets),
		rec: &Record{
			Program: p, Base: base, Owner: owner, Hook: hook, Began: time.Now(), Specs: map[string]*Spec{}, Committed: map[string]bool{},
		},
		things: map[string]*thing{}, asked: map[string]*Asked{}, open: map[string]*Window{}, subjects: map[string]*sync.Mutex{},
		last: map[string]Seen{}, batches: map[string]string{}, flows: map[string]string{}, bulks: map[string]string{},
		fanOuts: map[string]bool{}, schedule: map[string]bool{}, queues: map[string]bool{},
		scheduled: map[string]Job{}, shown: map[string]*client.Job{},
	}
	body := fmt.Appendf(nil, `{"name": %q, "ownerId": %[1]q, "roles": ["operate", "work"]}`, owner)
	err = i.patiently(ctx, func() error {
		_, err := i.API.Do(ctx, http.MethodPost, "/api/keys", "application/json", body, &x.cred)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	x.API = client.New(i.URL, x.cred.Key, client.WithTimeout(time.Minute))
	x.hooked = client.New(i.URL, i.admin, client.WithTimeout(time.Minute), client.WithTransport(actingFor(hook)))
	return x, nil
}

// actingFor is a transport whose requests act for an owner.
type actingFor string

// RoundTrip sends the request.
func (owner actingFor) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-Owner-Id", string(owner))
	return http.DefaultTransport.RoundTrip(r)
}

// leave revokes the key of the owner, as an owner may have only so many.
func (x *run) leave(ctx context.Context) {
	x.read("revoke a key", x.patiently(ctx, func() error {
		_, err := x.Installation.API.Do(ctx, http.MethodDelete, "/api/keys/"+x.cred.KeyID, "", nil, nil)
		return err
	}))
}

// second reports whether this is the second owner, which leaves alone what all owners share.
func (x *run) second() bool { return strings.HasSuffix(x.owner, "b") }

// clientOf returns the client that may see a job: that of a hook belongs to the hook's owner, and that of the outbox to
// none.
func (x *run) clientOf(id string) *client.Client {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, s := range x.rec.Specs {
		switch {
		case s.ID != id || !s.Foreign:
		case s.Owner == x.hook:
			return x.hooked
		default:
			return x.Installation.API
		}
	}
	return x.API
}

// ownerOf returns the owner of the jobs that come in a way.
func (x *run) ownerOf(way string) string {
	switch way {
	case "hook":
		return x.hook
	case "outbox", "rollback":
		return ""
	}
	return x.owner
}

// as returns with which key a command for a job is given.
func (x *run) as(name string) Asked {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.rec.Specs[name]
	foreign := s != nil && s.Foreign
	return Asked{Admin: foreign, Hooked: foreign && s.Owner == x.hook}
}

// mark writes down which ids belong to the other owner.
func (x *run) mark() {
	r, other := x.rec, x.other.rec
	r.Other = other.Owner
	for _, jobs := range []map[string]*client.Job{other.Jobs, other.Gone} {
		for id := range jobs {
			r.Others = append(r.Others, id)
		}
	}
	for _, s := range other.Specs {
		if s.Made {
			r.Others = append(r.Others, s.ID)
		}
	}
	for _, ids := range []map[string]string{x.other.batches, x.other.flows, x.other.bulks} {
		for _, id := range ids {
			r.Others = append(r.Others, id)
		}
	}
	slices.Sort(r.Others)
	r.Others = slices.Compact(r.Others)
}

// Waiting is what a job showed of why it waits.
type Waiting struct {
	At  time.Time      `json:"at"` // of the request
	Job string         `json:"job"`
	By  []client.Block `json:"by"`
}

// waits writes down what some job of a list waits for.
func (x *run) waits(ctx context.Context, jobs []client.Job) {
	i := slices.IndexFunc(jobs, func(j client.Job) bool {
		return j.Status == client.Pending && (j.OrderingKey != "" || j.Singleton != nil)
	})
	if i < 0 {
		return
	}
	at := time.Now()
	job, err := x.API.Get(ctx, jobs[i].JobID, 0)
	if err != nil || job.Status != client.Pending {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.rec.Waits = append(x.rec.Waits, Waiting{at, job.JobID, job.BlockedBy})
}

// lists reads the lists that have no filter: they show what the key may see.
func (x *run) lists(ctx context.Context) {
	x.rec.Lists = map[string][]string{}
	for name, id := range map[string]string{
		"batches": "batchId", "flows": "flowId", "operations": "operationId", "deliveries": "jobId", "jobs/dead": "jobId",
	} {
		path, cursor := "/api/"+name, ""
		for more := true; more; more = cursor != "" {
			var page map[string]json.RawMessage
			x.read("list "+name, x.patiently(ctx, func() error {
				_, err := x.API.Do(ctx, http.MethodGet, path+"?limit=200"+cursor, "", nil, &page)
				return err
			}))
			cursor = ""
			for member, value := range page {
				var rows []map[string]any
				var next string
				if member == "nextCursor" && json.Unmarshal(value, &next) == nil && next != "" {
					cursor = "&cursor=" + url.QueryEscape(next)
				}
				_ = json.Unmarshal(value, &rows)
				for _, row := range rows {
					x.rec.Lists[path] = append(x.rec.Lists[path], fmt.Sprint(row[id]))
				}
			}
		}
	}
}

// intrude sends a request about what the other owner has made under the same name, which must not be found.
func (x *run) intrude(ctx context.Context, s Step) {
	if name, ok := strings.CutPrefix(s.Command, "schedule-"); ok {
		method, path := http.MethodPost, "/api/schedules/"+x.key(s.Of)+"/"+name
		if name == "delete" {
			method, path = http.MethodDelete, "/api/schedules/"+x.key(s.Of)
		}
		x.ask(ctx, s.N, method, path+"?ownerId="+x.other.owner, nil, Asked{Want: http.StatusNotFound})
		return
	}
	id := x.other.id(s.Of)
	if id == "" {
		return
	}
	a := Asked{Want: http.StatusNotFound}
	job := Job{Name: fmt.Sprintf("s%d", s.N), Type: "FUNCTION", Acts: []Act{{Do: actOK}}}
	switch s.Command {
	case "get":
		x.ask(ctx, s.N, http.MethodGet, s.Way+id, nil, a)
	case "delete":
		x.ask(ctx, s.N, http.MethodDelete, s.Way+id, nil, a)
	case "patch":
		a.Type = "application/merge-patch+json"
		x.ask(ctx, s.N, http.MethodPatch, s.Way+id, map[string]any{"priority": 9}, a)
	case "reschedule":
		x.ask(ctx, s.N, http.MethodPost, s.Way+id+"/reschedule", map[string]any{"delayMs": 0}, a)
	case "run-again":
		x.ask(ctx, s.N, http.MethodPost, s.Way+id+"/run-again", map[string]any{"idempotencyKey": x.key(job.Name)}, a)
	case "logs", "deliveries":
		x.ask(ctx, s.N, http.MethodGet, s.Way+id+"/"+s.Command, nil, a)
	case "after", "batchId":
		req, _ := x.request(job)
		req["after"] = []any{id}
		if s.Command == "batchId" {
			delete(req, "after")
			req["batchId"] = id
		} else {
			a.Want = http.StatusBadRequest
		}
		req["idempotencyKey"] = x.key(job.Name)
		x.ask(ctx, s.N, http.MethodPost, "/api/jobs", req, a)
	case "bulk":
		a.Want = http.StatusAccepted
		body := map[string]any{"command": "cancel", "idempotencyKey": x.key(job.Name), "jobIds": []any{id}}
		x.operation(job.Name, x.ask(ctx, s.N, http.MethodPost, "/api/operations", body, a))
	default:
		x.ask(ctx, s.N, http.MethodPost, s.Way+id+"/"+s.Command, nil, a)
	}
}

// intrude draws such a request.
func (d *drawing) intrude() {
	s := Step{Do: "intrude", Way: "/api/jobs/", Of: pick(d, "job", recent(d.jobs)...)}
	switch {
	case len(d.flowNames) > 0 && d.eighths("a flow", 1):
		s.Way, s.Of = "/api/flows/", pick(d, "flow", recent(d.flowNames)...)
		s.Command = pick(d, "command", "cancel", "get", "retry")
	case len(d.batches) > 0 && d.eighths("a batch", 1):
		s.Way, s.Of = "/api/batches/", pick(d, "batch", recent(d.batches)...)
		s.Command = pick(d, "command", "cancel", "get", "retry", "close", "batchId")
	case len(d.bulks) > 0 && d.eighths("an operation", 2):
		s.Way, s.Of = "/api/operations/", pick(d, "operation", recent(d.bulks)...)
		s.Command = pick(d, "command", "abort", "get")
	case len(d.schedules) > 0 && d.eighths("a schedule", 1):
		s.Of = pick(d, "schedule", d.schedules...)
		s.Command = "schedule-" + pick(d, "command", "pause", "delete", "run")
	default:
		s.Command = pick(d, "command", "cancel", "retry", "delete", "patch", "get", "bulk", "reschedule", "after", "run-again", "logs", "deliveries")
	}
	d.add(s)
}
