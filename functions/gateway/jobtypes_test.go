package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
)

type jobTypeBody struct {
	Name               string
	Builtin, Accepted  bool
	Title, Description *string
	Schema             json.RawMessage
	Workers            int
	Queues             []string
}

func (h *fixture) jobType(name string) jobTypeBody {
	h.t.Helper()
	var body jobTypeBody
	h.get("/api/job-types/" + name).want(http.StatusOK).into(&body)
	return body
}

// tells is a beat of a worker that runs one job type.
func tells(workerID, jobType, schema string) jobevent.Heartbeat {
	told := jobevent.JobType{Name: jobType}
	if schema != "" {
		told.Schema = json.RawMessage(schema)
	}
	return jobevent.Heartbeat{WorkerID: workerID, Queues: []string{"default"}, JobTypes: []jobevent.JobType{told}}
}

const mailSchema = `{"description": "Mail", "required": ["to"], "properties": {"to": {"items": {"format": "email"}}}}`

func TestJobTypesAreThoseBuiltInListedAndTold(t *testing.T) {
	t.Parallel()
	h := open(t)
	stopping := tells("d", "SLOW", `false`)
	stopping.Stopping, stopping.Attempts = true, []jobevent.HeldAttempt{{Attempt: 1}}
	h.beat(tells("a", "MAIL", mailSchema), tells("b", "MAIL", mailSchema), tells("c", "MAIL", ""), tells("e", "NEW", "false"), stopping,
		jobevent.Heartbeat{WorkerID: "f", Queues: []string{"default", "mail"}, JobTypes: []jobevent.JobType{{Name: "SIMULATION"}}})
	var page struct {
		JobTypes   []jobTypeBody
		AcceptsAny bool
	}
	h.get("/api/job-types").want(http.StatusOK).into(&page)
	var names []string
	for _, jobType := range page.JobTypes {
		names = append(names, jobType.Name)
	}
	if got := strings.Join(names, " "); got != strings.Join(jobspec.Builtin(), " ")+" MAIL NEW SLOW" || page.AcceptsAny {
		t.Errorf("got %s, any: %v", got, page.AcceptsAny)
	}
	simulation := h.jobType("SIMULATION")
	if !simulation.Builtin || !simulation.Accepted || simulation.Workers != 1 || fmt.Sprint(simulation.Queues) != "[default mail]" ||
		simulation.Title == nil || simulation.Description == nil || !strings.Contains(string(simulation.Schema), "HTTP_CALL") {
		t.Errorf("SIMULATION: %+v", simulation)
	}
	if mail := h.jobType("MAIL"); mail.Builtin || !mail.Accepted || mail.Workers != 3 || *mail.Description != "Mail" || mail.Title != nil {
		t.Errorf("MAIL: %+v", mail)
	}
	if slow := h.jobType("SLOW"); slow.Workers != 0 || len(slow.Queues) != 0 || string(slow.Schema) != "null" || !slow.Accepted {
		t.Errorf("SLOW: %+v", slow)
	}
	if other := h.jobType("NEW"); other.Accepted || other.Workers != 1 || string(other.Schema) != `{"not":{}}` {
		t.Errorf("NEW: %+v", other)
	}
	h.get("/api/job-types/NONE").want(http.StatusNotFound)
}

func TestPayloadIsCheckedByTheSchemaThatWorkersTell(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.beat(tells("a", "MAIL", mailSchema))
	good, bad := `{"jobType": "MAIL", "payload": {"to": ["a@b.org"]}}`, `{"jobType": "MAIL", "payload": {"to": ["a@b.org", "x"]}}`
	h.submit(good)
	refused := h.post("/api/jobs", bad).want(http.StatusBadRequest).error()
	if refused.ErrorCode != "API.INVALID_JOB_REQUEST" || len(refused.Details) != 1 || refused.Details[0].Path != "payload.to[1]" {
		t.Errorf("got %+v", refused)
	}
	var batch struct{ Results []struct{ Status int } }
	h.post("/api/jobs/batch", `{"jobs": [`+good+`,`+bad+`]}`).want(http.StatusOK).into(&batch)
	if batch.Results[0].Status != http.StatusAccepted || batch.Results[1].Status != http.StatusBadRequest {
		t.Errorf("batch: %+v", batch)
	}
	event := []string{"Ce-Specversion", "1.0", "Ce-Id", "1", "Ce-Source", "/t", "Ce-Type", "x", "Content-Type", "application/json"}
	if e := h.post("/events?jobType=MAIL", `{}`, event...).want(http.StatusBadRequest).error(); e.Details[0].Path != "payload.to" {
		t.Errorf("event: %+v", e)
	}
	schedule := `{"name": "x", "cron": "0 8 * * *", "job": ` + bad + `}`
	if e := h.post("/api/schedules", schedule).want(http.StatusBadRequest).error(); e.Details[0].Path != "job.payload.to[1]" {
		t.Errorf("schedule: %+v", e)
	}
}

// What was accepted once is answered as before, whatever workers tell by then.
func TestRepeatOfAnAcceptedRequestIsNotJudgedAgain(t *testing.T) {
	t.Parallel()
	h := open(t)
	body := `{"jobType": "MAIL", "payload": 1, "idempotencyKey": "k"}`
	first := h.submit(body)
	h.beat(tells("a", "MAIL", `{"type": "object"}`))
	again := time.NewTicker(50 * time.Millisecond) // the gateway has heard of no worker, and keeps that for a while
	defer again.Stop()
	for range again.C {
		if h.post("/api/jobs", `{"jobType": "MAIL", "payload": 1}`).status == http.StatusBadRequest {
			break
		}
	}
	if id := h.post("/api/jobs", body).want(http.StatusOK).jobID(); id != first {
		t.Errorf("got %s, not %s", id, first)
	}
	h.post("/api/jobs", `{"jobType": "MAIL", "payload": 1, "idempotencyKey": "other"}`).want(http.StatusBadRequest)
}

func TestPayloadPassesWhereNoSchemaOfALiveWorkerRefusesIt(t *testing.T) {
	t.Parallel()
	for name, beats := range map[string][]jobevent.Heartbeat{
		"no worker":                  nil,
		"no schema":                  {tells("a", "MAIL", "")},
		"an old schema takes it":     {tells("a", "MAIL", mailSchema), tells("b", "MAIL", mailSchema), tells("c", "MAIL", `{"type": "integer"}`)},
		"one has no schema":          {tells("a", "MAIL", mailSchema), tells("b", "MAIL", "")},
		"a broken schema":            {tells("a", "MAIL", `{"type": "thing"}`)},
		"a schema that is no object": {tells("a", "MAIL", `7`)},
		"a schema that calls out":    {tells("a", "MAIL", `{"$ref": "http://127.0.0.1:1/"}`)},
		"a schema without an end":    {tells("a", "MAIL", endless())},
		"a worker that stops": {{WorkerID: "a", Stopping: true, Attempts: []jobevent.HeldAttempt{{Attempt: 1}},
			JobTypes: []jobevent.JobType{{Name: "MAIL", Schema: json.RawMessage(`false`)}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t)
			h.beat(beats...)
			began := time.Now()
			h.submit(`{"jobType": "MAIL", "payload": 1}`)
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// endless asks for 2⁶⁰ steps.
func endless() string {
	schema := `{"$defs": {`
	for i := range 60 {
		schema += fmt.Sprintf(`"a%d": {"allOf": [{"$ref": "#/$defs/a%d"}, {"$ref": "#/$defs/a%d"}]},`, i, i+1, i+1)
	}
	return schema + `"a60": {"type": "integer"}}, "$ref": "#/$defs/a0"}`
}
