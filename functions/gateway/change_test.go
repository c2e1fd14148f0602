package gateway_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/sealing"
)

func (c *client) patch(id uuid.UUID, body string) *response {
	c.t.Helper()
	return c.do(http.MethodPatch, "/api/jobs/"+id.String(), body, "Content-Type", "application/merge-patch+json")
}

// changed confirms a change as the scheduler does.
func changed(number int, reason string) func(*jobevent.Status) {
	return func(s *jobevent.Status) {
		s.LastCommand = &jobevent.CommandResult{Number: number, Command: "change", Applied: reason == "", Reason: reason}
	}
}

func (h *fixture) publishedChange() jobevent.Command {
	h.t.Helper()
	command, err := jobevent.Decode[jobevent.Command](h.broker.next(h.t))
	if err != nil || command.Command != jobevent.CommandChange || command.Change == nil {
		h.t.Fatalf("got %+v, %v", command, err)
	}
	return command
}

func TestJobShowsAllChangesOnceTheSchedulerHasAppliedThem(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.submit(`{"jobType": "MAIL", "payload": {"to": "a@example.org", "n": 1.50, "html": "b"}, "tags": ["x"], "priority": 3,
		"expiresAt": "2036-01-01T00:00:00Z"}`)
	h.broker.next(t)
	before := h.linked(id)
	const body = `{"payload": {"n": 2}, "priority": 9, "queue": "mail", "tags": ["y", "z"], "runAt": "2035-01-01T00:00:00Z", "maxRetryCount": 0,
		"timeoutMs": 77, "expiresAt": null, "retryPolicy": {"type": "fixed", "delayMs": 5}}`
	r := h.patch(id, body).want(http.StatusAccepted)
	var kept struct{ Command int }
	if r.into(&kept); kept.Command != 1 || r.header.Get("Location") != "/api/jobs/"+id.String() {
		t.Errorf("answered %s", r.body)
	}
	command := h.publishedChange()
	if c := command.Change; command.JobID != id || command.Number != 1 || string(c.Payload) != `{"to":"a@example.org","n":2,"html":"b"}` ||
		c.Queue != "mail" || !c.RunAt.Equal(time.Date(2035, 1, 1, 0, 0, 0, 0, time.UTC)) || !c.NeverExpires || c.ExpiresAt != nil ||
		string(c.Spec) != `{"maxRetryCount":0,"priority":9,"retryPolicy":{"type":"fixed","delayMs":5},"timeoutMs":77}` {
		t.Errorf("got %+v", command.Change)
	}
	if again := h.patch(id, body).want(http.StatusAccepted); !bytes.Equal(again.body, r.body) {
		t.Errorf("the same again: %s", again.body)
	}
	if again := h.publishedChange(); again.Number != 1 || !again.Change.RunAt.Equal(*command.Change.RunAt) {
		t.Errorf("repeated %+v", again)
	}
	h.patch(id, `{"priority": 1}`).wantError(apierror.InvalidStateTransition)
	h.post("/api/jobs/"+id.String()+"/cancel", "").wantError(apierror.InvalidStateTransition)
	shown := func(job linkedJob) bool {
		return job.Priority == before.Priority && job.Queue == before.Queue && slices.Equal(job.Tags, before.Tags) && job.RunAt == nil &&
			string(job.Payload) == string(before.Payload) && job.MaxRetryCount == before.MaxRetryCount && *job.ExpiresAt == *before.ExpiresAt
	}
	if job := h.linked(id); !shown(job) {
		t.Errorf("it shows %+v before it is applied", job)
	}
	h.scheduler(id, 1, jobstate.Pending, nil) // from before the change
	if job := h.linked(id); !shown(job) {
		t.Errorf("it shows %+v before it is applied", job)
	}
	h.scheduler(id, 2, jobstate.Scheduled, changed(1, ""))
	job := h.linked(id)
	if job.Priority != 9 || job.Queue != "mail" || !slices.Equal(job.Tags, []string{"y", "z"}) || job.RunAt == nil || *job.RunAt != "2035-01-01T00:00:00Z" ||
		string(job.Payload) != `{"to":"a@example.org","n":2,"html":"b"}` || job.MaxRetryCount != 0 || job.ExpiresAt != nil {
		t.Errorf("it shows %+v", job)
	}
	if n := h.sqlInt("select count(*) from jobs where spec ->> 'timeoutMs' = '77' and spec -> 'retryPolicy' ->> 'delayMs' = '5'"); n != 1 {
		t.Error("it has not the timeout and the policy")
	}
	// Null restores a default. A second change starts from the result of the first.
	h.patch(id, `{"priority": null, "tags": null, "queue": null, "runAt": null, "maxRetryCount": null, "retryPolicy": null, "payload": {"to": null}}`).
		want(http.StatusAccepted)
	command = h.publishedChange()
	if c := command.Change; command.Number != 2 || c.Queue != "default" ||
		string(c.Spec) != `{"maxRetryCount":3,"priority":0,"retryPolicy":{"type":"exponential","baseMs":5000,"capMs":300000}}` ||
		time.Since(*c.RunAt).Abs() > time.Minute || string(c.Payload) != `{"n":2,"html":"b"}` {
		t.Errorf("got %+v", command.Change)
	}
	h.scheduler(id, 3, jobstate.Pending, changed(2, ""))
	if job = h.linked(id); job.Priority != 0 || len(job.Tags) != 0 || job.Queue != "default" || job.MaxRetryCount != 3 {
		t.Errorf("it shows %+v", job)
	}
}

func TestChangeThatTheSchedulerRefusedIsNeverShown(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.submit(plainJob)
	h.patch(id, `{"priority": 9, "tags": ["new"]}`).want(http.StatusAccepted)
	h.scheduler(id, 2, jobstate.Completed, func(s *jobevent.Status) {
		changed(1, "the job is QUEUED")(s)
		s.Output = json.RawMessage(`{"lastCommand":{"number":1,"command":"change","applied":true}}`)
	})
	if job := h.linked(id); job.Priority != 0 || len(job.Tags) != 0 {
		t.Errorf("it shows %+v", job)
	}
	if n := h.sqlInt("select count(*) from commands"); n != 0 {
		t.Errorf("%d commands are left", n)
	}
}

func TestOnlyAJobThatHasNotStartedCanBeChanged(t *testing.T) {
	t.Parallel()
	h := open(t)
	for _, status := range jobstate.All() {
		for attempt := range 2 {
			id := h.submit(plainJob)
			h.scheduler(id, 1, status, func(s *jobevent.Status) { s.Attempt = attempt })
			r := h.patch(id, `{"priority": 9}`)
			if attempt == 0 && (status == jobstate.Scheduled || status == jobstate.Pending) {
				r.want(http.StatusAccepted)
			} else {
				r.wantError(apierror.InvalidStateTransition)
			}
		}
	}
}

// A changed start would move those of all later jobs with the throttle's key.
func TestAJobThatHasChangedSinceItWasReadIsNotChanged(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.submit(`{"jobType": "MAIL", "payload": 1, "delayMs": 60000}`)
	path := "/api/jobs/" + id.String()
	match := func(body, tag string) *response {
		return h.do(http.MethodPatch, path, body, "Content-Type", "application/merge-patch+json", "If-Match", tag)
	}
	first := h.get(path).want(http.StatusOK).header.Get("ETag")
	h.scheduler(id, 1, jobstate.Scheduled, nil)
	second := h.get(path).want(http.StatusOK).header.Get("ETag")
	match(`{"priority": 9}`, first).wantError(apierror.PreconditionFailed)
	match(`{"priority": 9}`, `"other", `+second).want(http.StatusAccepted)
	match(`{"priority": 9}`, second).want(http.StatusAccepted) // sent again
	h.scheduler(id, 2, jobstate.Scheduled, changed(1, ""))
	match(`{"priority": 8}`, second).wantError(apierror.PreconditionFailed)
	match(`{"priority": 8}`, "*").want(http.StatusAccepted)
}

func TestTheReservedStartOfAThrottledJobCannotBeChanged(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.submit(strings.TrimSuffix(plainJob, "}") + `, "throttle": {"key": "k", "perMs": 60000}}`)
	for _, body := range []string{`{"runAt": "2030-01-01T00:00:00Z"}`, `{"runAt": null}`, `{"delayMs": 1}`} {
		h.patch(id, body).wantError(apierror.InvalidJobRequest, "runAt")
	}
	h.patch(id, `{"priority": 9}`).want(http.StatusAccepted)
}

func TestChangeIsCheckedLikeASubmit(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.submit(plainJob)
	for body, path := range map[string]string{
		`{}`: "", `[]`: "", `{"x": null}`: "x", `{"jobType": "MAIL"}`: "jobType", `{"ownerId": "a"}`: "ownerId", `{"orderingKey": null}`: "orderingKey",
		`{"callbackUrl": null}`: "callbackUrl", `{"payload": {"steps": []}}`: "payload.steps", `{"payload": null}`: "payload", `{"queue": "nowhere"}`: "queue",
		`{"priority": 10}`: "priority", `{"runAt": "2030-01-01T00:00:00Z", "delayMs": 1}`: "delayMs", `{"runAt": null, "delayMs": 1}`: "delayMs",
		`{"expiresAt": "2020-01-01T00:00:00Z"}`: "expiresAt", `{"delayMs": 60000, "expiresAt": "2020-01-01T00:00:00Z"}`: "expiresAt",
	} {
		h.patch(id, body).wantError(apierror.InvalidJobRequest, path)
	}
	h.do(http.MethodPatch, "/api/jobs/"+id.String(), `{"priority": 1}`, "Content-Type", "application/json").wantError(apierror.UnsupportedMediaType)
	h.patch(uuid.New(), `{"priority": 1}`).wantError(apierror.JobNotFound)
	if n := h.sqlInt("select count(*) from commands"); n != 0 {
		t.Errorf("%d commands were kept", n)
	}
	h.patch(id, `{"delayMs": 60000}`).want(http.StatusAccepted) // the job had no time, and a delay is from now
	h.broker.next(t)
	if command := h.publishedChange(); time.Until(*command.Change.RunAt) > time.Minute || time.Until(*command.Change.RunAt) < 50*time.Second {
		t.Errorf("it runs at %s", command.Change.RunAt)
	}
}

func TestSealedPayloadStaysSealedWhenChanged(t *testing.T) {
	t.Parallel()
	h, sealer, ways := openSealed(t)
	id := h.submit(plainJob)
	h.broker.next(t)
	h.patch(id, `{"payload": {"steps": [{"type": "LOG", "message": "`+sealedCanary+`"}]}}`).want(http.StatusAccepted)
	command := h.publishedChange()
	if plain, err := sealer.Open(sealing.OfJob(id, sealing.Payload), command.Change.Payload); err != nil || !bytes.Contains(plain, []byte(sealedCanary)) ||
		bytes.Contains(command.Change.Payload, []byte(sealedCanary)) {
		t.Errorf("got %s: %s, %v", command.Change.Payload, plain, err)
	}
	h.scheduler(id, 1, jobstate.Pending, changed(1, ""))
	if job := h.linked(id); !bytes.Contains(job.Payload, []byte(sealedCanary)) {
		t.Errorf("it shows %s", job.Payload)
	}
	if n := h.sqlInt(`select count(*) from jobs left join commands using (job_id)
		where jobs::text || coalesce(commands::text, '') like '%' || $1 || '%'`, sealedCanary); n != 0 {
		t.Error("it is kept in plain")
	}
	for _, seal := range ways {
		h.sql("update jobs set payload = to_json($1::text) where job_id = $2", nil, seal(sealing.OfJob(id, sealing.Payload)), id)
		h.patch(id, `{"priority": 1}`).wantError(apierror.Sealed)
	}
}

func TestAuditEntryOfAChangeHasNoPayload(t *testing.T) {
	t.Parallel()
	h := openWith(t, func(cfg *gateway.Config) { cfg.Auth = gateway.AuthOn })
	acme := h.as("acme", "admin")
	id := acme.submitted()
	h.as("acme", "submit", "read").patch(id, `{"priority": 1}`).wantError(apierror.Forbidden)
	h.as("other", "operate").patch(id, `{"priority": 1}`).wantError(apierror.JobNotFound)
	h.as("acme", "operate").patch(id, `{"priority": 1, "payload": {"steps": [{"type": "LOG", "message": "secret"}]}}`).want(http.StatusAccepted)
	log := acme.log("action=job.change")
	if len(log) != 1 || !slices.Equal(log[0].JobIDs, []uuid.UUID{id}) || string(log[0].Details) != `{"priority":1}` {
		t.Errorf("the log has %+v", log)
	}
}

// Another change may be applied between the check of a change and its command: the payload is then merged again.
func TestSuccessiveChangesAreMerged(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.submit(`{"jobType": "MAIL", "payload": {"a": 0, "b": 0}}`)
	h.broker.next(t)
	for i, body := range []string{`{"payload": {"a": 1}}`, `{"payload": {"b": 1}}`} {
		h.patch(id, body).want(http.StatusAccepted)
		h.scheduler(id, int64(i+1), jobstate.Pending, changed(i+1, ""))
	}
	if job := h.linked(id); strings.ReplaceAll(string(job.Payload), " ", "") != `{"a":1,"b":1}` {
		t.Errorf("the payload is %s", job.Payload)
	}
}
