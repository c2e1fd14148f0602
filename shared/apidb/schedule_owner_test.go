package apidb_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
)

func TestASchedulesJobIsItsOwnersWhateverItSays(t *testing.T) {
	t.Parallel()
	h := open(t)
	acme := apidb.OwnerOf("acme")
	for name, said := range map[string]string{"silent": "", "of-another": "other", "honest": "acme"} {
		asked := schedule(t, name, `"cron": "0 0 1 1 *"`)
		if said != "" {
			asked.Job.OwnerID = said
			asked.JobJSON = []byte(strings.Replace(string(asked.JobJSON), "{", `{"ownerId": "`+said+`", `, 1))
		}
		made, err := h.CreateSchedule(t.Context(), acme, asked)
		if err != nil || made.OwnerID != "acme" || strings.Contains(string(made.Job), "other") {
			t.Errorf("%s: %s's, %s, %v", name, made.OwnerID, made.Job, err)
		}
		if kept, created, err := h.PutSchedule(t.Context(), acme, asked); err != nil || created || kept.ScheduleID != made.ScheduleID {
			t.Errorf("%s: put as %+v, %t, %v", name, kept, created, err)
		}
		job, err := h.RunSchedule(t.Context(), acme, apidb.ScheduleKey{Name: name}, scheduleRules)
		if err != nil || job.OwnerID != "acme" {
			t.Errorf("%s: runs %s's job, %v", name, job.OwnerID, err)
		}
	}
	h.late(t)
	fired, _ := h.fire(t)
	for _, job := range fired.Jobs {
		if owner := apidbtest.One[string](t, h, "select owner_id from jobs where job_id = $1", job.JobID); job.OwnerID != "acme" || owner != "acme" {
			t.Errorf("fires a job of %q, kept as one of %q", job.OwnerID, owner)
		}
	}
	if len(fired.Jobs) != 3 {
		t.Errorf("fires %+v", fired)
	}
}

func TestASchedulesOwnerAloneKnowsOfIt(t *testing.T) {
	t.Parallel()
	h := open(t)
	acme, other := apidb.OwnerOf("acme"), apidb.OwnerOf("other")
	for _, owner := range []apidb.Owner{acme, other} {
		if _, err := h.CreateSchedule(t.Context(), owner, schedule(t, "both", eachSecond)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.CreateSchedule(t.Context(), acme, schedule(t, "mine", eachSecond)); err != nil {
		t.Fatal(err)
	}
	owners := "acme"
	for name, of := range map[string]struct {
		owner apidb.Owner
		key   apidb.ScheduleKey
	}{
		"of another":            {other, apidb.ScheduleKey{Name: "mine"}},
		"of another, by owner":  {other, apidb.ScheduleKey{Name: "mine", OwnerID: &owners}},
		"of one who has it too": {other, apidb.ScheduleKey{Name: "both", OwnerID: &owners}},
		"of nobody":             {apidb.OwnerOf(""), apidb.ScheduleKey{Name: "mine"}},
	} {
		_, get := h.Schedule(t.Context(), of.owner, of.key)
		_, pause := h.PauseSchedule(t.Context(), of.owner, of.key)
		_, resume := h.ResumeSchedule(t.Context(), of.owner, of.key)
		_, run := h.RunSchedule(t.Context(), of.owner, of.key, scheduleRules)
		_, _, ticks := h.Ticks(t.Context(), of.owner, of.key, time.Now(), 10)
		for i, err := range []error{get, pause, resume, run, ticks, h.DeleteSchedule(t.Context(), of.owner, of.key)} {
			if !errors.Is(err, apidb.ErrNoSchedule) {
				t.Errorf("%s: %d: %v", name, i, err)
			}
		}
	}
	for _, of := range []struct {
		owner apidb.Owner
		n     int
	}{{acme, 2}, {other, 1}, {apidb.OwnerOf(""), 0}, {apidb.Everyone, 3}} {
		list, more, err := h.ListSchedules(t.Context(), of.owner, apidb.ScheduleFilter{Limit: 10})
		if err != nil || more || len(list) != of.n {
			t.Errorf("%+v sees %+v, %v", of.owner, list, err)
		}
	}
	if list, _, err := h.ListSchedules(t.Context(), other, apidb.ScheduleFilter{Limit: 10, OwnerID: &owners}); err != nil || list != nil {
		t.Errorf("another sees %+v, %v", list, err)
	}
	before := apidb.ScheduleKey{Name: "a", OwnerID: &owners} // a cursor of another's page
	list, _, err := h.ListSchedules(t.Context(), other, apidb.ScheduleFilter{Limit: 10, After: before})
	if err != nil || len(list) != 1 || list[0].OwnerID != "other" {
		t.Errorf("after another's: %+v, %v", list, err)
	}
	if err := h.DeleteSchedule(t.Context(), other, apidb.ScheduleKey{Name: "both"}); err != nil {
		t.Fatal(err)
	}
	if s, err := h.Schedule(t.Context(), acme, apidb.ScheduleKey{Name: "both"}); err != nil || s.OwnerID != "acme" {
		t.Errorf("what another deleted was %+v, %v", s, err)
	}
}
