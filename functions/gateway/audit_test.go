package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway"
)

type auditEntry struct {
	ID, Actor, Action, RemoteAddr string
	At                            time.Time
	OwnerID, Resource, UserAgent  *string
	JobIDs                        []uuid.UUID
	TraceID                       uuid.UUID
	Details                       json.RawMessage
}

// log returns the audit log, newest entry first.
func (c *client) log(query string) (entries []auditEntry) {
	c.t.Helper()
	for cursor := ""; ; {
		var page struct {
			Entries    []auditEntry
			NextCursor *string
		}
		c.get("/api/audit?"+query+cursor).ok(http.StatusOK, &page)
		entries = append(entries, page.Entries...)
		if page.NextCursor == nil {
			return entries
		}
		cursor = "&cursor=" + *page.NextCursor
	}
}

// ok expects a status, and decodes the body.
func (r *response) ok(status int, into any) {
	r.t.Helper()
	if r.status != status {
		r.t.Fatalf("answer is %d %s", r.status, r.body)
	}
	if into != nil {
		if err := json.Unmarshal(r.body, into); err != nil {
			r.t.Fatalf("%s: %s", err, r.body)
		}
	}
}

func (c *client) submitted() uuid.UUID {
	c.t.Helper()
	var made struct{ JobID uuid.UUID }
	c.post("/api/jobs", plainJob).ok(http.StatusAccepted, &made)
	return made.JobID
}

func inWords(e auditEntry) string {
	resource := "-"
	if e.Resource != nil {
		resource = *e.Resource
	}
	return fmt.Sprintf("%s %s %d", e.Action, resource, len(e.JobIDs))
}

func TestAuditLogNamesActorAndAction(t *testing.T) {
	t.Parallel()
	h := openLocked(t)
	acme, other := h.as("acme", "admin"), h.as("other", "admin")
	job := acme.submitted()
	trace := uuid.NewString()
	acme.post("/api/jobs/"+job.String()+"/reschedule", `{"delayMs": 60000}`, "X-Trace-Id", trace, "User-Agent", "tester").
		ok(http.StatusAccepted, nil)
	acme.post("/api/jobs/"+job.String()+"/cancel", "").ok(http.StatusConflict, nil) // the first command is not confirmed
	acme.post("/api/jobs/batch", `{"jobs": [`+plainJob+`, {"jobType": "NO"}, `+plainJob+`]}`).ok(http.StatusOK, nil)
	schedule := `{"cron": "0 3 * * *", "job": ` + plainJob + `}`
	acme.do(http.MethodPut, "/api/schedules/nightly", schedule, "Content-Type", "application/json").ok(http.StatusCreated, nil)
	acme.post("/api/schedules/nightly/run", "").ok(http.StatusAccepted, nil)
	acme.post("/api/controls/owner/acme/pause", "").ok(http.StatusOK, nil)
	acme.post("/api/operations", `{"command": "cancel", "filter": {"tag": "none"}}`).ok(http.StatusAccepted, nil)
	var key struct{ KeyID string }
	acme.post("/api/keys", `{"name": "ci", "roles": ["submit"]}`).ok(http.StatusCreated, &key)
	installation := h.as("", "admin")
	installation.do(http.MethodDelete, "/api/keys/"+key.KeyID, "").ok(http.StatusOK, nil)
	other.submitted()

	log := acme.log("limit=3")
	var got []string
	for i, e := range slices.Backward(log) {
		text := inWords(e)
		if e.Action == "operation.create" {
			text = e.Action + " …"
		}
		got = append(got, text)
		if e.OwnerID == nil || *e.OwnerID != "acme" || !strings.HasPrefix(e.Actor, "key:") || strings.Contains(e.Actor, "jw_") {
			t.Errorf("%s is of %v by %s", text, e.OwnerID, e.Actor)
		}
		if e.RemoteAddr != "127.0.0.1" || time.Since(e.At) > time.Minute || i > 0 && e.ID >= log[i-1].ID && len(e.ID) >= len(log[i-1].ID) {
			t.Errorf("%s is from %s at %s, number %s", text, e.RemoteAddr, e.At, e.ID)
		}
	}
	want := []string{
		"job.submit - 1", "job.reschedule - 1", "job.submit - 2", "schedule.put schedule/nightly 0",
		"schedule.run schedule/nightly 1", "control.pause control/owner/acme 0", "operation.create …",
		"key.create key/" + key.KeyID + " 0", "key.revoke key/" + key.KeyID + " 0",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the log is\n%s, want\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	of := acme.log("jobId=" + job.String())
	if len(of) != 2 || of[0].TraceID.String() != trace || of[0].UserAgent == nil || *of[0].UserAgent != "tester" ||
		string(of[0].Details) != `{"delayMs":60000}` && string(of[0].Details) != `{"delayMs": 60000}` {
		t.Errorf("of the job the log has %+v", of)
	}
	if found := other.log("jobId=" + job.String()); len(found) != 0 {
		t.Errorf("another owner's admin sees %+v", found)
	}
	if r := other.get("/api/audit?ownerId=acme"); r.status != http.StatusBadRequest {
		t.Errorf("another owner's admin is answered %d %s", r.status, r.body)
	}
	if all, acmes := installation.log(""), installation.log("ownerId=acme"); len(all) != len(log)+1 || len(acmes) != len(log) {
		t.Errorf("the installation sees %d, of acme %d, want %d and %d", len(all), len(acmes), len(log)+1, len(log))
	}
	if found := acme.log("action=control.pause&since=2020-01-01T00:00:00Z&actor=" + log[1].Actor); len(found) != 1 {
		t.Errorf("by action, time and actor there are %+v", found)
	}
	if found := acme.log("until=2020-01-01T00:00:00Z"); len(found) != 0 {
		t.Errorf("until 2020 there are %+v", found)
	}
}

// Jobs of several requests are inserted in one statement: each has the entry of its own request.
func TestEachSubmittedJobHasOneAuditEntry(t *testing.T) {
	t.Parallel()
	h := openLocked(t)
	owners := map[string]*client{"acme": h.as("acme", "admin"), "other": h.as("other", "admin")}
	var mu sync.Mutex
	made := map[uuid.UUID]string{}
	var all sync.WaitGroup
	for i := range 60 {
		for owner, c := range owners {
			body := plainJob
			if i%3 == 0 {
				body = with(fmt.Sprintf(`"idempotencyKey": "%s-%d"`, owner, i/6)) // some repeat others
			}
			if i%3 == 1 {
				body = with(`"orderingKey": "line"`)
			}
			all.Go(func() {
				var job struct{ JobID uuid.UUID }
				r := c.post("/api/jobs", body)
				if r.status != http.StatusAccepted && r.status != http.StatusOK || json.Unmarshal(r.body, &job) != nil {
					t.Errorf("answer is %d %s", r.status, r.body)
				}
				mu.Lock()
				made[job.JobID] = owner
				mu.Unlock()
			})
		}
	}
	all.Wait()
	found := map[uuid.UUID]string{}
	for owner, c := range owners {
		for _, e := range c.log("limit=200") {
			if len(e.JobIDs) != 1 || found[e.JobIDs[0]] != "" {
				t.Fatalf("entry %+v, seen before: %q", e, found[e.JobIDs[0]])
			}
			found[e.JobIDs[0]] = owner
		}
	}
	if len(made) != 100 || len(found) != len(made) {
		t.Errorf("%d jobs, %d entries", len(made), len(found))
	}
	for id, owner := range made {
		if found[id] != owner {
			t.Errorf("job %s of %s is entered as %q's", id, owner, found[id])
		}
	}
}

// A change whose entry cannot be inserted is rolled back.
func TestChangeWithoutAnAuditEntryIsRolledBack(t *testing.T) {
	t.Parallel()
	h := openLocked(t)
	acme := h.as("acme", "admin")
	job := acme.submitted()
	h.sql(`CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN RAISE 'no space left' USING ERRCODE = 'disk_full'; END $$;
		CREATE TRIGGER full_disk BEFORE INSERT ON audit_log EXECUTE FUNCTION full_disk()`, nil)
	for path, body := range map[string]string{
		"/api/jobs": plainJob, "/api/jobs/batch": `{"jobs": [` + plainJob + `]}`, "/api/jobs/" + job.String() + "/cancel": "",
		"/api/controls/owner/acme/pause": "",
	} {
		if r := acme.post(path, body); r.status != http.StatusServiceUnavailable {
			t.Errorf("%s is answered %d %s", path, r.status, r.body)
		}
	}
	left := h.sqlInt(`SELECT (SELECT count(*) FROM jobs) + (SELECT count(*) FROM commands)
		+ (SELECT count(*) FROM controls) + (SELECT count(*) FROM api_keys)`)
	if left != 2 { // the job and the key from before
		t.Errorf("%d things are there, want 2", left)
	}
}

func TestReadsAreAuditedIfConfigured(t *testing.T) {
	t.Parallel()
	h := openWith(t, func(cfg *gateway.Config) { cfg.Auth, cfg.AuditReads = gateway.AuthOn, true })
	acme := h.as("acme", "admin")
	job := acme.submitted()
	acme.get("/api/jobs/"+job.String()).ok(http.StatusOK, nil)
	acme.get("/api/jobs/"+job.String()+"/logs").ok(http.StatusOK, nil)
	acme.get("/api/jobs").ok(http.StatusOK, nil)
	acme.get("/api/stats").ok(http.StatusOK, nil)
	acme.get("/api/workers").ok(http.StatusOK, nil)
	// Requests that show nothing are not recorded
	acme.get("/api/jobs?limit=0").ok(http.StatusBadRequest, nil)
	acme.get("/api/jobs/"+uuid.NewString()).ok(http.StatusNotFound, nil)
	acme.get("/api/schedules/none").ok(http.StatusNotFound, nil)
	var got []string
	for _, e := range acme.log("") {
		got = append(got, inWords(e))
	}
	if want := []string{"worker.list - 0", "job.list - 0", "job.logs - 1", "job.read - 1", "job.submit - 1"}; !slices.Equal(got, want) {
		t.Errorf("the log has %q, want %q", got, want)
	}
}

func TestWithoutAuthenticationThereAreNoAuditEntries(t *testing.T) {
	t.Parallel()
	h := open(t)
	job := h.submitted()
	h.post("/api/jobs/"+job.String()+"/cancel", "").ok(http.StatusAccepted, nil)
	if entries := h.sqlInt("SELECT count(*) FROM audit_log"); entries != 0 {
		t.Errorf("%d entries", entries)
	}
}
