package schedulestore_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/schedulestore"
)

func TestASchedulesJobBelongsToItsOwnerWhateverItsRequest(t *testing.T) {
	t.Parallel()
	h := open(t)
	acme := apidb.OwnerOf("acme")
	for name, named := range map[string]string{"silent": "", "of-another": "other", "honest": "acme"} {
		asked := apidbtest.Schedule(t, name, `"cron": "0 0 1 1 *"`)
		if named != "" {
			asked.Job.OwnerID = named
			asked.JobJSON = []byte(strings.Replace(string(asked.JobJSON), "{", `{"ownerId": "`+named+`", `, 1))
		}
		made, err := h.Schedules.Create(t.Context(), nil, acme, asked)
		if err != nil || made.OwnerID != "acme" || strings.Contains(string(made.Job), "other") {
			t.Errorf("%s: %s's, %s, %v", name, made.OwnerID, made.Job, err)
		}
		if kept, created, err := h.Schedules.Put(t.Context(), nil, acme, asked, nil); err != nil || created || kept.ScheduleID != made.ScheduleID {
			t.Errorf("%s: put as %+v, %t, %v", name, kept, created, err)
		}
		job, _, err := h.Schedules.Run(t.Context(), nil, acme, apidb.Key{Name: name}, nil, apidbtest.ScheduleRules)
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
		if _, err := h.Schedules.Create(t.Context(), nil, owner, apidbtest.Schedule(t, "both", eachSecond)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.Schedules.Create(t.Context(), nil, acme, apidbtest.Schedule(t, "mine", eachSecond)); err != nil {
		t.Fatal(err)
	}
	owners := "acme"
	for name, of := range map[string]struct {
		owner apidb.Owner
		key   apidb.Key
	}{
		"of another":            {other, apidb.Key{Name: "mine"}},
		"of another, by owner":  {other, apidb.Key{Name: "mine", OwnerID: &owners}},
		"of one who has it too": {other, apidb.Key{Name: "both", OwnerID: &owners}},
		"without an owner":      {apidb.OwnerOf(""), apidb.Key{Name: "mine"}},
	} {
		_, get := h.Schedules.Get(t.Context(), of.owner, of.key)
		_, pause := h.Schedules.Pause(t.Context(), nil, of.owner, of.key, nil)
		_, resume := h.Schedules.Resume(t.Context(), nil, of.owner, of.key, nil)
		_, _, run := h.Schedules.Run(t.Context(), nil, of.owner, of.key, nil, apidbtest.ScheduleRules)
		_, _, ticks := h.Schedules.Ticks(t.Context(), of.owner, of.key, time.Now(), 10)
		for i, err := range []error{get, pause, resume, run, ticks, h.Schedules.Delete(t.Context(), nil, of.owner, of.key, nil)} {
			if !errors.Is(err, schedulestore.ErrNone) {
				t.Errorf("%s: %d: %v", name, i, err)
			}
		}
	}
	for _, of := range []struct {
		owner apidb.Owner
		n     int
	}{{acme, 2}, {other, 1}, {apidb.OwnerOf(""), 0}, {apidb.Everyone, 3}} {
		list, more, err := h.Schedules.List(t.Context(), of.owner, schedulestore.Filter{Limit: 10})
		if err != nil || more || len(list) != of.n {
			t.Errorf("%+v sees %+v, %v", of.owner, list, err)
		}
	}
	if list, _, err := h.Schedules.List(t.Context(), other, schedulestore.Filter{Limit: 10, OwnerID: &owners}); err != nil || list != nil {
		t.Errorf("another sees %+v, %v", list, err)
	}
	before := apidb.Key{Name: "a", OwnerID: &owners} // a cursor from another owner's page
	list, _, err := h.Schedules.List(t.Context(), other, schedulestore.Filter{Limit: 10, After: before})
	if err != nil || len(list) != 1 || list[0].OwnerID != "other" {
		t.Errorf("after another's: %+v, %v", list, err)
	}
	if err := h.Schedules.Delete(t.Context(), nil, other, apidb.Key{Name: "both"}, nil); err != nil {
		t.Fatal(err)
	}
	if s, err := h.Schedules.Get(t.Context(), acme, apidb.Key{Name: "both"}); err != nil || s.OwnerID != "acme" {
		t.Errorf("what another deleted was %+v, %v", s, err)
	}
}
