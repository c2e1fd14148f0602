package gateway_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apidb/statstore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// accept stores a job of an owner.
func (h *fixture) accept(owner string) uuid.UUID {
	h.t.Helper()
	job := jobstore.NewJob{JobID: uuid.Must(uuid.NewV7()), TraceID: uuid.New(), Whose: apidb.OwnerOf(owner), Request: jobspec.Request{
		JobType: "MAIL", Payload: json.RawMessage(`1`), Queue: "default", Spec: jobevent.Spec{TimeoutMs: (time.Minute).Milliseconds()}, OwnerID: owner,
	}}
	if _, err := h.store.Jobs.InsertJobs(h.t.Context(), []jobstore.NewJob{job}); err != nil {
		h.t.Fatal(err)
	}
	return job.JobID
}

func (c *client) put(path, body string) *response {
	c.t.Helper()
	return c.do(http.MethodPut, path, body, "Content-Type", "application/json")
}

func TestStatisticsOfAnOwnerCoverItsOwnJobs(t *testing.T) {
	t.Parallel()
	h := openLocked(t)
	store := apidbtest.Open(t, h.dbURL)
	elsewhere := &fixture{t: t, store: store} // only this test reads it
	first := elsewhere.accept("acme")
	for range 2 {
		h.scheduler(elsewhere.accept("acme"), 1, jobstate.Completed, nil)
		h.scheduler(elsewhere.accept("other"), 1, jobstate.Failed, nil)
	}
	elsewhere.accept("other")
	elsewhere.accept("")
	var census statstore.Census
	_, err := store.Stats.CountJobs(t.Context(), &census, time.Now())
	if err = errors.Join(err, store.Jobs.EnterAccepted(t.Context())); err != nil {
		t.Fatal(err)
	}
	for name, of := range map[string]struct {
		*client
		pending, completed, failed, accepted int
	}{
		"acme":                       {h.as("acme", "read"), 1, 2, 0, 3},
		"other":                      {h.as("other", "admin"), 1, 0, 2, 3},
		"who has nothing":            {h.as("third", "admin"), 0, 0, 0, 0},
		"who reads the installation": {h.as("", "read"), 1, 0, 0, 1},
		"the installation":           {h.as("", "admin"), 3, 2, 2, 7},
		"the installation, no owner": {h.as("", "operate"), 1, 0, 0, 1},
	} {
		var s statsBody
		of.get("/api/stats").want(http.StatusOK).into(&s)
		days := s.Throughput.Days
		if s.Jobs["PENDING"] != of.pending || s.Jobs["COMPLETED"] != of.completed || s.Jobs["FAILED"] != of.failed ||
			days[29].Accepted+days[28].Accepted != of.accepted || (len(s.Types) == 0) != (of.accepted == 0) {
			t.Errorf("%s sees %+v, %+v", name, s.Jobs, days[28:])
		}
		if oldest := s.OldestWaiting; name == "acme" && (oldest == nil || oldest.JobID != first) || name == "who has nothing" && oldest != nil {
			t.Errorf("%s: the oldest is %+v", name, oldest)
		}
	}
	var s statsBody
	h.as("", "admin").do(http.MethodGet, "/api/stats", "", "X-Owner-Id", "other").want(http.StatusOK).into(&s)
	if s.Jobs["FAILED"] != 2 || s.Jobs["COMPLETED"] != 0 {
		t.Errorf("who acts for an owner sees %+v", s.Jobs)
	}
}

func TestHealthShowsCountsOnlyToTheInstallation(t *testing.T) {
	t.Parallel()
	h := openLocked(t)
	h.accept("acme")
	hasCounts := func(c *client, headers ...string) bool {
		var body struct {
			Status     string
			Components struct {
				Job struct{ Details *struct{ PendingJobs int } }
			}
		}
		c.do(http.MethodGet, "/api/health", "", headers...).want(http.StatusOK).into(&body)
		if details := body.Components.Job.Details; body.Status != "UP" || details != nil && details.PendingJobs != 1 {
			t.Errorf("%+v", body)
		}
		return body.Components.Job.Details != nil
	}
	admin := h.as("", "admin")
	if !hasCounts(admin) {
		t.Error("the installation sees no counts")
	}
	wrong := []string{"Authorization", "Bearer jw_wrong"}
	for name, shown := range map[string]bool{
		"anonymous": hasCounts(h.client), "a wrong key": hasCounts(h.client, wrong...), "an owner": hasCounts(h.as("acme", "admin")),
		"no admin": hasCounts(h.as("", "operate")), "who acts for an owner": hasCounts(admin, "X-Owner-Id", "acme"),
	} {
		if shown {
			t.Errorf("%s sees counts", name)
		}
	}
}

func TestOwnersSeeTheirOwnAttemptsInWorkers(t *testing.T) {
	t.Parallel()
	h := openLocked(t)
	acme, other := h.accept("acme"), h.accept("other")
	held := func(ids ...uuid.UUID) (attempts []jobevent.ListedAttempt) {
		for _, id := range ids {
			attempts = append(attempts, jobevent.ListedAttempt{JobID: id, Attempt: 1, Progress: &jobevent.Progress{Message: "of " + id.String()}})
		}
		return attempts
	}
	h.heartbeat(
		jobevent.Heartbeat{WorkerID: "a", Slots: 8, Free: 5, Rate: 2.5, Attempts: held(other, acme, uuid.New())},
		jobevent.Heartbeat{WorkerID: "b", Slots: 4, Free: 3, Stopping: true, Attempts: held(other)},
	)
	r := h.as("acme", "read").get("/api/workers").want(http.StatusOK)
	var seen struct {
		Workers []struct {
			WorkerID   string
			Slots      int
			Free, Busy *int
			Rate       *float64
			Attempts   []struct{ JobID uuid.UUID }
		}
	}
	r.into(&seen)
	for _, w := range seen.Workers {
		if w.Free != nil || w.Busy != nil || w.Rate != nil || w.Slots == 0 {
			t.Errorf("an owner sees %+v", w)
		}
	}
	if w := seen.Workers; len(w) != 2 || len(w[0].Attempts) != 1 || w[0].Attempts[0].JobID != acme || len(w[1].Attempts) != 0 ||
		strings.Contains(string(r.body), other.String()) {
		t.Errorf("an owner sees %s", r.body)
	}
	h.as("", "admin").get("/api/workers").want(http.StatusOK).into(&seen)
	if w := seen.Workers; len(w[0].Attempts) != 3 || *w[0].Busy != 3 || *w[0].Free != 5 || *w[0].Rate != 2.5 || *w[1].Busy != 1 {
		t.Errorf("the installation sees %+v", w)
	}
	if r := h.as("acme", "read").get("/api/job-types/MAIL"); r.status != http.StatusOK { // job types belong to the installation, and every owner sees them
		t.Errorf("an owner does not see a job type: %d", r.status)
	}
}

func TestOwnersControlOnlyThemselves(t *testing.T) {
	t.Parallel()
	h := openLocked(t)
	h.follow()
	acme, other, admin := h.as("acme", "operate"), h.as("other", "operate"), h.as("", "admin")
	var shown controlBody
	acme.put("/api/controls/owner/acme", `{"paused": true, "maxRunning": 3}`).want(http.StatusOK).into(&shown)
	if !shown.Applied || !shown.Paused {
		t.Errorf("keeps %+v", shown)
	}
	admin.put("/api/controls/queue/mail", `{"paused": true}`).want(http.StatusOK)
	for _, kind := range []string{"queue/mail", "type/MAIL", "queue/default"} {
		for _, r := range anyControl(acme, kind) {
			r.wantError(apierror.Forbidden)
		}
		for _, r := range anyControl(h.as("", "operate"), kind) {
			r.wantError(apierror.Forbidden)
		}
	}
	for _, c := range []*client{other, h.as("", "operate")} {
		for _, r := range append(anyControl(c, "owner/acme"), anyControl(c, "owner/unknown")...) {
			r.wantError(apierror.NotFound)
		}
	}
	for name, of := range map[string]struct {
		*client
		ids string
	}{
		"acme": {acme, "owner/acme"}, "other": {other, ""}, "the installation": {admin, "owner/acme queue/mail"},
	} {
		var list struct{ Controls []controlBody }
		of.get("/api/controls").want(http.StatusOK).into(&list)
		var ids []string
		for _, c := range list.Controls {
			ids = append(ids, c.Kind+"/"+c.Name)
		}
		if got := strings.Join(ids, " "); got != of.ids {
			t.Errorf("%s sees %q", name, got)
		}
	}
	acme.get("/api/controls/owner/acme").want(http.StatusOK).into(&shown)
	if !shown.Paused || *shown.MaxRunning != 3 {
		t.Errorf("after all it is %+v", shown)
	}
	admin.post("/api/controls/owner/acme/resume", "").want(http.StatusOK)
	admin.do(http.MethodDelete, "/api/controls/owner/acme", "", "X-Owner-Id", "acme").want(http.StatusOK)
	admin.do(http.MethodGet, "/api/controls/queue/mail", "", "X-Owner-Id", "acme").wantError(apierror.Forbidden)
}

// anyControl sends each request that there is for a control.
func anyControl(c *client, subject string) []*response {
	path := "/api/controls/" + subject
	return []*response{
		c.get(path), c.put(path, `{"paused": false}`), c.post(path+"/pause", ""), c.post(path+"/resume", ""),
		c.do(http.MethodDelete, path, ""),
	}
}

func TestScheduleBelongsToTheOwnerOfTheKey(t *testing.T) {
	t.Parallel()
	h := openLocked(t)
	acme, other := h.as("acme", "operate"), h.as("other", "operate")
	body := `{"name": "a", "cron": "@daily", "job": {"ownerId": "other", "jobType": "MAIL", "payload": 1}}`
	made := acme.post("/api/schedules", body).want(http.StatusCreated)
	var shown scheduleShown
	made.into(&shown)
	if *shown.OwnerID != "acme" || made.header.Get("Location") != "/api/schedules/a?ownerId=acme" || strings.Contains(string(made.body), "other") {
		t.Errorf("made %s at %s", made.body, made.header.Get("Location"))
	}
	for _, of := range []string{"", "?ownerId=acme"} {
		acme.get("/api/schedules/a" + of).want(http.StatusOK)
		acme.put("/api/schedules/a"+of, body).want(http.StatusOK)
		acme.post("/api/schedules/a/pause"+of, "").want(http.StatusOK)
		run := acme.post("/api/schedules/a/run"+of, "").want(http.StatusAccepted)
		var owner string
		if h.sql("select owner_id from jobs where job_id = $1", &owner, run.jobID()); owner != "acme" {
			t.Errorf("runs a job of %s", owner)
		}
	}
	acme.put("/api/schedules/a?ownerId=other", body).wantError(apierror.InvalidJobRequest, "job.ownerId")
	acme.get("/api/schedules/a?ownerId=other").wantError(apierror.ScheduleNotFound)
	for _, c := range []*client{other, h.as("", "operate")} {
		for _, of := range []string{"", "?ownerId=acme"} {
			for _, r := range []*response{
				c.get("/api/schedules/a" + of), c.post("/api/schedules/a/pause"+of, ""), c.post("/api/schedules/a/resume"+of, ""),
				c.post("/api/schedules/a/run"+of, ""), c.get("/api/schedules/a/ticks" + of), c.do(http.MethodDelete, "/api/schedules/a"+of, ""),
			} {
				r.wantError(apierror.ScheduleNotFound)
			}
			var list struct{ Schedules []scheduleShown }
			c.get("/api/schedules" + of).want(http.StatusOK).into(&list)
			if len(list.Schedules) != 0 {
				t.Errorf("another sees %+v", list)
			}
		}
	}
	other.put("/api/schedules/a", body).want(http.StatusCreated)
	other.do(http.MethodDelete, "/api/schedules/a", "").want(http.StatusNoContent)
	var ticks struct{ Ticks []struct{ Reason string } }
	acme.get("/api/schedules/a/ticks?ownerId=acme").want(http.StatusOK).into(&ticks)
	if len(ticks.Ticks) != 2 {
		t.Errorf("ticks %+v", ticks)
	}
	h.as("", "admin").do(http.MethodDelete, "/api/schedules/a", "", "X-Owner-Id", "acme").want(http.StatusNoContent)
}
