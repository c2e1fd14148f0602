package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/functions/gateway"
	"github.com/jobweaver/jobweaver/shared/apidb/typestore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
)

type jobTypeBody struct {
	Name               string
	Builtin            bool
	Title, Description *string
	Schema             json.RawMessage
	OutputSchema       json.RawMessage
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
	if !simulation.Builtin || simulation.Workers != 1 || fmt.Sprint(simulation.Queues) != "[default mail]" ||
		simulation.Title == nil || simulation.Description == nil || !strings.Contains(string(simulation.Schema), "HTTP_CALL") {
		t.Errorf("SIMULATION: %+v", simulation)
	}
	if mail := h.jobType("MAIL"); mail.Builtin || mail.Workers != 3 || *mail.Description != "Mail" || mail.Title != nil {
		t.Errorf("MAIL: %+v", mail)
	}
	if slow := h.jobType("SLOW"); slow.Workers != 0 || len(slow.Queues) != 0 || string(slow.Schema) != "null" {
		t.Errorf("SLOW: %+v", slow)
	}
	if other := h.jobType("NEW"); other.Workers != 1 || string(other.Schema) != `{"not":{}}` {
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

func TestATypeThatAWorkerHasRunIsTakenFromThenOn(t *testing.T) {
	t.Parallel()
	h := openWith(t, func(cfg *gateway.Config) { cfg.Auth = gateway.AuthOn })
	acme, other := h.as("acme", "operate"), h.as("other", "operate")
	own, shared := `{"jobType": "OWN", "payload": {}}`, `{"jobType": "SHARED", "payload": {"n": "x"}}`
	refused := acme.post("/api/jobs", own)
	refused.wantError(apierror.InvalidJobRequest, "jobType")
	if message := refused.error().Message; !strings.Contains(message, "no worker has run it yet") || !strings.Contains(message, "MAIL") {
		t.Errorf("refused with %s", message)
	}
	gone := advertising("a", "SHARED", `{"properties": {"n": {"type": "integer"}}}`)
	h.heartbeat(asked(map[string]string{"OWN": "acme"}), gone)
	h.sql("delete from workers", nil) // what was learned stays
	acme.post("/api/jobs", own).want(http.StatusAccepted)
	other.post("/api/jobs", own).wantError(apierror.InvalidJobRequest, "jobType")
	other.post("/api/jobs", shared).wantError(apierror.InvalidJobRequest, "payload.n")
	other.post("/api/jobs", `{"jobType": "SHARED", "payload": {"n": 1}}`).want(http.StatusAccepted)

	acme.do(http.MethodDelete, "/api/job-types/SHARED", "").wantError(apierror.NotFound) // it is of all owners
	acme.do(http.MethodDelete, "/api/job-types/OWN", "").want(http.StatusNoContent)
	acme.post("/api/jobs", own).wantError(apierror.InvalidJobRequest, "jobType")
	acme.do(http.MethodDelete, "/api/job-types/OWN", "").wantError(apierror.NotFound)
}

func TestAWorkerDescribesTheTypesThatItRuns(t *testing.T) {
	t.Parallel()
	h := openWith(t, func(cfg *gateway.Config) { cfg.Auth = gateway.AuthOn })
	const charge = "/api/job-types/CHARGE"
	definition := `{"title": "Charge a card", "schema": {"type": "object", "required": ["cents"]}, "outputSchema": {"type": "string"}}`
	worker := h.as("acme", "work")
	for range 2 { // as at each start
		worker.put(charge, definition).want(http.StatusNoContent)
	}
	acme, other := h.as("acme", "operate"), h.as("other", "operate")
	acme.post("/api/jobs", `{"jobType": "CHARGE", "payload": {"cents": 1}}`).want(http.StatusAccepted)
	acme.post("/api/jobs", `{"jobType": "CHARGE", "payload": {}}`).wantError(apierror.InvalidJobRequest, "payload.cents")
	other.get(charge).want(http.StatusNotFound)
	var shown jobTypeBody
	acme.get(charge).want(http.StatusOK).into(&shown)
	if shown.Builtin || *shown.Title != "Charge a card" || string(shown.OutputSchema) != `{"type":"string"}` || shown.Workers != 0 {
		t.Errorf("shown: %+v", shown)
	}

	worker.put(charge, `{}`).want(http.StatusNoContent)
	acme.post("/api/jobs", `{"jobType": "CHARGE", "payload": {}}`).want(http.StatusAccepted)

	for body, at := range map[string]string{
		`{"schema": 7}`:                              "schema",
		`{"schema": {"type": "thing"}}`:              "schema",
		`{"outputSchema": {"$ref": "http://x.org"}}`: "outputSchema",
		`{"shcema": {}}`:                             "shcema",
		`{"title": 1}`:                               "title",
		`[]`:                                         "",
		`{"schema": {"const": "` + strings.Repeat("x", 64<<10) + `"}}`: "schema",
	} {
		worker.put(charge, body).wantError(apierror.InvalidJobRequest, at)
	}
	worker.put("/api/job-types/SIMULATION", `{}`).wantError(apierror.InvalidStateTransition)
	worker.put("/api/job-types/a%20b", `{}`).wantError(apierror.InvalidJobRequest, "type")
	acme.put(charge, `{}`).wantError(apierror.Forbidden)
}

func TestAnOwnerCannotFillTheJobTypes(t *testing.T) {
	t.Parallel()
	h := openWith(t, func(cfg *gateway.Config) { cfg.Auth = gateway.AuthOn })
	worker := h.as("acme", "work")
	worker.put("/api/job-types/FIRST", `{}`).want(http.StatusNoContent)
	h.sql("insert into job_types (owner_id, name) select 'acme', 'T' || n from generate_series(2, $1) n", nil, typestore.MostOfOwner)
	worker.put("/api/job-types/MORE", `{}`).wantError(apierror.InvalidStateTransition)
	worker.put("/api/job-types/FIRST", `{"title": "It has a place"}`).want(http.StatusNoContent)
	h.as("other", "work").put("/api/job-types/MORE", `{}`).want(http.StatusNoContent)
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
