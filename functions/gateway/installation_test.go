package gateway_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/statstore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// ids returns the jobs of a list.
func (c *client) ids(path string, headers ...string) (ids []uuid.UUID) {
	c.t.Helper()
	var list struct{ Jobs []struct{ JobID uuid.UUID } }
	c.get(path, headers...).want(http.StatusOK).into(&list)
	for _, job := range list.Jobs {
		ids = append(ids, job.JobID)
	}
	return ids
}

// Each count of the statistics is that of a list: an admin of the installation reaches the jobs that it counts.
func TestAnAdminOfTheInstallationReachesWhatAllOwnersHave(t *testing.T) {
	t.Parallel()
	h := openLocked(t)
	admin, none := h.as("", "admin"), h.as("", "operate")
	theirs, own := h.accept("acme"), h.accept("")
	h.scheduler(theirs, 1, jobstate.Failed, nil)
	var stats statsBody
	admin.get("/api/stats").want(http.StatusOK).into(&stats)
	if failed := admin.ids("/api/jobs?status=FAILED"); !slices.Equal(failed, []uuid.UUID{theirs}) || stats.Jobs["FAILED"] != 1 {
		t.Errorf("it lists %v, and counts %v", failed, stats.Jobs)
	}
	if all := admin.ids("/api/jobs"); !slices.Equal(all, []uuid.UUID{own, theirs}) {
		t.Errorf("it lists %v", all)
	}
	if acmes := admin.ids("/api/jobs", "X-Owner-Id", "acme"); !slices.Equal(acmes, []uuid.UUID{theirs}) {
		t.Errorf("for acme it lists %v", acmes)
	}
	if unowned := none.ids("/api/jobs"); !slices.Equal(unowned, []uuid.UUID{own}) {
		t.Errorf("without the role admin it lists %v", unowned)
	}
	none.post("/api/jobs/"+theirs.String()+"/retry", "").wantError(apierror.JobNotFound)
	admin.post("/api/jobs/"+theirs.String()+"/retry", "").want(http.StatusAccepted)
	again := admin.post(runAgainPath(theirs), "").want(http.StatusAccepted).jobID()
	schedule := `{"cron": "@daily", "job": ` + with(`"ownerId": "zeta"`) + `}` // the owner of the query counts
	admin.put("/api/schedules/nightly?ownerId=acme", schedule).want(http.StatusCreated)
	admin.put("/api/schedules/nightly?ownerId=acme", schedule).want(http.StatusOK)
	admin.post("/api/schedules/nightly/pause", "").want(http.StatusOK)
	var op struct{ OperationID string }
	admin.post("/api/operations", `{"command": "cancel", "filter": {"ownerId": "acme"}}`).want(http.StatusAccepted).into(&op)
	if acmes := h.as("acme", "read").ids("/api/jobs"); !slices.Equal(acmes, []uuid.UUID{again, theirs}) {
		t.Errorf("acme has %v", acmes)
	}
	var actions []string // acme sees in its log what was done to its things
	for _, entry := range h.as("acme", "admin").log("") {
		actions = append(actions, entry.Action)
	}
	want := []string{"operation.create", "schedule.pause", "schedule.put", "schedule.put", "job.run-again", "job.retry"}
	if !slices.Equal(actions, want) {
		t.Errorf("acme's log has %v", actions)
	}
}

// Without authentication each request is that of an admin of the installation, and acts for an owner in the same way.
func TestWithoutAuthenticationARequestActsForTheOwnerThatItNames(t *testing.T) {
	t.Parallel()
	h := open(t)
	made := map[string]uuid.UUID{}
	for _, owner := range []string{"acme", "zeta"} {
		made[owner] = h.submit(with(fmt.Sprintf(`"ownerId": %q`, owner)))
	}
	made["of acme"] = h.post("/api/jobs", with(`"ownerId": "zeta"`), "X-Owner-Id", "acme").want(http.StatusAccepted).jobID()
	for owner, want := range map[string][]uuid.UUID{
		"": {made["of acme"], made["zeta"], made["acme"]}, "acme": {made["of acme"], made["acme"]}, "none": {},
	} {
		if got := h.ids("/api/jobs", "X-Owner-Id", owner); !slices.Equal(got, want) {
			t.Errorf("for %q it lists %v, want %v", owner, got, want)
		}
	}
	h.get("/api/jobs/"+made["zeta"].String(), "X-Owner-Id", "acme").wantError(apierror.JobNotFound)
	h.get("/api/owners", "X-Owner-Id", "acme").wantError(apierror.Forbidden)
	h.get("/api/jobs", "X-Owner-Id", strings.Repeat("x", 256)).wantError(apierror.Forbidden)
}

// What it makes belongs to the owner of its key, as for every key: only X-Owner-Id makes it another owner's.
func TestAnAdminOfTheInstallationMakesJobsOfNoOwner(t *testing.T) {
	t.Parallel()
	h := openLocked(t)
	admin := h.as("", "admin")
	for owner, headers := range map[string][]string{"": nil, "acme": {"X-Owner-Id", "acme"}} {
		var made string
		headers = append(headers, "Content-Type", "application/json")
		id := admin.do(http.MethodPost, "/api/jobs", with(`"ownerId": "zeta"`), headers...).want(http.StatusAccepted).jobID()
		if h.sql("select owner_id from jobs where job_id = $1", &made, id); made != owner {
			t.Errorf("a job of %q is made for %q", made, owner)
		}
	}
}

func TestOwnersAreKnownByTheirJobsKeysAndControls(t *testing.T) {
	t.Parallel()
	h := openLocked(t)
	store := apidbtest.Open(t, h.dbURL)
	elsewhere := &fixture{t: t, store: store} // only this test reads it
	elsewhere.accept("Jobs & Söhne")
	elsewhere.accept("")
	var census statstore.Census
	_, err := store.Stats.CountJobs(t.Context(), &census, time.Now())
	if err = errors.Join(err, store.Jobs.EnterAccepted(t.Context())); err != nil {
		t.Fatal(err)
	}
	h.follow()
	h.as("keyed", "read")
	h.as("keyed", "submit")
	h.as("other-key", "read")
	admin := h.as("", "admin")
	admin.put("/api/controls/owner/limited", `{"paused": true}`).want(http.StatusOK)
	for query, want := range map[string][]string{
		"":         {"Jobs & Söhne", "keyed", "limited", "other-key"},
		"?q=KEY":   {"keyed", "other-key"},
		"?q=söhne": {"Jobs & Söhne"},
		"?q=none":  {},
	} {
		var body struct {
			Owners []string
			More   bool
		}
		admin.get("/api/owners" + query).want(http.StatusOK).into(&body)
		slices.Sort(body.Owners)
		if body.Owners == nil || !slices.Equal(body.Owners, want) || body.More {
			t.Errorf("%q finds %+v", query, body)
		}
		admin.get("/api/owners?limit=1").want(http.StatusOK).into(&body)
		if len(body.Owners) != 1 || !body.More {
			t.Errorf("one of them is %+v", body)
		}
	}
	admin.get("/api/owners?q=").wantError(apierror.InvalidJobRequest, "q")
	admin.get("/api/owners?limit=0").wantError(apierror.InvalidJobRequest, "limit")
	for _, c := range []*client{h.as("keyed", "admin"), h.as("", "operate")} {
		c.get("/api/owners").wantError(apierror.Forbidden)
	}
	admin.get("/api/owners", "X-Owner-Id", "keyed").wantError(apierror.Forbidden)
}
