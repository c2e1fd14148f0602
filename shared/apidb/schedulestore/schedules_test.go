package schedulestore_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/schedulestore"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

func (h *fixture) create(t *testing.T, name, fields string) (schedulestore.Schedule, apidb.Key) {
	t.Helper()
	made, err := h.Schedules.Create(t.Context(), nil, apidb.Everyone, apidbtest.Schedule(t, name, fields))
	if err != nil {
		t.Fatal(err)
	}
	return made, apidb.Key{Name: name}
}

func (h *fixture) fire(t *testing.T) (schedulestore.Fired, time.Duration) {
	t.Helper()
	fired, next, err := h.Schedules.Fire(t.Context(), apidbtest.ScheduleRules, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return fired, next
}

func (h *fixture) ticks(t *testing.T, key apidb.Key) []schedulestore.Tick {
	t.Helper()
	ticks, _, err := h.Schedules.Ticks(t.Context(), apidb.Everyone, key, time.Now().Add(time.Hour), 5000)
	if err != nil {
		t.Fatal(err)
	}
	return ticks
}

func outcomes(ticks []schedulestore.Tick, outcome string) (n int) {
	for _, tick := range ticks {
		if tick.Outcome == outcome {
			n++
		}
	}
	return n
}

const (
	eachSecond = `"cron": "* * * * * *"`
	eachYear   = `"cron": "0 0 1 1 *"`
)

func TestATickIsAJobAndIsRecorded(t *testing.T) {
	t.Parallel()
	h := open(t)
	made, key := h.create(t, "a", eachYear)
	if fired, next := h.fire(t); len(fired.Jobs) != 0 || next != time.Minute {
		t.Fatalf("before its time it fires %v, and sleeps %s", fired, next)
	}
	h.Ago(t, "a", 0)
	h.Once(t)
	fired, next := h.fire(t)
	if len(fired.Jobs) != 1 || next != time.Minute {
		t.Fatalf("fires %v, and sleeps %s", fired, next)
	}
	ticks := h.ticks(t, key)
	now, err := h.Schedules.Get(t.Context(), apidb.Everyone, key)
	if err != nil {
		t.Fatal(err)
	}
	job, err := h.Jobs.Job(t.Context(), apidb.Everyone, fired.Jobs[0].JobID)
	if err != nil {
		t.Fatal(err)
	}
	if len(ticks) != 1 || ticks[0].Outcome != "fired" || *ticks[0].JobID != job.JobID || ticks[0].Reason != "" ||
		job.ScheduledBy == nil || job.ScheduledBy.Name != "a" || !job.ScheduledBy.At.Equal(ticks[0].At) {
		t.Errorf("ticks %+v, job %+v", ticks, job)
	}
	if !now.LastAt.Equal(ticks[0].At) || *now.LastJobID != job.JobID || !now.NextAt.After(*now.LastAt) ||
		now.ScheduleID != made.ScheduleID {
		t.Errorf("schedule %+v", now)
	}
	if list := now.Upcoming(5); len(list) != 5 || !list[0].Equal(*now.NextAt) || !list[4].After(list[3]) {
		t.Errorf("upcoming %v", list)
	}
}

func TestManyWhoFireAtOnceFireEachTickOnce(t *testing.T) {
	t.Parallel()
	h := open(t)
	for i := range 20 {
		h.create(t, fmt.Sprint("s", i), eachSecond+`, "missed": "all"`)
		h.Ago(t, fmt.Sprint("s", i), 20*time.Second)
	}
	var all errgroup.Group
	for range 4 {
		all.Go(func() error {
			for range 10 {
				if _, _, err := h.Schedules.Fire(t.Context(), apidbtest.ScheduleRules, time.Minute); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	h.fire(t)
	for i := range 20 {
		ticks := h.ticks(t, apidb.Key{Name: fmt.Sprint("s", i)})
		for j := range ticks[1:] {
			if gap := ticks[j].At.Sub(ticks[j+1].At); gap != time.Second || ticks[j].Outcome != "fired" {
				t.Errorf("s%d: ticks %s apart, %+v", i, gap, ticks[j])
			}
		}
		if len(ticks) < 21 {
			t.Errorf("s%d: %d ticks", i, len(ticks))
		}
	}
	if jobs, ticks := apidbtest.One[int](t, h, "select count(*) from jobs"), apidbtest.One[int](t, h, "select count(*) from schedule_ticks"); jobs != ticks {
		t.Errorf("%d jobs of %d ticks", jobs, ticks)
	}
}

func TestMissedTicksFollowThePolicy(t *testing.T) {
	t.Parallel()
	for policy, want := range map[string]int{"skip": 0, "one": 1, "all": 60} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			h := open(t)
			_, key := h.create(t, "a", fmt.Sprintf(`"cron": "* * * * *", "missed": %q`, policy))
			// Its last minute ended too long ago to fire as if in time.
			h.Exec(t, `update schedules set next_at = date_trunc('minute', now()) - interval '1 hour',
				end_at = date_trunc('minute', now()) - interval '1 minute'`)
			fired, _ := h.fire(t)
			ticks := h.ticks(t, key)
			if n := len(fired.Jobs); n != want || len(ticks) != 60 || outcomes(ticks, "fired") != n {
				t.Errorf("%d jobs, ticks %+v", n, ticks)
			}
			for _, tick := range ticks {
				if tick.Outcome == "skipped" && !strings.HasPrefix(tick.Reason, "missed") {
					t.Errorf("skipped: %s", tick.Reason)
				}
			}
		})
	}
}

func TestCatchingUpIsBounded(t *testing.T) {
	t.Parallel()
	h := open(t)
	_, key := h.create(t, "a", eachSecond+`, "missed": "all"`)
	h.Ago(t, "a", 30*24*time.Hour)
	began := time.Now()
	jobs := 0
	for next := time.Duration(0); next == 0; {
		var fired schedulestore.Fired
		fired, next = h.fire(t)
		jobs += len(fired.Jobs)
	}
	ticks := h.ticks(t, key)
	late := int(time.Since(began)/time.Second) + 32 // those that were not missed
	if jobs < 1000 || jobs > 1000+late || len(ticks) < 2000 || !strings.HasSuffix(ticks[len(ticks)-1].Reason, "nor any before it") {
		t.Errorf("%d jobs, %d ticks, the first %+v", jobs, len(ticks), ticks[len(ticks)-1])
	}
	h.Exec(t, "update jobs set status = 'COMPLETED', version = 1, snapshot = '{}'")
	if _, err := h.Schedules.DeleteOldTicks(t.Context(), uuid.Nil); err != nil {
		t.Fatal(err)
	}
	if n := len(h.ticks(t, key)); n != 1000 {
		t.Errorf("%d ticks are kept", n)
	}
}

func TestOverlapIsTheSchedulesChoice(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		policy        string
		jobs, cancels int
		reason        string
	}{{"allow", 1, 0, ""}, {"skip", 0, 0, "the job before has not ended"}, {"cancel", 1, 1, ""}} {
		t.Run(c.policy, func(t *testing.T) {
			t.Parallel()
			h := open(t)
			_, key := h.create(t, "a", fmt.Sprintf(`"cron": "* * * * * *", "overlap": %q`, c.policy))
			h.Ago(t, "a", 0)
			h.Once(t)
			first, _ := h.fire(t)
			h.Exec(t, "update schedules set next_at = last_at + interval '1 s'")
			h.Once(t)
			h.Exec(t, "select pg_sleep(greatest(0, extract(epoch from next_at - clock_timestamp()))) from schedules")
			second, _ := h.fire(t)
			ticks := h.ticks(t, key)
			if len(first.Jobs) != 1 || len(second.Jobs) != c.jobs || len(second.Cancels) != c.cancels {
				t.Fatalf("fires %+v, then %+v", first, second)
			}
			if len(ticks) != 2 || ticks[0].Reason != c.reason {
				t.Errorf("ticks %+v", ticks)
			}
			if c.cancels > 0 && (second.Cancels[0].JobID != first.Jobs[0].JobID || second.Cancels[0].Number != 1) {
				t.Errorf("cancels %+v", second.Cancels)
			}
		})
	}
}

// A job cannot have two commands at once, so the cancel waits for the answer to the other command.
func TestAnOldJobIsCancelledOnceItsOtherCommandIsAnswered(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status  jobstate.Status
		cancels int
	}{"it still waits": {jobstate.Scheduled, 1}, "it has ended": {jobstate.Completed, 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t)
			h.create(t, "a", `"cron": "* * * * * *", "overlap": "cancel"`)
			h.Ago(t, "a", 0)
			h.Once(t)
			first, _ := h.fire(t)
			old := first.Jobs[0].JobID
			at := time.Now().Add(time.Hour)
			if _, err := h.Commands.KeepReschedule(t.Context(), nil, apidb.Everyone, old, apibody.When{RunAt: &at}, "me"); err != nil {
				t.Fatal(err)
			}
			h.Exec(t, "update schedules set next_at = last_at + interval '1 s'")
			h.Once(t)
			h.Exec(t, "select pg_sleep(greatest(0, extract(epoch from next_at - clock_timestamp()))) from schedules")
			second, next := h.fire(t)
			if len(second.Jobs) == 0 || len(second.Cancels) != 0 || next > time.Second {
				t.Fatalf("with a command unanswered: %+v, again in %s", second, next)
			}
			h.Apply(t, apidbtest.Status(old, 2, c.status, apidbtest.Answered(1, true)))
			third, _ := h.fire(t)
			if len(third.Cancels) != c.cancels || c.cancels > 0 && (third.Cancels[0].JobID != old || third.Cancels[0].Number != 2) {
				t.Errorf("once it is answered: %+v", third.Cancels)
			}
			if n := apidbtest.One[int64](t, h, "select count(*) from schedule_cancels"); n != 0 {
				t.Errorf("%d cancels are still to be tried", n)
			}
		})
	}
}

func TestAJobThatIsRefusedWhenItIsDueIsRecorded(t *testing.T) {
	t.Parallel()
	h := open(t)
	_, key := h.create(t, "a", eachSecond)
	_, good := h.create(t, "b", eachSecond)
	h.Exec(t, `update schedules set job = '{"jobType": "GONE", "payload": 1}' where name = 'a'`)
	h.Ago(t, "a", 0)
	h.Ago(t, "b", 0)
	h.Once(t)
	fired, _ := h.fire(t)
	ticks := h.ticks(t, key)
	if len(fired.Jobs) != 1 || len(ticks) != 1 || !strings.Contains(ticks[0].Reason, "no worker has run it yet") {
		t.Errorf("fires %v, %+v", fired, ticks)
	}
	if ticks := h.ticks(t, good); len(ticks) != 1 || ticks[0].Outcome != "fired" {
		t.Errorf("the other one: %+v", ticks)
	}
}

func TestAScheduleThatCannotBeReadAnyMoreStops(t *testing.T) {
	t.Parallel()
	h := open(t)
	_, key := h.create(t, "a", eachSecond)
	h.Exec(t, "update schedules set time_zone = 'Mars/Olympus'")
	h.Ago(t, "a", 0)
	_, next := h.fire(t)
	if ticks := h.ticks(t, key); next != time.Minute || len(ticks) != 1 || !strings.Contains(ticks[0].Reason, "time zone") {
		t.Errorf("sleeps %s, %+v", next, ticks)
	}
}

func TestOrderedJobsOfAScheduleComeInOrder(t *testing.T) {
	t.Parallel()
	h := open(t)
	asked := apidbtest.Schedule(t, "a", eachSecond)
	asked.JobJSON = []byte(`{"jobType": "SIMULATION", "payload": {"steps": [{"type": "LOG", "message": "hi"}]}, "orderingKey": "k"}`)
	if _, err := h.Schedules.Create(t.Context(), nil, apidb.Everyone, asked); err != nil {
		t.Fatal(err)
	}
	h.Ago(t, "a", 3*time.Second)
	fired, _ := h.fire(t)
	for i, job := range fired.Jobs {
		if i > 0 && (job.OrderNumber <= fired.Jobs[i-1].OrderNumber || job.OrderAfter == nil || *job.OrderAfter != fired.Jobs[i-1].JobID) {
			t.Errorf("job %d: %+v", i, job)
		}
	}
	if len(fired.Jobs) < 4 {
		t.Errorf("fires %d", len(fired.Jobs))
	}
}

func TestAPauseSkipsAndIsRecorded(t *testing.T) {
	t.Parallel()
	h := open(t)
	_, key := h.create(t, "a", eachSecond)
	paused, err := h.Schedules.Pause(t.Context(), nil, apidb.Everyone, key, nil)
	if err != nil || !paused.Paused || paused.Upcoming(5) != nil {
		t.Fatalf("%+v, %v", paused, err)
	}
	began := time.Now()
	h.Ago(t, "a", 30*time.Second)
	if fired, next := h.fire(t); len(fired.Jobs) != 0 || next != time.Minute {
		t.Errorf("a paused one fires %v, sleeps %s", fired, next)
	}
	resumed, err := h.Schedules.Resume(t.Context(), nil, apidb.Everyone, key, nil)
	if err != nil || resumed.Paused || time.Until(*resumed.NextAt) > time.Second {
		t.Fatalf("%+v, %v", resumed, err)
	}
	again, err := h.Schedules.Resume(t.Context(), nil, apidb.Everyone, key, nil)
	if err != nil || !again.NextAt.Equal(*resumed.NextAt) {
		t.Errorf("resumed again %+v, %v", again, err)
	}
	most := 32 + int(time.Since(began)/time.Second)
	ticks := h.ticks(t, key)
	if n := len(ticks); n < 30 || n > most || outcomes(ticks, "skipped") != n || ticks[0].Reason != "the schedule was paused" {
		t.Errorf("ticks %+v", ticks)
	}
	if !ticks[0].At.Before(*resumed.NextAt) || ticks[0].At.Before(resumed.NextAt.Add(-time.Second)) {
		t.Errorf("the last tick of the pause is %s, the next %s", ticks[0].At, resumed.NextAt)
	}
}

func TestRunNowIsAManualTick(t *testing.T) {
	t.Parallel()
	h := open(t)
	_, key := h.create(t, "a", `"cron": "0 0 1 1 *", "paused": true, "overlap": "skip"`)
	for range 2 {
		if _, _, err := h.Schedules.Run(t.Context(), nil, apidb.Everyone, key, nil, apidbtest.ScheduleRules); err != nil {
			t.Fatal(err)
		}
	}
	ticks := h.ticks(t, key)
	if len(ticks) != 2 || ticks[0].Reason != "manual" || ticks[0].JobID == nil || *ticks[0].JobID == *ticks[1].JobID {
		t.Errorf("ticks %+v", ticks)
	}
	if row, err := h.Schedules.Get(t.Context(), apidb.Everyone, key); err != nil || *row.LastJobID != *ticks[0].JobID || !row.LastAt.Equal(ticks[0].At) {
		t.Errorf("%+v, %v", row, err)
	}
}

func TestNamesBelongToOwners(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.create(t, "a", eachSecond)
	if _, err := h.Schedules.Create(t.Context(), nil, apidb.Everyone, apidbtest.Schedule(t, "a", eachSecond)); !errors.Is(err, schedulestore.ErrExists) {
		t.Errorf("the same name: %v", err)
	}
	acme := apidbtest.Schedule(t, "a", eachSecond)
	acme.Job.OwnerID = "acme"
	if _, err := h.Schedules.Create(t.Context(), nil, apidb.Everyone, acme); err != nil {
		t.Fatal(err)
	}
	if row, err := h.Schedules.Get(t.Context(), apidb.Everyone, apidb.Key{Name: "a"}); err != nil || row.OwnerID != "" {
		t.Errorf("nobody's: %+v, %v", row, err)
	}
	owner := "acme"
	key := apidb.Key{Name: "a", OwnerID: &owner}
	if row, err := h.Schedules.Get(t.Context(), apidb.Everyone, key); err != nil || row.OwnerID != "acme" {
		t.Errorf("%+v, %v", row, err)
	}
	first, more, err := h.Schedules.List(t.Context(), apidb.Everyone, schedulestore.Filter{Limit: 1})
	if err != nil || len(first) != 1 || !more || first[0].OwnerID != "" {
		t.Errorf("the first page %+v, %t, %v", first, more, err)
	}
	rest, more, err := h.Schedules.List(t.Context(), apidb.Everyone, schedulestore.Filter{
		Limit: 5, After: apidb.Key{Name: first[0].Name, OwnerID: &first[0].OwnerID},
	})
	if err != nil || len(rest) != 1 || more || rest[0].OwnerID != "acme" {
		t.Errorf("the next page %+v, %t, %v", rest, more, err)
	}
	if err := h.Schedules.Delete(t.Context(), nil, apidb.Everyone, key, nil); err != nil {
		t.Fatal(err)
	}
	if err := h.Schedules.Delete(t.Context(), nil, apidb.Everyone, key, nil); !errors.Is(err, schedulestore.ErrNone) {
		t.Errorf("deleted twice: %v", err)
	}
	for _, acme.Job.OwnerID = range []string{"x", "y"} {
		acme.Name = "b"
		if _, err := h.Schedules.Create(t.Context(), nil, apidb.Everyone, acme); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.Schedules.Get(t.Context(), apidb.Everyone, apidb.Key{Name: "b"}); !errors.Is(err, schedulestore.ErrSeveralOwners) {
		t.Errorf("of two owners: %v", err)
	}
}

func TestPutReplacesAndKeepsWhatHasBeen(t *testing.T) {
	t.Parallel()
	h := open(t)
	first, created, err := h.Schedules.Put(t.Context(), nil, apidb.Everyone, apidbtest.Schedule(t, "a", `"cron": "@every 10m"`), nil)
	if err != nil || !created {
		t.Fatal(created, err)
	}
	key := apidb.Key{Name: "a"}
	if _, _, err := h.Schedules.Run(t.Context(), nil, apidb.Everyone, key, nil, apidbtest.ScheduleRules); err != nil {
		t.Fatal(err)
	}
	h.Exec(t, "update schedules set anchor_at = anchor_at - interval '5 min', next_at = next_at - interval '5 min'")
	again, created, err := h.Schedules.Put(t.Context(), nil, apidb.Everyone, apidbtest.Schedule(t, "a", `"cron": "@every 10m", "missed": "all"`), nil)
	if err != nil || created || again.ScheduleID != first.ScheduleID || again.LastJobID == nil {
		t.Fatalf("%+v, %t, %v", again, created, err)
	}
	if !again.NextAt.Equal(first.NextAt.Add(-5 * time.Minute)) {
		t.Errorf("@every began anew: %s, %s", again.NextAt, first.NextAt)
	}
	h.Exec(t, "update schedules set next_at = next_at - interval '1 hour', anchor_at = anchor_at - interval '1 hour'")
	if _, _, err := h.Schedules.Put(t.Context(), nil, apidb.Everyone, apidbtest.Schedule(t, "a", eachSecond), nil); err != nil {
		t.Fatal(err)
	}
	ticks := h.ticks(t, key)
	if len(ticks) != 7 || outcomes(ticks, "skipped") != 6 || !slices.ContainsFunc(ticks, func(tick schedulestore.Tick) bool {
		return tick.Reason == "the schedule was replaced"
	}) {
		t.Errorf("ticks %+v", ticks)
	}
}

func TestAScheduleBeginsAndEnds(t *testing.T) {
	t.Parallel()
	h := open(t)
	start := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	made, _ := h.create(t, "a", fmt.Sprintf(`"cron": "* * * * * *", "startAt": %q, "endAt": %q`,
		start.Format(time.RFC3339), start.Add(2*time.Second).Format(time.RFC3339)))
	want := []time.Time{start, start.Add(time.Second), start.Add(2 * time.Second)}
	if got := made.Upcoming(5); !slices.EqualFunc(got, want, time.Time.Equal) {
		t.Errorf("fires %v, want %v", got, want)
	}
	over, _ := h.create(t, "b", fmt.Sprintf(`"cron": "0 0 29 2 *", "endAt": %q`, start.Format(time.RFC3339)))
	if over.NextAt != nil {
		t.Errorf("fires at %s", over.NextAt)
	}
}
