package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/keystore"
	"github.com/jobweaver/jobweaver/shared/apidb/workerstore"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// furnish gives an owner one of each resource.
func (h *fixture) furnish(t *testing.T, owner string) things {
	t.Helper()
	c, canary := h.as(owner, "operate"), "canary-of-"+owner
	x := things{
		owner: owner, schedule: "nightly-" + owner, tag: owner + "-tag", key: owner + "-key", orderingKey: owner + "-order",
		jobType: strings.ToUpper(owner) + "_TYPE", event: owner + "-event",
	}
	submit := func(more string) uuid.UUID {
		return c.post("/api/jobs", fmt.Sprintf(`{"jobType": %q, "payload": {"of": %q}, "tags": [%q], "callbackUrl": "https://example.org/%s"%s}`,
			x.jobType, canary, x.tag, canary, more)).want(http.StatusAccepted).jobID()
	}
	pending := submit(fmt.Sprintf(`, "idempotencyKey": %q, "orderingKey": %q`, x.key, x.orderingKey))
	submit(fmt.Sprintf(`, "after": [%q], "orderingKey": %q`, pending, x.orderingKey))
	dead, done, running := submit(""), submit(""), submit("")
	c.post("/events", envelope(x.event, submitType, fmt.Sprintf(`{"jobType": "OWN", "payload": %q}`, canary)),
		"Content-Type", structuredType).want(http.StatusAccepted)
	h.end(t, dead, jobstate.Failed, canary)
	h.end(t, done, jobstate.Completed, canary)
	h.run(t, running, canary)
	h.sql("update jobs set fan_out_id = $1, element = 0 where job_id = $2", nil, done, pending)
	c.post("/api/jobs/"+dead.String()+"/retry", "").want(http.StatusAccepted)
	var op struct{ OperationID string }
	c.post("/api/operations", fmt.Sprintf(`{"command": "delete", "jobIds": [%q, %q], "idempotencyKey": %q}`, done, running, x.key)).
		want(http.StatusAccepted).into(&op)
	h.operateAll(t)
	x.batch = c.batch(fmt.Sprintf(`{"name": %q, "jobs": [{"jobType": %q, "payload": %q}], "onFailure": {"jobType": "OWN", "payload": %q},
		"idempotencyKey": %q}`, canary, x.jobType, canary, canary, x.key)).BatchID.String()
	x.flow = c.flow(fmt.Sprintf(`{"name": %q, "jobs": {"a": {"jobType": %q, "payload": %q}}, "onFailure": {"jobType": "OWN", "payload": %q},
		"idempotencyKey": %q}`, canary, x.jobType, canary, canary, x.key+"-flow")).FlowID.String()
	c.post("/api/schedules", fmt.Sprintf(`{"name": %q, "cron": "@daily", "job": {"jobType": "OWN", "payload": %q}}`, x.schedule, canary)).
		want(http.StatusCreated)
	c.post("/api/schedules/"+x.schedule+"/run", "").want(http.StatusAccepted)
	c.post("/api/alerts", fmt.Sprintf(`{"name": %q, "to": {"email": [%q]}}`, x.schedule, canary+"@example.org")).want(http.StatusCreated)
	c.post("/api/alerts/"+x.schedule+"/test", "").want(http.StatusAccepted)
	_, err := h.store.Controls.ChangeControl(t.Context(), nil, apidb.Everyone, jobevent.ControlOwner, owner, canary, nil,
		func(c *jobevent.Control) { c.Paused = true })
	if err != nil {
		t.Fatal(err)
	}
	x.keyID = h.key(keystore.Key{OwnerID: owner, Roles: []string{"read"}}).ID()
	x.job, x.dead, x.op = done.String(), dead.String(), op.OperationID
	return x
}

// end makes a job end, with a canary in every text of its status.
func (h *fixture) end(t *testing.T, id uuid.UUID, as jobstate.Status, canary string) {
	t.Helper()
	h.scheduler(id, 3, as, func(s *jobevent.Status) {
		s.Attempt, s.LastError = 1, &jobevent.Error{ErrorCode: "OWN", Message: canary}
		if as == jobstate.Completed {
			s.Output = json.RawMessage(`"` + canary + `"`)
		}
	})
	if err := h.store.Logs.Add(t.Context(), []jobevent.AttemptLog{{
		JobID: id, Attempt: 1, Lines: []jobevent.LogLine{{At: time.Now(), Level: "INFO", Text: canary}},
	}}); err != nil {
		t.Fatal(err)
	}
}

// run makes a worker run an attempt.
func (h *fixture) run(t *testing.T, id uuid.UUID, canary string) {
	t.Helper()
	h.scheduler(id, 2, jobstate.Running, func(s *jobevent.Status) { s.Attempt = 1 })
	heartbeat := workerstore.Heartbeat{Heartbeat: jobevent.Heartbeat{
		WorkerID: "w-" + id.String()[24:], Queues: []string{"default"}, Slots: 12, Free: 11, Attempts: []jobevent.ListedAttempt{
			{JobID: id, Attempt: 1, Progress: &jobevent.Progress{Percent: 5, Message: canary}},
		},
	}}
	var err error
	if heartbeat.JSON, err = json.Marshal(heartbeat.Heartbeat); err == nil {
		err = h.store.Workers.See(t.Context(), []workerstore.Heartbeat{heartbeat})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// operateAll executes operations until there is nothing left to do at once.
func (h *fixture) operateAll(t *testing.T) {
	t.Helper()
	ids, err := h.store.Operations.UnfinishedOperations(t.Context(), uuid.Nil, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		for more := true; more; {
			if _, more, err = h.store.Operations.Operate(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// secrets returns the texts that no other owner may see: the contents of an owner's resources, and the ids of its jobs
// and operations.
func (h *fixture) secrets(x things) []string {
	h.t.Helper()
	var ids []string
	h.sql(`select array_agg(id::text) from (select job_id as id from jobs where owner_id = $1
		union select operation_id from operations where owner_id = $1
		union select schedule_id from schedules where owner_id = $1
		union select notice_id from alert_notices join alerts using (alert_id) where owner_id = $1) as theirs`, &ids, x.owner)
	return append(ids, x.keyID, "canary-of-"+x.owner, `"name":"`+x.owner+`"`)
}

// fingerprint returns a hash of all rows of an owner, by table.
func (h *fixture) fingerprint(owner string) map[string]string {
	h.t.Helper()
	prints := map[string]string{}
	for table, which := range map[string]string{
		"jobs": "owner_id = $1", "operations": "owner_id = $1", "schedules": "owner_id = $1", "alerts": "owner_id = $1", "deliveries": "owner_id = $1",
		"(select key_id, roles, expires_at, revoked_at, owner_id from api_keys)": "owner_id = $1",

		"controls":        "kind = 'owner' and name = $1",
		"commands":        "job_id in (select job_id from jobs where owner_id = $1)",
		"callbacks":       "job_id in (select job_id from jobs where owner_id = $1)",
		"attempt_logs":    "job_id in (select job_id from jobs where owner_id = $1)",
		"operation_skips": "operation_id in (select operation_id from operations where owner_id = $1)",
		"alert_notices":   "alert_id in (select alert_id from alerts where owner_id = $1)",
		"schedule_ticks":  "schedule_id in (select schedule_id from schedules where owner_id = $1)",
	} {
		var sum string
		h.sql("select count(*) || ' ' || coalesce(md5(string_agg(row::text, '|' order by row::text)), '') from "+table+" as row where "+which,
			&sum, owner)
		prints[table] = sum
	}
	return prints
}

// wantSeen checks that the owner sees the texts that others must not see; otherwise the test would prove nothing.
func (h *fixture) wantSeen(t *testing.T, c *client, x things) {
	t.Helper()
	canary := "canary-of-" + x.owner
	for path, want := range map[string]string{
		"/api/jobs": x.job, "/api/jobs?status=COMPLETED": x.job, "/api/jobs?tag=" + x.tag: x.job,
		"/api/jobs?orderingKey=" + x.orderingKey: `"blockedBy":[{`, "/api/jobs?fanOutId=" + x.job: x.orderingKey, "/api/jobs/dead": x.dead, "/api/jobs/dead/groups": x.dead, "/api/jobs/" + x.job: canary,
		"/api/jobs/" + x.job + "/logs": canary, "/api/jobs/" + x.job + "/deliveries": canary, "/api/deliveries": canary,
		"/api/operations": x.op, "/api/operations/" + x.op: x.op, "/api/schedules": canary, "/api/schedules/" + x.schedule: canary,
		"/api/schedules/" + x.schedule + "/ticks": "manual", "/api/controls": x.owner,
		"/api/alerts": canary, "/api/alerts/" + x.schedule: canary, "/api/alerts/" + x.schedule + "/notices": "TEST",
	} {
		if r := c.get(path).want(http.StatusOK); !strings.Contains(string(r.body), want) {
			t.Errorf("%s does not show its owner %s: %s", path, want, r.body)
		}
	}
}
