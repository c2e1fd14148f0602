package gateway_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/functions/gateway"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/sealing"
)

func TestOwnerCannotLoosenTheControlOfTheInstallation(t *testing.T) {
	t.Parallel()
	h := openLocked(t)
	h.follow()
	acme, admin := h.as("acme", "admin"), h.as("", "admin")
	const path = "/api/controls/owner/acme"
	admin.put(path, `{"paused": true, "maxRunning": 5, "startsPerSecond": 2}`).want(http.StatusOK)
	want := func(r *response, paused bool, running int, starts float64) {
		t.Helper()
		var c controlBody
		r.want(http.StatusOK).into(&c)
		if c.Paused != paused || c.MaxRunning == nil || *c.MaxRunning != running || c.StartsPerSecond == nil || *c.StartsPerSecond != starts {
			t.Errorf("it holds %s", r.body)
		}
	}
	for _, r := range []*response{
		acme.put(path, `{}`), acme.put(path, `{"maxRunning": 6, "startsPerSecond": 3}`), acme.post(path+"/resume", ""),
		acme.do(http.MethodDelete, path, ""), acme.do(http.MethodDelete, path, "", "X-Owner-Id", "acme"),
		admin.do(http.MethodDelete, path, "", "X-Owner-Id", "acme"),
	} {
		want(r, true, 5, 2)
	}
	want(acme.put(path, `{"maxRunning": 1}`), true, 1, 2)
	want(admin.post(path+"/resume", ""), false, 1, 2)
	want(acme.post(path+"/pause", ""), true, 1, 2)
	want(acme.do(http.MethodDelete, path, ""), false, 5, 2)
	want(admin.put(path, `{"maxRunning": 3, "startsPerSecond": 2}`), false, 3, 2)
	want(acme.put(path, `{"maxRunning": 4}`), false, 3, 2)
	var c controlBody
	admin.do(http.MethodDelete, path, "").want(http.StatusOK).into(&c)
	acme.put(path, `{"maxRunning": 4}`).want(http.StatusOK).into(&c)
	if *c.MaxRunning != 4 || c.StartsPerSecond != nil {
		t.Errorf("after the installation has let go it holds %+v", c)
	}
	for _, e := range acme.log("action=control.put&limit=200") {
		if *e.OwnerID != "acme" || *e.Resource != "control/owner/acme" {
			t.Errorf("entered %+v", e)
		}
	}
	if n := len(acme.log("action=control.put&limit=200")); n != 7 {
		t.Errorf("the owner's log has %d of them", n)
	}
}

func TestHeldResponseIsRefusedIfItsKeyWasRevoked(t *testing.T) {
	t.Parallel()
	h := openWith(t, func(cfg *gateway.Config) { cfg.Auth, cfg.Limits.WaitLimit = gateway.AuthOn, 1 })
	reader, other, admin := h.as("acme", "read"), h.as("acme", "read"), h.as("acme", "admin")
	job := admin.submitted()
	answered := make(chan *response, 1)
	go func() {
		r := reader.get("/api/jobs/" + job.String() + "?wait=30s")
		for r.status == http.StatusTooManyRequests { // the other one was held just then
			r = reader.get("/api/jobs/" + job.String() + "?wait=30s")
		}
		answered <- r
	}()
	for other.get("/api/jobs/"+job.String()+"?wait=1ms").status != http.StatusTooManyRequests {
		if len(answered) > 0 {
			t.Fatal("no request waits")
		}
	}
	admin.do(http.MethodDelete, "/api/keys/"+reader.id(), "").want(http.StatusOK)
	h.scheduler(job, 1, jobstate.Completed, nil)
	(<-answered).wantError(apierror.Unauthorized)
}

func TestSealedScheduleBelongsToTheOwnerOfTheKey(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "keyset.json")
	if _, err := sealing.CreateKeyset(file); err != nil {
		t.Fatal(err)
	}
	h := openWith(t, func(cfg *gateway.Config) {
		cfg.Auth, cfg.Sealing.File = gateway.AuthOn, file
	})
	acme := h.as("acme", "operate")
	for name, owner := range map[string]string{"silent": "", "own": `"ownerId": "acme", `, "other": `"ownerId": "other", `} {
		body := `{"cron": "@daily", "job": {` + owner + `"jobType": "MAIL", "payload": 1}}`
		acme.put("/api/schedules/"+name, body).want(http.StatusCreated)
		acme.put("/api/schedules/"+name, body).want(http.StatusOK)
		shown := string(acme.get("/api/schedules/" + name).want(http.StatusOK).body)
		if !strings.Contains(shown, `"payload":`) || !strings.Contains(shown, `"ownerId":"acme"`) || strings.Contains(shown, "sealed") {
			t.Errorf("%s: %s", name, shown)
		}
		acme.post("/api/schedules/"+name+"/run", "").want(http.StatusAccepted)
	}
}
