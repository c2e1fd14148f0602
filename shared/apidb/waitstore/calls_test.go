package waitstore_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/commandstore"
	"github.com/jobweaver/jobweaver/shared/apidb/statusstore"
	"github.com/jobweaver/jobweaver/shared/apidb/waitstore"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

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

// No client has asked for the wake, so none would understand why it is in the way of another command.
func TestAWakeThatIsNotAnsweredYetGivesWayToEveryOtherCommand(t *testing.T) {
	t.Parallel()
	at := time.Now().Add(time.Hour).Truncate(time.Microsecond)
	for command, status := range map[string]jobstate.Status{
		"cancel": jobstate.Scheduled, "reschedule": jobstate.Scheduled, "retry": jobstate.Failed, "delete": jobstate.Failed,
	} {
		f := open(t)
		id := f.running(t, "acme")
		f.ask(t, id, 1, waitstore.Asked{Name: "child"})
		child := f.call(t, id, "child", 1)
		f.become(t, id, jobstate.Scheduled, 1)
		f.become(t, child, jobstate.Completed, 1)
		f.wantWoken(t, id)
		f.become(t, id, status, 1)
		var kept commandstore.Command
		var err error
		for range 2 { // the second time it is the same command
			if command == "reschedule" {
				kept, err = f.Commands.KeepReschedule(t.Context(), nil, apidb.Everyone, id, apibody.When{RunAt: &at}, "me")
			} else {
				kept, err = f.Commands.KeepCommand(t.Context(), nil, apidb.Everyone, id, command, "me")
			}
			if err != nil || kept.Number != 2 || kept.By != "me" {
				t.Fatalf("%s: %+v, %v", command, kept, err)
			}
		}
		f.Exec(t, "update waits set look_at = now() where job_id = $1 and look_at is not null", id)
		if commands, _ := f.look(t); len(commands) != 0 {
			t.Errorf("the wake replaces the %s: %+v", command, commands)
		}
		f.Apply(t, apidbtest.Status(id, 10, status, apidbtest.OfAttempt(1), apidbtest.Answered(1, false)))
		stored := "select count(*) from commands where job_id = $1 and command = $2 and by_whom = 'me' and number = 2"
		if n := apidbtest.One[int](t, f, stored, id, command); n != 1 {
			t.Errorf("the answer to the wake ends the %s", command)
		}
		f.Apply(t, apidbtest.Status(id, 11, status, apidbtest.OfAttempt(1), apidbtest.Answered(2, true)))
		if n := apidbtest.One[int](t, f, stored, id, command); n != 0 {
			t.Errorf("the %s is not answered", command)
		}
	}
}

func TestTheEndOfAParentCancelsAChildThatIsBeingWoken(t *testing.T) {
	t.Parallel()
	f := open(t)
	id := f.running(t, "acme")
	f.ask(t, id, 1, waitstore.Asked{Name: "child"})
	child := f.call(t, id, "child", 1)
	f.become(t, child, jobstate.Running, 1)
	f.ask(t, child, 1, waitstore.Asked{Name: "grandchild"})
	grandchild := f.call(t, child, "grandchild", 1)
	f.become(t, id, jobstate.Scheduled, 1)
	f.become(t, child, jobstate.Scheduled, 1)
	f.become(t, grandchild, jobstate.Completed, 1)
	f.wantWoken(t, child)
	f.become(t, id, jobstate.Cancelled, 1)
	commands, _ := f.look(t)
	if len(commands) != 1 || commands[0].JobID != child || commands[0].Command != "cancel" || commands[0].Number != 2 {
		t.Errorf("%+v", commands)
	}
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
