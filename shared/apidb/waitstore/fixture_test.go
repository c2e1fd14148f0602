package waitstore_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/commandstore"
	"github.com/jobweaver/jobweaver/shared/apidb/waitstore"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const paid = "com.shop.paid"

type fixture struct{ *apidbtest.Fixture }

func open(t testing.TB) fixture {
	t.Helper()
	return fixture{apidbtest.New(t)}
}

// running makes a job of an owner whose first attempt runs.
func (f fixture) running(t testing.TB, owner string) uuid.UUID {
	t.Helper()
	job := apidbtest.NewJob()
	job.Request.OwnerID = owner
	f.Accept(t, job)
	f.become(t, job.JobID, jobstate.Running, 1)
	return job.JobID
}

// become publishes a status of a job, one version after the one before.
func (f fixture) become(t testing.TB, id uuid.UUID, status jobstate.Status, attempt int) {
	t.Helper()
	f.Apply(t, apidbtest.Status(id, f.ReadJob(t, id).Version+1, status, apidbtest.OfAttempt(attempt)))
}

// ask asks for waits in an attempt of a job.
func (f fixture) ask(t testing.TB, id uuid.UUID, attempt int, asked ...waitstore.Asked) []waitstore.Wait {
	t.Helper()
	_, waits, err := f.Waits.Ask(t.Context(), apidb.Everyone, id, attempt, asked)
	if err != nil {
		t.Fatal(err)
	}
	return waits
}

// call makes the job of a call.
func (f fixture) call(t testing.TB, parent uuid.UUID, name string, run int) uuid.UUID {
	t.Helper()
	job := apidbtest.NewJob()
	job.Request.OwnerID, job.Whose = "acme", apidb.OwnerOf("acme")
	job.EventSource, job.EventID = waitstore.ChildEvent(parent, name, run)
	return f.Accept(t, job).JobID
}

func forPaid(name, match string) waitstore.Asked {
	e := &waitstore.EventWait{Type: paid}
	if err := json.Unmarshal([]byte(match), &e.Match); err != nil {
		panic(err)
	}
	return waitstore.Asked{Name: name, Event: e, Sealed: match}
}

var events int

// send sends an event with its data, and returns how many jobs waited for it.
func (f fixture) send(t testing.TB, owner, data string) int {
	t.Helper()
	events++
	receipts, err := f.Waits.Keep(t.Context(), nil, []waitstore.Event{f.event(owner, fmt.Sprint("e-", events), data)})
	if err != nil {
		t.Fatal(err)
	}
	return receipts[0].Jobs
}

func (f fixture) event(owner, id, data string) waitstore.Event {
	return waitstore.Event{
		Number: f.NewID(), OwnerID: owner, Source: "/shop", ID: id, Type: paid, Subject: "order", Data: json.RawMessage(data),
		Sealed: json.RawMessage(fmt.Sprintf(`{"id":%q,"data":%s}`, id, data)),
	}
}

// look returns the commands that follow from what is done.
func (f fixture) look(t testing.TB) (commands []commandstore.Command, next time.Duration) {
	t.Helper()
	looked, next, err := f.Waits.Look(t.Context(), time.Minute)
	if err != nil || len(looked.Failed) > 0 {
		t.Fatal(err, looked.Failed)
	}
	return looked.Commands, next
}

func (f fixture) wantWoken(t testing.TB, ids ...uuid.UUID) {
	t.Helper()
	commands, _ := f.look(t)
	woken := map[uuid.UUID]bool{}
	for _, c := range commands {
		if c.Command != "reschedule" || woken[c.JobID] {
			t.Errorf("%s of job %s", c.Command, c.JobID)
		}
		woken[c.JobID] = true
	}
	if len(woken) != len(ids) {
		t.Errorf("%d jobs are woken, want %d", len(woken), len(ids))
	}
	for _, id := range ids {
		if !woken[id] {
			t.Errorf("job %s is not woken", id)
		}
	}
}
