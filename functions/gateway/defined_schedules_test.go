package gateway_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/functions/gateway"
	"github.com/jobweaver/jobweaver/shared/apierror"
)

type definedShown struct {
	scheduleShown
	DefinedBy *string
	UpdatedAt time.Time
}

func (c *client) schedule(name string) (s definedShown) {
	c.get("/api/schedules/" + name).want(http.StatusOK).into(&s)
	return s
}

func defined(name, cron string) string {
	return `{"name": "` + name + `", "cron": "` + cron + `", "job": {"jobType": "CHARGE", "payload": {"cents": 1}}}`
}

func TestATaskDefinesItsSchedulesInCode(t *testing.T) {
	t.Parallel()
	for name, seal := range map[string]bool{"plain": false, "sealed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := openWith(t, func(cfg *gateway.Config) {
				cfg.Auth = gateway.AuthOn
				if seal {
					cfg.Sealing, _ = newSealer(t)
				}
			})
			const path = "/api/job-types/CHARGE/schedules"
			worker, acme := h.as("acme", "work"), h.as("acme", "operate")
			put := func(schedules string) *response { return worker.put(path, `{"schedules": [`+schedules+`]}`) }
			put(defined("nightly", "@daily")).wantError(apierror.InvalidJobRequest, "schedules[0].job.jobType") // no worker has run it
			worker.put("/api/job-types/CHARGE", `{"schema": {"required": ["cents"]}}`).want(http.StatusNoContent)

			put(defined("nightly", "@daily") + "," + defined("often", "@every 90s")).want(http.StatusNoContent)
			first := acme.schedule("nightly")
			if *first.DefinedBy != "CHARGE" || first.Cron != "@daily" || *first.OwnerID != "acme" {
				t.Errorf("created %+v", first)
			}
			acme.post("/api/schedules/often/pause", "").want(http.StatusOK)
			paused := acme.schedule("often")
			put(defined("often", "@every 90s") + "," + defined("nightly", "@daily")).want(http.StatusNoContent)
			if again := acme.schedule("nightly"); !again.UpdatedAt.Equal(first.UpdatedAt) {
				t.Error("a schedule that has not changed was replaced")
			}
			if again := acme.schedule("often"); !again.UpdatedAt.Equal(paused.UpdatedAt) || !again.Paused {
				t.Error("a paused schedule that has not changed was replaced")
			}
			put(defined("often", "@every 2m") + "," + defined("nightly", "@weekly")).want(http.StatusNoContent)
			if changed := acme.schedule("nightly"); changed.Cron != "@weekly" || *changed.DefinedBy != "CHARGE" {
				t.Errorf("changed to %+v", changed)
			}
			if changed := acme.schedule("often"); changed.Cron != "@every 2m" || !changed.Paused {
				t.Errorf("changed, and its pause has ended: %+v", changed)
			}

			byHand := `{"cron": "@hourly", "job": {"jobType": "CHARGE", "payload": {"cents": 1}}}`
			acme.put("/api/schedules/nightly", byHand).wantError(apierror.InvalidStateTransition)
			acme.put("/api/schedules/mine", byHand).want(http.StatusCreated)
			put(defined("mine", "@daily")).wantError(apierror.ScheduleExists)
			if acme.schedule("nightly").Cron != "@weekly" {
				t.Error("a refused list has changed a schedule")
			}
			put(defined("nightly", "@weekly")).want(http.StatusNoContent)
			acme.get("/api/schedules/often").want(http.StatusNotFound)
			put("").want(http.StatusNoContent)
			acme.get("/api/schedules/nightly").want(http.StatusNotFound)
			if mine := acme.schedule("mine"); mine.DefinedBy != nil {
				t.Errorf("what a person made is %+v", mine)
			}
		})
	}
}

func TestSchedulesInCodeAreOfOneOwnerAndOneType(t *testing.T) {
	t.Parallel()
	h := openWith(t, func(cfg *gateway.Config) { cfg.Auth, cfg.JobTypes = gateway.AuthOn, []string{"*"} })
	list := `{"schedules": [` + defined("nightly", "@daily") + `]}`
	for _, owner := range []string{"acme", "other"} {
		h.as(owner, "work").put("/api/job-types/CHARGE/schedules", list).want(http.StatusNoContent)
	}
	h.as("other", "work").put("/api/job-types/CHARGE/schedules", `{"schedules": []}`).want(http.StatusNoContent)
	acme := h.as("acme", "work")
	if s := h.as("acme", "read").schedule("nightly"); *s.OwnerID != "acme" {
		t.Errorf("shown %+v", s)
	}
	ship := `{"schedules": [{"name": "nightly", "cron": "@daily", "job": {"jobType": "SHIP", "payload": {}}}]}`
	acme.put("/api/job-types/SHIP/schedules", ship).wantError(apierror.ScheduleExists)
	for body, at := range map[string]string{
		ship: "schedules[0].job.jobType", `{}`: "schedules", `{"schedules": 1}`: "schedules", `{"schedule": []}`: "schedule",
		`{"schedules": [` + defined("", "@daily") + `]}`:                                                               "schedules[0].name",
		`{"schedules": [` + defined("a", "@daily") + "," + defined("a", "@x") + `]}`:                                   "schedules[1].cron",
		`{"schedules": [` + defined("a", "@daily") + "," + defined("a", "@daily") + `]}`:                               "schedules[1].name",
		`{"schedules": [{"name": "a", "cron": "@daily", "paused": true, "job": {"jobType": "CHARGE", "payload": 1}}]}`: "schedules[0].paused",
	} {
		acme.put("/api/job-types/CHARGE/schedules", body).wantError(apierror.InvalidJobRequest, at)
	}
	ended := `{"schedules": [{"name": "past", "cron": "@daily", "endAt": "2020-01-01T00:00:00Z", "job": {"jobType": "CHARGE", "payload": 1}}]}`
	acme.put("/api/job-types/CHARGE/schedules", ended).want(http.StatusNoContent) // code keeps it, and its worker starts again
}
