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

// advertising makes a heartbeat of a worker that runs one job type.
func advertising(workerID, jobType, schema string) jobevent.Heartbeat {
	advertised := jobevent.JobType{Name: jobType}
	if schema != "" {
		advertised.Schema = json.RawMessage(schema)
	}
	return jobevent.Heartbeat{WorkerID: workerID, Queues: []string{"default"}, JobTypes: []jobevent.JobType{advertised}}
}

const mailSchema = `{"description": "Mail", "required": ["to"], "properties": {"to": {"items": {"format": "email"}}}}`

func TestJobTypesAreBuiltInListedOrAdvertised(t *testing.T) {
	t.Parallel()
	h := open(t)
	stopping := advertising("d", "SLOW", `false`)
	stopping.Stopping, stopping.Attempts = true, []jobevent.ListedAttempt{{Attempt: 1}}
	h.heartbeat(advertising("a", "MAIL", mailSchema), advertising("b", "MAIL", mailSchema), advertising("c", "MAIL", ""), advertising("e", "NEW", "false"), stopping,
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

func TestPayloadIsCheckedByTheAdvertisedSchema(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.heartbeat(advertising("a", "MAIL", mailSchema))
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

// A repeated request gets the same answer, whatever schemas workers advertise by then.
func TestRepeatOfAnAcceptedRequestIsNotCheckedAgain(t *testing.T) {
	t.Parallel()
	h := open(t)
	body := `{"jobType": "MAIL", "payload": 1, "idempotencyKey": "k"}`
	first := h.submit(body)
	h.heartbeat(advertising("a", "MAIL", `{"type": "object"}`))
	again := time.NewTicker(50 * time.Millisecond) // the gateway has cached that there are no workers
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
	for name, heartbeats := range map[string][]jobevent.Heartbeat{
		"no worker":                  nil,
		"no schema":                  {advertising("a", "MAIL", "")},
		"an old schema takes it":     {advertising("a", "MAIL", mailSchema), advertising("b", "MAIL", mailSchema), advertising("c", "MAIL", `{"type": "integer"}`)},
		"one has no schema":          {advertising("a", "MAIL", mailSchema), advertising("b", "MAIL", "")},
		"a broken schema":            {advertising("a", "MAIL", `{"type": "thing"}`)},
		"a schema that is no object": {advertising("a", "MAIL", `7`)},
		"a schema that calls out":    {advertising("a", "MAIL", `{"$ref": "http://127.0.0.1:1/"}`)},
		"a schema without an end":    {advertising("a", "MAIL", endless())},
		"a worker that stops": {{WorkerID: "a", Stopping: true, Attempts: []jobevent.ListedAttempt{{Attempt: 1}},
			JobTypes: []jobevent.JobType{{Name: "MAIL", Schema: json.RawMessage(`false`)}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t)
			h.heartbeat(heartbeats...)
			began := time.Now()
			h.submit(`{"jobType": "MAIL", "payload": 1}`)
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// endless returns a schema whose check takes 2⁶⁰ steps.
func endless() string {
	schema := `{"$defs": {`
	for i := range 60 {
		schema += fmt.Sprintf(`"a%d": {"allOf": [{"$ref": "#/$defs/a%d"}, {"$ref": "#/$defs/a%d"}]},`, i, i+1, i+1)
	}
	return schema + `"a60": {"type": "integer"}}, "$ref": "#/$defs/a0"}`
}
