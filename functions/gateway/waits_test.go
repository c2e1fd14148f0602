package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// waitAnswer is the answer to waits.
type waitAnswer struct {
	DelayMs *int64
	Waits   []struct {
		Name, Status string
		Until        *string
		Event        *struct {
			ID, Source, Type string
			Data             json.RawMessage
		}
		Job *struct {
			JobID, Status string
			Output        json.RawMessage
			LastError     *struct{ ErrorCode string }
		}
	}
}

// attemptOf submits a job, and claims an attempt of it.
func (c *client) attemptOf(p *puller) (id, token string) {
	c.t.Helper()
	id = c.post("/api/jobs", `{"jobType": "MAIL", "queue": "mail", "payload": {}}`).want(http.StatusAccepted).jobID().String()
	p.giveOf(uuid.MustParse(id), id+".1.secret")
	return id, c.claimed()[0]
}

func (c *client) wait(token, waits string) waitAnswer {
	c.t.Helper()
	var got waitAnswer
	c.post("/api/workers/wait", `{"worker": "w", "token": "`+token+`", "waits": [`+waits+`]}`).want(http.StatusOK).into(&got)
	return got
}

const paidEvent = `{"specversion": "1.0", "id": "p-1", "source": "/shop", "type": "com.shop.paid", "subject": "A", "data": {"order": "17", "html": "<b>"}}`

func TestAHandlerWaitsForAnEvent(t *testing.T) {
	t.Parallel()
	p := newPuller(t)
	h := openPulling(t, p)
	c := h.as("acme", "work", "submit", "read")
	id, token := c.attemptOf(p)
	const wait = `{"name": "paid", "timeoutMs": 60000, "event": {"type": "com.shop.paid", "match": {"order": "17"}}}`
	got := c.wait(token, wait+`, {"name": "ever", "event": {"type": "com.shop.never"}}`)
	if w := got.Waits[0]; w.Status != "OPEN" || w.Until == nil || got.DelayMs == nil || *got.DelayMs > 60_000 || *got.DelayMs < 50_000 {
		t.Fatalf("%+v", got)
	}
	var kept struct {
		EventID string
		Jobs    int
	}
	h.as("other", "submit").post("/events", paidEvent, "Content-Type", structuredType).want(http.StatusAccepted).into(&kept)
	if kept.Jobs != 0 {
		t.Errorf("an event of another owner is for %d jobs", kept.Jobs)
	}
	c.post("/events", paidEvent, "Content-Type", structuredType).want(http.StatusAccepted).into(&kept)
	if kept.EventID != "p-1" || kept.Jobs != 1 {
		t.Errorf("%+v", kept)
	}
	c.post("/events", paidEvent, "Content-Type", structuredType).want(http.StatusOK).into(&kept)
	if kept.Jobs != 0 {
		t.Errorf("the same event again is for %d jobs", kept.Jobs)
	}
	got = c.wait(token, wait)
	if w := got.Waits[0]; w.Status != "DONE" || got.DelayMs != nil || w.Event == nil || w.Event.ID != "p-1" || string(w.Event.Data) != `{"order":"17","html":"<b>"}` {
		t.Errorf("%+v %+v", got, got.Waits[0].Event)
	}
	var job struct {
		Waits []struct {
			Name, Status string
			Event        struct{ Match map[string]string }
			Received     *struct{ Subject string }
		}
	}
	c.get("/api/jobs/" + id).want(http.StatusOK).into(&job)
	if len(job.Waits) != 2 || job.Waits[0].Name != "ever" || job.Waits[0].Received != nil || job.Waits[1].Event.Match["order"] != "17" || job.Waits[1].Received == nil || job.Waits[1].Received.Subject != "A" {
		t.Errorf("%+v", job)
	}
}

func TestAHandlerCallsJobs(t *testing.T) {
	t.Parallel()
	p := newPuller(t)
	h := openPulling(t, p)
	c := h.as("acme", "work", "submit", "read", "operate")
	id, token := c.attemptOf(p)
	const call = `{"name": "pack", "group": "all", "job": {"jobType": "MAIL", "payload": {"n": 1}, "tags": ["x"]}}`
	first, again := c.wait(token, call), c.wait(token, strings.Replace(call, `"n": 1`, `"n": 2`, 1))
	child := first.Waits[0].Job
	if child == nil || child.Status != "PENDING" || again.Waits[0].Job == nil || again.Waits[0].Job.JobID != child.JobID || *first.DelayMs != 30*86_400_000 {
		t.Fatalf("%+v, then %+v", first, again)
	}
	var shown struct {
		ParentID, TraceID, OwnerID string
		Payload                    struct{ N int }
		Waits                      []struct {
			Job struct{ JobID, JobType, Status string }
		}
	}
	c.get("/api/jobs/" + child.JobID).want(http.StatusOK).into(&shown)
	trace := shown.TraceID
	if shown.ParentID != id || shown.OwnerID != "acme" || shown.Payload.N != 1 {
		t.Errorf("%+v", shown)
	}
	c.get("/api/jobs/" + id).want(http.StatusOK).into(&shown)
	if shown.TraceID != trace || len(shown.Waits) != 1 || shown.Waits[0].Job.JobID != child.JobID || shown.Waits[0].Job.JobType != "MAIL" {
		t.Errorf("%+v", shown)
	}
	h.as("acme", "work").post("/api/workers/wait", `{"worker": "w", "token": "`+token+`", "waits": [`+call+`]}`).wantError(apierror.Forbidden)

	h.scheduler(uuid.MustParse(child.JobID), 1, jobstate.Completed, completedWith(json.RawMessage(`{"packed":1}`)))
	for range 2 { // also once the job is deleted
		got := c.wait(token, call)
		if w := got.Waits[0]; w.Status != "DONE" || w.Job == nil || w.Job.JobID != child.JobID || w.Job.Status != "COMPLETED" || string(w.Job.Output) != `{"packed":1}` {
			t.Errorf("%+v, %+v", got, w.Job)
		}
		h.sql("delete from jobs where job_id = $1", nil, child.JobID)
	}
}

func TestWaitsThatCannotBeAreRefused(t *testing.T) {
	t.Parallel()
	p := newPuller(t)
	h := openPulling(t, p)
	c := h.as("acme", "work", "submit", "read")
	id, token := c.attemptOf(p)
	const event = `"event": {"type": "a"}`
	for waits, path := range map[string]string{
		``:                            "waits",
		`{"name": "a"}`:               "waits[0].event",
		`{` + event + `}`:             "waits[0].name",
		`{"name": "", ` + event + `}`: "waits[0].name",
		`{"name": "a", ` + event + `}, {"name": "a", ` + event + `}`:                       "waits",
		`{"name": "a", ` + event + `, "job": {"jobType": "MAIL", "payload": 1}}`:           "waits[0].event",
		`{"name": "a", "timeoutMs": 5, "job": {"jobType": "MAIL", "payload": 1}}`:          "waits[0].timeoutMs",
		`{"name": "a", "timeoutMs": 0, ` + event + `}`:                                     "waits[0].timeoutMs",
		`{"name": "a", "event": {}}`:                                                       "waits[0].event.type",
		`{"name": "a", "event": {"type": "a", "match": {"b": {"c": 1}}}}`:                  "waits[0].event.match.b",
		`{"name": "a", "event": {"type": "a", "match": {"b": [1]}}}`:                       "waits[0].event.match.b",
		`{"name": "a", "event": {"type": "a", "colour": 1}}`:                               "waits[0].event.colour",
		`{"name": "a", "job": {"jobType": "MAIL"}}`:                                        "waits[0].job.payload",
		`{"name": "a", "job": {"jobType": "MAIL", "payload": 1, "orderingKey": "k"}}`:      "waits[0].job.orderingKey",
		`{"name": "a", "job": {"jobType": "MAIL", "payload": 1, "after": ["` + id + `"]}}`: "waits[0].job.after",
		`{"name": "a", "job": {"jobType": "MAIL", "payload": 1, "unique": {"key": "k"}}}`:  "waits[0].job.unique",
		`{"name": "a", "job": {"jobType": "MAIL", "payload": 1, "idempotencyKey": "k"}}`:   "waits[0].job.idempotencyKey",
	} {
		r := c.post("/api/workers/wait", `{"worker": "w", "token": "`+token+`", "waits": [`+waits+`]}`)
		r.wantError(apierror.InvalidJobRequest)
		if !strings.Contains(string(r.body), `"`+path+`"`) {
			t.Errorf("%s is refused with %s, want %s", waits, r.body, path)
		}
	}
	wait := func(token string) *response {
		return c.post("/api/workers/wait", `{"worker": "w", "token": "`+token+`", "waits": [{"name": "a", `+event+`}]}`)
	}
	for _, wrong := range []string{"nonsense", "0000000000." + id + ".1.x", strings.Split(token, ".")[0] + ".no-id.1.x"} {
		wait(wrong).wantError(apierror.AttemptOver)
	}
	p.mu.Lock()
	p.over = true
	p.mu.Unlock()
	wait(token).wantError(apierror.AttemptOver)
}

func TestEventsForHandlersAreCheckedAsThoseThatSubmitJobs(t *testing.T) {
	t.Parallel()
	h := open(t)
	envelope := func(id, more string) string {
		return fmt.Sprintf(`{"specversion": "1.0", "id": %q, "source": "/s", "type": "a"%s}`, id, more)
	}
	h.post("/events", envelope("1", ""), "Content-Type", structuredType).want(http.StatusAccepted)
	h.post("/events?ownerId=acme", envelope("1", ""), "Content-Type", structuredType).want(http.StatusAccepted)
	for query, body := range map[string]string{
		"?queue=mail": envelope("2", ""), "?ownerId=": envelope("2", ""), "?ownerId=a&ownerId=b": envelope("2", ""),
		"": envelope("2", `, "datacontenttype": "text/plain", "data": "x"`),
	} {
		h.post("/events"+query, body, "Content-Type", structuredType).wantError(apierror.InvalidEvent)
	}
	h.post("/events", envelope("2", `, "data": "`+strings.Repeat("x", 257<<10)+`"`), "Content-Type", structuredType).wantError(apierror.PayloadTooLarge)
	h.post("/events", strings.Replace(envelope("2", ""), "/s", "/jobweaver/child/x", 1), "Content-Type", structuredType).wantError(apierror.InvalidEvent)
	job := `{"specversion": "1.0", "id": "j", "source": "/s", "type": "io.jobweaver.job.submit.v1", "data": ` + plainJob + `}`
	h.post("/events", "["+envelope("3", "")+","+job+"]", "Content-Type", batchType).wantError(apierror.InvalidEvent)
	var kept struct {
		Events []struct {
			EventID string
			Jobs    int
		}
	}
	h.post("/events", "["+envelope("3", "")+","+envelope("4", "")+"]", "Content-Type", batchType).want(http.StatusAccepted).into(&kept)
	if len(kept.Events) != 2 || kept.Events[1].EventID != "4" {
		t.Errorf("%+v", kept)
	}
	if r := h.post("/events", envelope("5", ""), "Content-Type", structuredType, "Prefer", "reply"); len(r.body) > 0 {
		t.Errorf("a broker is answered %q", r.body)
	}
}

func TestAHookSendsEvents(t *testing.T) {
	t.Parallel()
	const hooks = `hooks:
- name: pushes
  owner: acme
  signature: github
  secretFiles: [SECRET]
  event: {type: com.shop.paid, subject: {$path: $.who, default: none}, data: {order: {$path: $.order}}}
`
	p := newPuller(t)
	h := openWith(t, func(cfg *gateway.Config) {
		cfg.Auth = gateway.AuthOn
		cfg.Pull.URLs = []string{p.URL}
		withHooks(t, hooks)(cfg)
	})
	c := h.as("acme", "work", "submit", "read")
	_, token := c.attemptOf(p)
	const wait = `{"name": "paid", "event": {"type": "com.shop.paid", "source": "/hooks/pushes", "match": {"order": 17}}}`
	c.wait(token, wait)
	var kept struct{ Jobs int }
	h.push(`{"order": 17}`).want(http.StatusAccepted).into(&kept)
	h.push(`{"order": 17}`).want(http.StatusOK)
	h.push(`{"number": 17}`).wantError(apierror.InvalidEvent)
	if got := c.wait(token, wait).Waits[0]; kept.Jobs != 1 || got.Event == nil || string(got.Event.Data) != `{"order":17}` {
		t.Errorf("%+v, %+v", kept, got)
	}
	var listed struct {
		Hooks []struct {
			EventType                    *string
			Accepted, Replayed, Rejected int
		}
	}
	c.get("/api/hooks").want(http.StatusOK).into(&listed)
	if hook := listed.Hooks[0]; hook.EventType == nil || *hook.EventType != "com.shop.paid" || hook.Accepted != 1 || hook.Replayed != 1 || hook.Rejected != 1 {
		t.Errorf("%+v", hook)
	}
}
