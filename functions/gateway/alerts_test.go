package gateway_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/sealing"
)

type alertShown struct {
	Name    string
	OwnerID *string
	To      json.RawMessage
	Paused  bool
	State   string
	Failed  int64
	Sealed  []string
}

const slackAlert = `{"name": "a", "failures": 3, "to": {"slack": "https://hooks.example.org/services/s3cret?token=s3cret"}}`

func (c *client) alerts(query string) (names []string) {
	var page struct{ Alerts []alertShown }
	c.get("/api/alerts" + query).want(http.StatusOK).into(&page)
	for _, a := range page.Alerts {
		names = append(names, a.Name)
	}
	return names
}

func TestTheURLOfAnAlertIsShownNowhereWhole(t *testing.T) {
	t.Parallel()
	h := open(t)
	made := h.post("/api/alerts", slackAlert).want(http.StatusCreated)
	shown := h.get("/api/alerts/a").want(http.StatusOK)
	job := h.post("/api/alerts/a/test", "").want(http.StatusAccepted).jobID()
	answers := []*response{
		made, shown, h.get("/api/alerts").want(http.StatusOK), h.get("/api/alerts/a/notices").want(http.StatusOK),
		h.get("/api/jobs/" + job.String()).want(http.StatusOK), h.get("/api/jobs").want(http.StatusOK),
		h.put("/api/alerts/a", strings.Replace(slackAlert, "3,", "4,", 1)).want(http.StatusOK),
		h.post("/api/alerts/a/pause", "").want(http.StatusOK),
	}
	for _, r := range answers {
		if strings.Contains(string(r.body), "s3cret") {
			t.Errorf("it shows %s", r.body)
		}
	}
	if !strings.Contains(string(answers[4].body), `"to":{"slack":"https://hooks.example.org/…"}`) {
		t.Errorf("the job is %s", answers[4].body)
	}
	var sent string
	if h.sql("select payload::text from jobs where job_id = $1", &sent, job); !strings.Contains(sent, "/services/s3cret?token=s3cret") {
		t.Errorf("the job sends %s", sent)
	}
}

// Its URL would be shown with the payload of a job of another type.
func TestTheJobOfANoticeRunsAgainOnlyAsThat(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.post("/api/alerts", slackAlert).want(http.StatusCreated)
	job := h.post("/api/alerts/a/test", "").want(http.StatusAccepted).jobID()
	h.post(runAgainPath(job), `{"jobType": "MAIL"}`).wantError(apierror.InvalidStateTransition)
	h.post(runAgainPath(job), "").want(http.StatusAccepted)
}

func TestNoAlertIsAboutNotices(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.post("/api/alerts", strings.Replace(slackAlert, `"failures"`, `"jobType": "ALERT", "failures"`, 1)).wantError(bad, "jobType")
}

func TestAnAlertThatIsWrittenAsItIsShownKeepsItsURL(t *testing.T) {
	t.Parallel()
	h := open(t)
	hidden := strings.Replace(slackAlert, "/services/s3cret?token=s3cret", "/…", 1)
	h.post("/api/alerts", hidden).wantError(apierror.InvalidJobRequest, "to")
	h.put("/api/alerts/a", hidden).wantError(apierror.InvalidJobRequest, "to")
	h.post("/api/alerts", slackAlert).want(http.StatusCreated)
	h.post("/api/alerts", slackAlert).wantError(apierror.AlertExists)
	stored := func() (to string) {
		h.sql("select destination::text from alerts", &to)
		return to
	}
	before := stored()
	h.put("/api/alerts/a", strings.Replace(hidden, "3,", "4,", 1)).want(http.StatusOK)
	if stored() != before {
		t.Errorf("it is stored as %s", stored())
	}
	other := strings.Replace(hidden, "hooks.example.org", "other.example.org", 1)
	h.put("/api/alerts/a", other).wantError(apierror.InvalidJobRequest, "to")
	h.put("/api/alerts/a", strings.Replace(slackAlert, "s3cret", "other", 2)).want(http.StatusOK)
	if !strings.Contains(stored(), "/services/other?token=other") {
		t.Errorf("it is stored as %s", stored())
	}
}

func TestAnAlertOfTheInstallationCountsTheJobsOfAllOwners(t *testing.T) {
	t.Parallel()
	h := openLocked(t)
	h.sql(`insert into tallies (everyone, owner_id, grain, at, queue, job_type, what, n, kept) values
		(true, '', 'minute', date_trunc('minute', now()), 'default', 'OWN', 'FAILED', 5, 0),
		(false, 'acme', 'minute', date_trunc('minute', now()), 'default', 'OWN', 'FAILED', 2, 0)`, nil)
	admin, acme := h.as("", "admin"), h.as("acme", "operate")
	for want, c := range map[int64]*client{5: admin, 2: acme} {
		c.post("/api/alerts", slackAlert).want(http.StatusCreated)
		var shown alertShown
		c.get("/api/alerts/a").want(http.StatusOK).into(&shown)
		if shown.Failed != want || (shown.OwnerID == nil) != (c == admin) {
			t.Errorf("it shows %+v, not %d", shown, want)
		}
	}
	if got := admin.alerts(""); len(got) != 2 {
		t.Errorf("the installation sees %v", got)
	}
	if got := admin.alerts("?ownerId=acme&state=FIRING"); len(got) != 0 {
		t.Errorf("%v fire", got)
	}
	h.sql("update alerts set firing_since = now() where owner_id = 'acme'", nil)
	if got := admin.alerts("?state=FIRING"); !slices.Equal(got, []string{"a"}) {
		t.Errorf("%v fire", got)
	}
	admin.get("/api/alerts?state=OK").wantError(apierror.InvalidJobRequest, "state")
	admin.do(http.MethodPut, "/api/alerts/b", slackAlertOf("b"), "Content-Type", "application/json", "X-Owner-Id", "acme").want(http.StatusCreated)
	if got := acme.alerts(""); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("the owner sees %v", got)
	}
}

func slackAlertOf(name string) string { return strings.Replace(slackAlert, `"a"`, `"`+name+`"`, 1) }

// A key without an owner that is no admin sees the jobs without an owner only. An alert of the installation would count
// the jobs of all owners for it.
func TestAKeyWithoutAnOwnerThatIsNoAdminReachesNoAlert(t *testing.T) {
	t.Parallel()
	h := openLocked(t)
	h.as("", "admin").post("/api/alerts", slackAlert).want(http.StatusCreated)
	c := h.as("", "operate")
	if got := c.alerts(""); len(got) != 0 {
		t.Errorf("it sees %v", got)
	}
	c.post("/api/alerts", slackAlertOf("b")).wantError(apierror.Forbidden)
	for _, r := range []*response{
		c.get("/api/alerts/a"), c.get("/api/alerts/a/notices"), c.post("/api/alerts/a/test", ""), c.post("/api/alerts/a/pause", ""),
		c.do(http.MethodDelete, "/api/alerts/a", ""), c.put("/api/alerts/a", slackAlert),
	} {
		r.wantError(apierror.AlertNotFound)
	}
}

func TestAReaderChangesNoAlert(t *testing.T) {
	t.Parallel()
	h := openLocked(t)
	h.as("acme", "operate").post("/api/alerts", slackAlert).want(http.StatusCreated)
	c := h.as("acme", "read")
	c.get("/api/alerts/a").want(http.StatusOK)
	for _, r := range []*response{
		c.post("/api/alerts", slackAlertOf("b")), c.put("/api/alerts/a", slackAlert), c.post("/api/alerts/a/test", ""),
		c.post("/api/alerts/a/pause", ""), c.post("/api/alerts/a/resume", ""), c.do(http.MethodDelete, "/api/alerts/a", ""),
	} {
		r.wantError(apierror.Forbidden)
	}
}

func TestAnAlertThatCannotBeOpenedIsShownAndReplaced(t *testing.T) {
	t.Parallel()
	h, sealer, ways := openSealed(t)
	for way, seal := range ways {
		h.put("/api/alerts/a", slackAlert)
		var kept string
		h.sql("select destination #>> '{}' from alerts", &kept)
		if plain, err := sealer.OpenText(sealing.OfAlert("a", ""), kept); !jobevent.IsSealed(kept) || !strings.Contains(plain, "s3cret") || err != nil {
			t.Fatalf("keeps %s: %s, %v", kept, plain, err)
		}
		h.sql("update alerts set destination = to_json($1::text)", nil, seal(sealing.OfAlert("a", "")))
		var shown alertShown
		h.get("/api/alerts/a").want(http.StatusOK).into(&shown)
		if string(shown.To) != "null" || !slices.Equal(shown.Sealed, []string{"to"}) {
			t.Errorf("%s: shows %+v", way, shown)
		}
		h.post("/api/alerts/a/test", "").wantError(apierror.Sealed)
		h.post("/api/alerts/a/pause", "").want(http.StatusOK)
	}
	h.put("/api/alerts/a", slackAlert).want(http.StatusOK)
	id := h.post("/api/alerts/a/test", "").want(http.StatusAccepted).jobID()
	var payload string
	if h.sql("select payload::text from jobs where job_id = $1", &payload, id); !strings.HasPrefix(payload, `"`+jobevent.SealedPrefix) {
		t.Errorf("keeps %s", payload)
	}
}
