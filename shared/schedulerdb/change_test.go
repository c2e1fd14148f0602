package schedulerdb

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/retrypolicy"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/emit"
)

func (h fixture) change(job jobevent.Created, number int, change jobevent.Change) emit.Effects {
	h.Helper()
	effects, err := h.Command(h.Context(), []jobevent.Command{{
		JobID: job.JobID, Number: number, Command: jobevent.CommandChange, By: "tester", Change: &change,
	}})
	return h.must(effects, err)
}

// request has the columns of a row that hold the job's request.
type request struct {
	queue, payload, spec string
	rank                 time.Time
	expiresAt            *time.Time
}

// priorityOf is a change of the priority alone.
func priorityOf(n int) jobevent.Change {
	return jobevent.Change{Spec: fmt.Appendf(nil, `{"priority":%d}`, n)}
}

func (h fixture) request(job jobevent.Created) (a request) {
	h.Helper()
	if err := h.pool.QueryRow(h.Context(), `SELECT queue, payload::text, spec::text, rank, expires_at
		FROM all_jobs WHERE job_id = $1`, job.JobID).Scan(
		&a.queue, &a.payload, &a.spec, &a.rank, &a.expiresAt); err != nil {
		h.Fatal(err)
	}
	return a
}

func TestAPendingJobIsChangedOnce(t *testing.T) {
	h := newFixture(t)
	h.fillRoom()
	job := newJob()
	h.ingest(job)
	before, was := h.wantStatus(job, jobstate.Pending), h.request(job)
	expires := time.Now().Add(time.Hour).UTC().Truncate(time.Microsecond)
	effects := h.change(job, 1, jobevent.Change{
		Queue: "other", Payload: json.RawMessage(`{"b": 1, "a": "<"}`), ExpiresAt: &expires,
		Spec: json.RawMessage(`{"timeoutMs":77,"maxRetryCount":0,"retryPolicy":{"type":"fixed","delayMs":5},"priority":4}`),
	})
	const spec = `{"priority":4,"maxRetryCount":0,"timeoutMs":77,"retryPolicy":{"type":"fixed","delayMs":5}}`
	// A queue without a worker has room: the job goes out of its new queue in the same transaction.
	if len(effects.Runs) != 1 || effects.Runs[0].JobID != job.JobID || effects.Runs[0].Queue != "other" || string(effects.Runs[0].Spec) != spec ||
		string(effects.Runs[0].Payload) != `{"b": 1, "a": "<"}` || !effects.Runs[0].Rank.Equal(was.rank.Add(-40*time.Second)) {
		t.Fatalf("dispatched %+v", effects.Runs)
	}
	got := h.request(job)
	if got.queue != "other" || got.payload != `{"b": 1, "a": "<"}` || got.spec != spec || !got.expiresAt.Equal(expires) {
		t.Errorf("the row has %+v", got)
	}
	after := h.status(job)
	if answer := after.LastCommand; answer == nil || answer.Number != 1 || answer.Command != "change" || !answer.Applied || answer.Reason != "" ||
		after.Version != before.Version+2 {
		t.Errorf("it became %+v", after)
	}
	if move := after.History[len(after.History)-2]; move.By != "tester" || move.Reason != "change" || move.From != "PENDING" || move.To != "PENDING" {
		t.Errorf("the history has %+v", move)
	}
	h.change(job, 1, priorityOf(9))
	if h.request(job).spec != spec {
		t.Error("the same number changed it again")
	}
	h.settle(ended(job, 1, jobstate.KindFailed))
	h.wantStatus(job, jobstate.Failed) // it has no retries left
	if drift := h.drift(); !drift.Empty() {
		t.Errorf("the ledger differs by %+v", drift)
	}
}

func TestAnOmittedFieldOfAChangeLeavesTheValue(t *testing.T) {
	h := newFixture(t)
	h.fillRoom()
	expires := time.Now().Add(time.Hour).UTC().Truncate(time.Microsecond)
	job := newJob()
	job.ExpiresAt, job.RetryPolicy = &expires, &retrypolicy.Policy{Type: retrypolicy.Fixed, DelayMs: 5}
	h.ingest(job)
	was := h.request(job)
	h.change(job, 1, jobevent.Change{})
	got := h.request(job)
	if got.queue != was.queue || got.payload != was.payload || got.spec != was.spec || !got.rank.Equal(was.rank) || !got.expiresAt.Equal(expires) {
		t.Errorf("%+v became %+v", was, got)
	}
	h.change(job, 2, jobevent.Change{NeverExpires: true, Payload: json.RawMessage("null"), Spec: (&jobevent.Spec{}).Members(func(name string) bool { return name == "retryPolicy" })})
	if got = h.request(job); got.expiresAt != nil || got.payload != "null" || strings.Contains(got.spec, "retryPolicy") {
		t.Errorf("became %+v", got)
	}
}

func TestAChangeOfRunAtPutsAJobOffOrRunsItNow(t *testing.T) {
	h := newFixture(t)
	h.fillRoom()
	pending, scheduled := newJob(), scheduledJob(time.Hour)
	h.ingest(pending, scheduled)
	later := time.Now().Add(42 * time.Minute).UTC().Truncate(time.Microsecond)
	h.change(pending, 1, jobevent.Change{RunAt: &later})
	if s := h.wantStatus(pending, jobstate.Scheduled); !s.NextRunAt.Equal(later) {
		t.Errorf("it runs at %s", s.NextRunAt)
	}
	h.change(scheduled, 1, jobevent.Change{Spec: json.RawMessage(`{"priority":9}`), Queue: "other"})
	if s := h.wantStatus(scheduled, jobstate.Scheduled); s.NextRunAt.Before(later) {
		t.Errorf("it runs at %s", s.NextRunAt)
	}
	past := time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
	h.change(scheduled, 2, jobevent.Change{RunAt: &past})
	h.due()
	if s := h.wantStatus(scheduled, jobstate.Queued); s.Attempt != 1 {
		t.Errorf("it became %+v", s)
	}
}

func TestAChangeOfAStartedJobIsRefused(t *testing.T) {
	h := newFixture(t)
	queued, running, parked, done, snoozing := newJob(), newJob(), newJob(), newJob(), newJob()
	h.ingest(queued, running, parked, done, snoozing)
	h.settle(waiting(parked), completed(done, 1), snoozed(snoozing))
	h.start(running)
	for job, want := range map[*jobevent.Created]struct {
		state  jobstate.Status
		reason string
	}{
		&queued: {jobstate.Queued, "the job is QUEUED"}, &running: {jobstate.Running, "the job is RUNNING"},
		&parked: {jobstate.Waiting, "the job is WAITING"}, &done: {jobstate.Completed, "the job is COMPLETED"},
		&snoozing: {jobstate.Scheduled, "the job has started before"},
	} {
		was, runAt := h.request(*job), time.Now().Add(time.Hour)
		h.change(*job, 1, jobevent.Change{Queue: "other", Payload: json.RawMessage("1"), Spec: json.RawMessage(`{"priority":9}`), RunAt: &runAt})
		s := h.wantStatus(*job, want.state)
		if got := h.request(*job); s.LastCommand.Applied || s.LastCommand.Reason != want.reason || got.queue != was.queue || got.payload != was.payload || got.spec != was.spec {
			t.Errorf("%s: %+v, %+v", want.state, s.LastCommand, got)
		}
	}
}

func TestAChangeWithoutItsValuesOrBeyondTheirBoundsIsRefused(t *testing.T) {
	h := newFixture(t)
	h.fillRoom()
	job := newJob()
	h.ingest(job)
	for name, change := range map[string]*jobevent.Change{
		"without values":         nil,
		"a priority of 10":       {Spec: json.RawMessage(`{"priority":10}`)},
		"a timeout of 0":         {Spec: json.RawMessage(`{"timeoutMs":0}`)},
		"a priority that is not": {Spec: json.RawMessage(`{"priority":"high"}`)},
		"no object":              {Spec: json.RawMessage(`[]`)},
		"an impossible queue":    {Queue: "A B"},
	} {
		command := commandFor(job, jobevent.CommandChange)
		command.Change = change
		if _, err := h.Command(t.Context(), []jobevent.Command{command}); !errors.Is(err, jobevent.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if s := h.wantStatus(job, jobstate.Pending); s.LastCommand != nil {
		t.Errorf("it was answered: %+v", s.LastCommand)
	}
	h.change(job, 1, priorityOf(9))
	if s := h.status(job); !s.LastCommand.Applied || !strings.Contains(h.request(job).spec, `"priority":9,`) {
		t.Errorf("it was answered: %+v", s.LastCommand)
	}
}
