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
	"github.com/jobweaver/jobweaver/shared/apidb/statusstore"
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

func TestTheEndOfAChildWakesItsParent(t *testing.T) {
	t.Parallel()
	f := open(t)
	id := f.running(t, "acme")
	call := waitstore.Asked{Name: "pack: 1"}
	if w := f.ask(t, id, 1, call)[0]; w.Child != nil || w.Run != 1 || w.Status != waitstore.Open {
		t.Fatalf("%+v", w)
	}
	child := f.call(t, id, "pack: 1", 1)
	if again := f.call(t, id, "pack: 1", 1); again != child {
		t.Error("a repeated call is another job")
	}
	f.become(t, id, jobstate.Scheduled, 1)
	f.become(t, child, jobstate.Running, 1)
	f.wantWoken(t)
	f.become(t, child, jobstate.Completed, 1)
	f.wantWoken(t, id)
	w := f.ask(t, id, 2, call)[0]
	if w.Status != waitstore.Done || w.Child == nil || w.Child.JobID != child || w.Child.Status != jobstate.Completed {
		t.Errorf("%+v", w)
	}
	if job := f.ReadJob(t, child); job.Parent == nil || *job.Parent != id || !f.ReadJob(t, id).Waits {
		t.Errorf("the parent is %v", job.Parent)
	}
	for _, what := range []string{"is there", "is deleted"} {
		listed, err := f.Waits.OfJob(t.Context(), waitstore.Parent{JobID: id, OwnerID: "acme"})
		if err != nil || len(listed) != 1 || listed[0].Child == nil || listed[0].Child.JobType != "SIMULATION" {
			t.Errorf("%s: %+v, %v", what, listed, err)
		}
		ends, err := f.Waits.ChildEnds(t.Context(), id, []string{call.Name})
		if end := ends[call.Name]; err != nil || end.JobID != child || end.Snapshot.Status != string(jobstate.Completed) {
			t.Errorf("%s: %+v, %v", what, ends, err)
		}
		if w := f.ask(t, id, 2, call)[0]; w.Status != waitstore.Done || w.Child == nil || w.Child.JobID != child {
			t.Errorf("%s: %+v", what, w)
		}
		f.Exec(t, "delete from jobs where job_id = $1", child)
	}
}

// call makes the job of a call.
func (f fixture) call(t testing.TB, parent uuid.UUID, name string, run int) uuid.UUID {
	t.Helper()
	job := apidbtest.NewJob()
	job.Request.OwnerID, job.Whose = "acme", apidb.OwnerOf("acme")
	job.EventSource, job.EventID = waitstore.ChildEvent(parent, name, run)
	return f.Accept(t, job).JobID
}

func TestAGroupWakesItsJobTogether(t *testing.T) {
	t.Parallel()
	f := open(t)
	id := f.running(t, "acme")
	calls := []waitstore.Asked{{Name: "a", Group: "all"}, {Name: "b", Group: "all"}}
	f.ask(t, id, 1, calls...)
	a, b := f.call(t, id, "a", 1), f.call(t, id, "b", 1)
	f.become(t, id, jobstate.Scheduled, 1)
	f.become(t, a, jobstate.Failed, 1)
	f.wantWoken(t)
	f.become(t, b, jobstate.Completed, 1)
	f.wantWoken(t, id)
	waits := f.ask(t, id, 2, calls...)
	if waits[0].Child.Status != jobstate.Failed || waits[1].Child.Status != jobstate.Completed {
		t.Errorf("%+v", waits)
	}
}

func TestTheEndOfAParentCancelsItsChildrenAndItsRetryCallsAgain(t *testing.T) {
	t.Parallel()
	f := open(t)
	id := f.running(t, "acme")
	calls := []waitstore.Asked{{Name: "runs"}, {Name: "failed"}, {Name: "completed"}, forPaid("paid", `{}`)}
	f.ask(t, id, 1, calls...)
	runs, failed, completed := f.call(t, id, "runs", 1), f.call(t, id, "failed", 1), f.call(t, id, "completed", 1)
	f.become(t, runs, jobstate.Running, 1)
	f.become(t, failed, jobstate.Failed, 1)
	f.become(t, completed, jobstate.Completed, 1)
	f.become(t, id, jobstate.Cancelled, 1)
	commands, _ := f.look(t)
	if len(commands) != 1 || commands[0].JobID != runs || commands[0].Command != "cancel" {
		t.Fatalf("%+v", commands)
	}
	f.Exec(t, "update waits set look_at = now() where look_at is not null")
	if commands, next := f.look(t); len(commands) != 0 || next < 30*time.Second {
		t.Errorf("a child that is being cancelled: %+v, again in %v", commands, next)
	}
	f.become(t, runs, jobstate.Cancelled, 1)
	f.Exec(t, "delete from jobs where job_id = any ($1)", []uuid.UUID{failed, completed})
	if n := f.send(t, "acme", `{}`); n != 0 {
		t.Errorf("the ended job waits still: %d", n)
	}
	f.become(t, id, jobstate.Pending, 1) // by a retry
	f.become(t, id, jobstate.Running, 2)
	waits := f.ask(t, id, 2, calls...)
	for i, want := range []struct {
		status waitstore.Status
		run    int
		child  bool
	}{{waitstore.Open, 2, false}, {waitstore.Open, 2, false}, {waitstore.Done, 1, true}, {waitstore.Done, 0, false}} {
		if w := waits[i]; w.Status != want.status || w.Run != want.run || (w.Child != nil) != want.child {
			t.Errorf("%s: %+v", w.Name, w)
		}
	}
	again := f.call(t, id, "runs", 2)
	f.become(t, id, jobstate.Scheduled, 2)
	f.wantWoken(t)
	f.become(t, again, jobstate.Completed, 1)
	f.wantWoken(t, id)
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

func TestAChildThatIsRetriedIsWaitedForAgain(t *testing.T) {
	t.Parallel()
	f := open(t)
	id := f.running(t, "acme")
	calls := []waitstore.Asked{{Name: "a", Group: "all"}, {Name: "b", Group: "all"}}
	f.ask(t, id, 1, calls...)
	a, b := f.call(t, id, "a", 1), f.call(t, id, "b", 1)
	f.become(t, id, jobstate.Scheduled, 1)
	f.become(t, a, jobstate.Failed, 1)
	f.become(t, a, jobstate.Pending, 1) // by a retry
	f.become(t, a, jobstate.Running, 2)
	f.become(t, b, jobstate.Completed, 1)
	f.wantWoken(t, id)
	f.Exec(t, "delete from commands") // it is answered
	f.become(t, id, jobstate.Running, 2)
	if waits := f.ask(t, id, 2, calls...); waits[0].Status != waitstore.Open || waits[1].Status != waitstore.Done {
		t.Fatalf("%+v", waits)
	}
	f.become(t, id, jobstate.Scheduled, 2)
	f.wantWoken(t)
	f.become(t, a, jobstate.Completed, 2)
	f.wantWoken(t, id)
}

// A person retries a failed job at once.
func TestAParentThatIsRetriedBeforeCronHasLooked(t *testing.T) {
	t.Parallel()
	f := open(t)
	id := f.running(t, "acme")
	calls := []waitstore.Asked{{Name: "failed"}, {Name: "runs"}, {Name: "completed"}}
	f.ask(t, id, 1, calls...)
	failed, runs, completed := f.call(t, id, "failed", 1), f.call(t, id, "runs", 1), f.call(t, id, "completed", 1)
	f.become(t, failed, jobstate.Failed, 1)
	f.become(t, runs, jobstate.Running, 1)
	f.become(t, completed, jobstate.Completed, 1)
	f.become(t, id, jobstate.Failed, 1)
	f.become(t, id, jobstate.Pending, 1) // by a retry
	f.wantWoken(t)
	f.become(t, id, jobstate.Failed, 1)
	f.become(t, id, jobstate.Pending, 1)
	f.become(t, id, jobstate.Running, 2)
	waits := f.ask(t, id, 2, calls...)
	for i, want := range []struct {
		status waitstore.Status
		run    int
	}{{waitstore.Open, 2}, {waitstore.Open, 1}, {waitstore.Done, 1}} {
		if w := waits[i]; w.Status != want.status || w.Run != want.run {
			t.Errorf("%s: %+v", w.Name, w)
		}
	}
	f.call(t, id, "failed", 2)
	f.become(t, id, jobstate.Scheduled, 2)
	f.wantWoken(t)
	f.become(t, runs, jobstate.Completed, 1)
	f.wantWoken(t, id)
}

// A job of a group may be refused, so that nothing ever ends its wait.
func TestAGroupOfTheLatestAttemptWakesItsJob(t *testing.T) {
	t.Parallel()
	f := open(t)
	id := f.running(t, "acme")
	f.ask(t, id, 1, waitstore.Asked{Name: "refused", Group: "all"})
	f.become(t, id, jobstate.Running, 2)
	f.ask(t, id, 2, waitstore.Asked{Name: "a", Group: "all"}, waitstore.Asked{Name: "b", Group: "all"})
	a, b := f.call(t, id, "a", 1), f.call(t, id, "b", 1)
	f.become(t, id, jobstate.Scheduled, 2)
	f.become(t, a, jobstate.Completed, 1)
	f.wantWoken(t)
	f.become(t, b, jobstate.Completed, 1)
	f.wantWoken(t, id)
}

func TestTheEndOfAParentCancelsManyChildrenInParts(t *testing.T) {
	t.Parallel()
	f := open(t)
	id := f.running(t, "acme")
	var calls []waitstore.Asked
	for i := range 230 {
		calls = append(calls, waitstore.Asked{Name: fmt.Sprint(i), Group: "all"})
	}
	f.ask(t, id, 1, calls...)
	for i := range calls {
		f.call(t, id, fmt.Sprint(i), 1)
	}
	f.become(t, id, jobstate.Cancelled, 1)
	cancelled := map[uuid.UUID]bool{}
	for pass, want := range []int{100, 200, 230, 230} {
		commands, _ := f.look(t)
		for _, c := range commands {
			cancelled[c.JobID] = true
		}
		if len(cancelled) != want {
			t.Errorf("after pass %d %d children are cancelled, want %d", pass, len(cancelled), want)
		}
		f.Exec(t, "update waits set look_at = now() where look_at is not null")
	}
}

// Only some of many children are being cancelled when a person retries their parent.
func TestAParentThatIsRetriedKeepsTheChildrenThatRunOn(t *testing.T) {
	t.Parallel()
	f := open(t)
	id := f.running(t, "acme")
	var calls []waitstore.Asked
	for i := range 130 {
		calls = append(calls, waitstore.Asked{Name: fmt.Sprint(i), Group: "all"})
	}
	f.ask(t, id, 1, calls...)
	for i := range calls {
		f.call(t, id, fmt.Sprint(i), 1)
	}
	f.become(t, id, jobstate.Cancelled, 1)
	cancelled := map[uuid.UUID]bool{}
	commands, _ := f.look(t)
	for _, c := range commands {
		cancelled[c.JobID] = true
	}
	f.become(t, id, jobstate.Pending, 1)
	f.become(t, id, jobstate.Running, 2)
	kept := 0
	for _, w := range f.ask(t, id, 2, calls...) {
		switch {
		case w.Child == nil && w.Run == 2:
		case w.Child != nil && w.Run == 1 && !cancelled[w.Child.JobID]:
			kept++
		default:
			t.Errorf("%+v", w)
		}
	}
	if len(cancelled)+kept != len(calls) || kept == 0 {
		t.Errorf("%d are being cancelled, %d run on", len(cancelled), kept)
	}
}

// Jobs end in the order of their ids, and the names of their waits have another.
func TestTheEndsOfChildrenAndQuestionsAboutThemDoNotLockEachOther(t *testing.T) {
	t.Parallel()
	f := open(t)
	id := f.running(t, "acme")
	var calls []waitstore.Asked
	for i := range 120 {
		calls = append(calls, waitstore.Asked{Name: fmt.Sprint("pack ", 900-i), Group: "all"})
	}
	f.ask(t, id, 1, calls...)
	children := make([]uuid.UUID, len(calls))
	for i, call := range calls {
		children[i] = f.call(t, id, call.Name, 1)
	}
	var all sync.WaitGroup
	ended := make(chan struct{})
	all.Go(func() {
		defer close(ended)
		for version := range int64(40) { // as if they were retried and ended again
			var ends []statusstore.PublishedStatus
			for _, child := range children {
				ends = append(ends, apidbtest.Status(child, version+1, jobstate.Completed, apidbtest.OfAttempt(1)))
			}
			if _, err := f.Statuses.ApplyStatuses(t.Context(), ends); err != nil {
				t.Error(err)
			}
		}
	})
	all.Go(func() {
		for {
			select {
			case <-ended:
				return
			default:
				if _, _, err := f.Waits.Ask(t.Context(), apidb.Everyone, id, 1, calls); err != nil {
					t.Error(err)
				}
			}
		}
	})
	all.Wait()
	if n := apidbtest.One[int](t, f, "select deadlocks from pg_stat_database where datname = current_database()"); n != 0 {
		t.Errorf("%d deadlocks", n)
	}
}

// A gateway that has kept a wait stores its child even if the parent has ended meanwhile.
func TestAChildThatIsStoredAfterTheEndOfItsParentIsCancelled(t *testing.T) {
	t.Parallel()
	f := open(t)
	id := f.running(t, "acme")
	f.ask(t, id, 1, waitstore.Asked{Name: "a"})
	f.become(t, id, jobstate.Cancelled, 1)
	if commands, _ := f.look(t); len(commands) != 0 {
		t.Fatalf("%+v", commands)
	}
	child := f.call(t, id, "a", 1)
	f.Exec(t, "update waits set look_at = look_at - interval '1 minute'")
	if commands, _ := f.look(t); len(commands) != 1 || commands[0].JobID != child || commands[0].Command != "cancel" {
		t.Errorf("%+v", commands)
	}
}

func TestAParentAndItsChildMayEndTogether(t *testing.T) {
	t.Parallel()
	f := open(t)
	id := f.running(t, "acme")
	f.ask(t, id, 1, waitstore.Asked{Name: "a"})
	child := f.call(t, id, "a", 1)
	f.Apply(t,
		apidbtest.Status(id, 2, jobstate.Completed, apidbtest.OfAttempt(1)),
		apidbtest.Status(child, 1, jobstate.Completed, apidbtest.OfAttempt(1)))
	if commands, next := f.look(t); len(commands) != 0 || next < 30*time.Second {
		t.Errorf("%+v, again in %v", commands, next)
	}
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
