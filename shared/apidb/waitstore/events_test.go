package waitstore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/waitstore"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

func TestAnEventWakesTheJobsThatWaitForIt(t *testing.T) {
	t.Parallel()
	f := open(t)
	id, other, foreign := f.running(t, ""), f.running(t, ""), f.running(t, "acme")
	for _, job := range []uuid.UUID{id, foreign} {
		if w := f.ask(t, job, 1, forPaid("paid", `{"order.id": "17"}`))[0]; w.Status != waitstore.Open {
			t.Fatalf("%+v", w)
		}
	}
	f.ask(t, other, 1, forPaid("paid", `{"order.id": "18"}`))
	for _, job := range []uuid.UUID{id, other, foreign} {
		f.become(t, job, jobstate.Scheduled, 1)
	}
	if n := f.send(t, "", `{"order": {"id": "17"}, "cents": 900}`); n != 1 {
		t.Errorf("%d jobs waited", n)
	}
	f.wantWoken(t, id)
	f.wantWoken(t)
	w := f.ask(t, id, 2, forPaid("paid", `{"order.id": "17"}`))[0]
	got, err := f.Waits.Events(t.Context(), []waitstore.Wait{w})
	if w.Status != waitstore.Done || err != nil || string(got[w.EventNumber]) == "" {
		t.Errorf("%+v, %s, %v", w, got[w.EventNumber], err)
	}
}

func TestAnEventThatCameBeforeIsThere(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.send(t, "", `{"order": "16"}`)
	f.send(t, "", `{"order": "17", "n": 1}`)
	f.send(t, "", `{"order": "17", "n": 2}`)
	id := f.running(t, "")
	waits := f.ask(t, id, 1, forPaid("first", `{"order": "17"}`), forPaid("second", `{"order": "17"}`), forPaid("third", `{"order": "17"}`), forPaid("any", `{}`))
	all, err := f.Waits.Events(t.Context(), waits)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{`{"order": "17", "n": 1}`, `{"order": "17", "n": 2}`, "", `{"order": "16"}`} {
		var got struct{ Data json.RawMessage }
		if raw := all[waits[i].EventNumber]; raw != nil {
			_ = json.Unmarshal(raw, &got)
		}
		if string(got.Data) != want {
			t.Errorf("%s has %s, want %s", waits[i].Name, got.Data, want)
		}
	}
	again := f.ask(t, id, 2, forPaid("first", `{"order": "17"}`))[0]
	if again.EventNumber != waits[0].EventNumber {
		t.Errorf("in the next attempt it has another event: %+v", again)
	}
	if commands, _ := f.look(t); len(commands) != 0 {
		t.Errorf("a job that has its answer is woken: %+v", commands)
	}
}

// The settle of the attempt and the event may cross.
func TestAnEventThatComesBeforeTheJobIsScheduledWakesItThen(t *testing.T) {
	t.Parallel()
	f := open(t)
	id := f.running(t, "")
	f.ask(t, id, 1, forPaid("paid", `{}`))
	f.send(t, "", `{}`)
	f.wantWoken(t)
	f.become(t, id, jobstate.Scheduled, 1)
	f.wantWoken(t, id)
	f.wantWoken(t)
}

func TestAJobThatRunsAgainAnywayIsNotWoken(t *testing.T) {
	t.Parallel()
	for _, to := range []struct {
		status  jobstate.Status
		attempt int
	}{{jobstate.Retrying, 1}, {jobstate.Pending, 1}, {jobstate.Queued, 2}, {jobstate.Running, 2}} {
		f := open(t)
		id := f.running(t, "")
		f.ask(t, id, 1, forPaid("paid", `{}`))
		f.become(t, id, to.status, to.attempt)
		f.send(t, "", `{}`)
		f.wantWoken(t)
		if _, next := f.look(t); next < 30*time.Second {
			t.Errorf("%s: it is looked at again in %v", to.status, next)
		}
	}
}

func TestACommandThatIsNotAnsweredDelaysTheWake(t *testing.T) {
	t.Parallel()
	f := open(t)
	id := f.running(t, "")
	f.ask(t, id, 1, forPaid("paid", `{}`))
	f.become(t, id, jobstate.Scheduled, 1)
	if _, err := f.Commands.KeepCommand(t.Context(), nil, apidb.Everyone, id, "cancel", "test"); err != nil {
		t.Fatal(err)
	}
	f.send(t, "", `{}`)
	f.wantWoken(t)
	if _, next := f.look(t); next > 2*time.Second {
		t.Errorf("it is looked at again in %v", next)
	}
}

func TestAWaitTimesOutOnce(t *testing.T) {
	t.Parallel()
	f := open(t)
	id := f.running(t, "")
	asked := forPaid("paid", `{}`)
	asked.Timeout = time.Hour
	if w := f.ask(t, id, 1, asked)[0]; w.Until == nil || time.Until(*w.Until) < 59*time.Minute {
		t.Fatalf("%+v", w)
	}
	f.become(t, id, jobstate.Scheduled, 1)
	f.wantWoken(t)
	f.Exec(t, "update waits set until_at = now() - interval '1 s', look_at = now() - interval '1 s'")
	f.wantWoken(t, id)
	f.send(t, "", `{}`)
	f.wantWoken(t)
	if w := f.ask(t, id, 2, asked)[0]; w.Status != waitstore.TimedOut {
		t.Errorf("%+v", w)
	}
}

func TestARepeatedEventChangesNothing(t *testing.T) {
	t.Parallel()
	f := open(t)
	send := func(owner, data string) waitstore.Receipt {
		receipts, err := f.Waits.Keep(t.Context(), nil, []waitstore.Event{f.event(owner, "same", data)})
		if err != nil {
			t.Fatal(err)
		}
		return receipts[0]
	}
	if h := send("", `{"n": 1}`); h.Replayed {
		t.Errorf("%+v", h)
	}
	id := f.running(t, "")
	f.ask(t, id, 1, forPaid("paid", `{"n": 2}`))
	if h := send("", `{"n": 2}`); !h.Replayed || h.Jobs != 0 {
		t.Errorf("%+v", h)
	}
	if h := send("acme", `{"n": 2}`); h.Replayed {
		t.Errorf("of another owner: %+v", h)
	}
}

// An event and a wait that arrive at once meet, whichever is first.
func TestNoEventIsMissed(t *testing.T) {
	t.Parallel()
	f := open(t)
	var ids []uuid.UUID
	for range 40 {
		ids = append(ids, f.running(t, ""))
	}
	var all sync.WaitGroup
	for i, id := range ids {
		match := fmt.Sprintf(`{"n": %d}`, i)
		all.Go(func() {
			if _, _, err := f.Waits.Ask(t.Context(), apidb.Everyone, id, 1, []waitstore.Asked{forPaid("paid", match)}); err != nil {
				t.Error(err)
			}
		})
		e := f.event("", fmt.Sprint(i), match)
		all.Go(func() {
			if _, err := f.Waits.Keep(t.Context(), nil, []waitstore.Event{e}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := apidbtest.One[int](t, f, "select count(*) from waits where status = 'DONE' and event_number is not null"); n != len(ids) {
		t.Errorf("%d of %d waits have their event", n, len(ids))
	}
}

func TestWaitsOfAJobThatHasEndedAreRefused(t *testing.T) {
	t.Parallel()
	f := open(t)
	id := f.running(t, "acme")
	for _, owner := range []apidb.Owner{apidb.OwnerOf(""), apidb.OwnerOf("other")} {
		if _, _, err := f.Waits.Ask(t.Context(), owner, id, 1, []waitstore.Asked{forPaid("paid", `{}`)}); !errors.Is(err, apidb.ErrNoJob) {
			t.Errorf("%v of %+v", err, owner)
		}
	}
	f.become(t, id, jobstate.Cancelled, 1)
	if _, _, err := f.Waits.Ask(t.Context(), apidb.Everyone, id, 1, []waitstore.Asked{forPaid("paid", `{}`)}); !errors.Is(err, waitstore.ErrOver) {
		t.Error(err)
	}
}

func TestAJobHasSoManyWaits(t *testing.T) {
	t.Parallel()
	f := open(t)
	id := f.running(t, "")
	var asked []waitstore.Asked
	for i := range waitstore.MostOfJob + 1 {
		asked = append(asked, forPaid(fmt.Sprint(i), `{}`))
	}
	if waits := f.ask(t, id, 1, asked[1:]...); len(waits) != waitstore.MostOfJob {
		t.Errorf("%d waits", len(waits))
	}
	if _, _, err := f.Waits.Ask(t.Context(), apidb.Everyone, id, 1, asked[:1]); !errors.Is(err, waitstore.ErrFull) {
		t.Error(err)
	}
}

func TestWaitsGoWithTheirJobAndEventsWhenNoJobHasThem(t *testing.T) {
	t.Parallel()
	f := open(t)
	id := f.running(t, "")
	f.send(t, "", `{"n": 1}`)
	f.send(t, "", `{"n": 2}`)
	f.ask(t, id, 1, forPaid("paid", `{"n": 1}`))
	expire := func(age time.Duration) int64 {
		walked, err := f.Waits.Expire(t.Context(), time.Now().Add(time.Hour), age, uuid.Nil, 100)
		if err != nil {
			t.Fatal(err)
		}
		return walked.Gone
	}
	if n := expire(2 * time.Hour); n != 0 {
		t.Errorf("%d young events are gone", n)
	}
	if n := expire(time.Minute); n != 1 {
		t.Errorf("%d events are gone, want the one that no job has", n)
	}
	f.Exec(t, "delete from jobs where job_id = $1", id)
	if n := apidbtest.One[int](t, f, "select count(*) from waits"); n != 0 {
		t.Errorf("%d waits are left", n)
	}
	if n := expire(time.Minute); n != 1 {
		t.Errorf("%d events are gone", n)
	}
}

func TestAWaitMatchesWhatItNames(t *testing.T) {
	t.Parallel()
	f := open(t)
	data := `{"id": "A-17", "n": 7, "big": 12345678901234567890, "yes": true, "none": null, "order": {"id": {"x": 1.50}, "a.b": 2}, "list": [1], "": 3}`
	for match, want := range map[string]bool{
		`{}`: true, `{"id": "A-17"}`: true, `{"id": "A-18"}`: false, `{"n": 7}`: true, `{"n": 7.0}`: true, `{"n": "7"}`: false,
		`{"big": 12345678901234567890}`: true, `{"yes": true}`: true, `{"yes": false}`: false, `{"none": null}`: true,
		`{"missing": null}`: false, `{"order.id.x": 1.5}`: true, `{"order.a.b": 2}`: true, `{"order": 2}`: false, `{"list": 1}`: false,
		`{"id": "A-17", "n": 7}`: true, `{"id": "A-17", "n": 8}`: false,
	} {
		for _, before := range []bool{true, false} {
			id := f.running(t, match) // an owner for each
			if before {
				f.send(t, match, data)
			}
			got := f.ask(t, id, 1, forPaid("paid", match))[0].Status == waitstore.Done
			if !before {
				got = f.send(t, match, data) == 1
			}
			if got != want {
				t.Errorf("%s, event first %v: matches is %v", match, before, got)
			}
			f.Exec(t, "delete from waits; delete from events")
		}
	}
	named := forPaid("paid", `{}`)
	for _, c := range []struct {
		source, subject string
		want            bool
	}{{"/shop", "", true}, {"/other", "", false}, {"", "order", true}, {"", "else", false}, {"/shop", "order", true}} {
		named.Event.Source, named.Event.Subject = c.source, c.subject
		id := f.running(t, "")
		f.ask(t, id, 1, named)
		if got := f.send(t, "", `{}`) > 0; got != c.want {
			t.Errorf("%+v matches: %v", c, got)
		}
		f.Exec(t, "delete from waits; delete from events")
	}
}

// The code of a handler may change between two attempts.
func TestAWaitThatIsAskedForAnewMatchesWhatItNamesNow(t *testing.T) {
	t.Parallel()
	f := open(t)
	id := f.running(t, "acme")
	f.ask(t, id, 1, forPaid("paid", `{"order": 1}`), waitstore.Asked{Name: "call"})
	f.become(t, id, jobstate.Failed, 1)
	f.look(t)
	f.become(t, id, jobstate.Pending, 1)
	f.become(t, id, jobstate.Running, 2)
	f.ask(t, id, 2, forPaid("paid", `{"order": 2}`), forPaid("call", `{"order": 3}`))
	f.become(t, id, jobstate.Scheduled, 2)
	for data, want := range map[string]int{`{"order": 1}`: 0, `{"order": 2}`: 1, `{"order": 3}`: 1} {
		if n := f.send(t, "acme", data); n != want {
			t.Errorf("%d jobs wait for %s", n, data)
		}
	}
	f.wantWoken(t, id)
}

// Cron sleeps until something is to be looked at.
func TestCronIsWoken(t *testing.T) {
	t.Parallel()
	f := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	woken := make(chan struct{}, 100)
	go func() { _ = f.Schedules.Listen(ctx, func() { woken <- struct{}{} }) }()
	<-woken // it listens
	want := func(what string) {
		t.Helper()
		select {
		case <-woken:
		case <-time.After(20 * time.Second):
			t.Errorf("%s wakes nothing", what)
		}
	}
	id := f.running(t, "acme")
	f.ask(t, id, 1, forPaid("paid", `{}`), waitstore.Asked{Name: "call"})
	child := f.call(t, id, "call", 1)
	f.send(t, "acme", `{}`)
	want("an event")
	f.become(t, id, jobstate.Scheduled, 1)
	want("a job that becomes SCHEDULED")
	f.become(t, child, jobstate.Failed, 1)
	want("the end of a child")
	f.become(t, id, jobstate.Cancelled, 1)
	want("the end of a parent")
}

// A scheduler that was restored to a moment before the wake does not know of it.
func TestAJobThatDoesNotRunIsWokenAgain(t *testing.T) {
	t.Parallel()
	f := open(t)
	id := f.running(t, "")
	f.ask(t, id, 1, forPaid("paid", `{}`))
	f.become(t, id, jobstate.Scheduled, 1)
	f.send(t, "", `{}`)
	f.wantWoken(t, id)
	f.Exec(t, "delete from commands")
	f.wantWoken(t)
	f.Exec(t, "update waits set look_at = look_at - interval '10 minutes'")
	f.wantWoken(t, id)
	f.ask(t, id, 2, forPaid("paid", `{}`))
	f.Exec(t, "update waits set look_at = look_at - interval '10 minutes'")
	f.wantWoken(t)
}
