package callbackstore_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/callbackstore"
	"github.com/jobweaver/jobweaver/shared/apidb/commandstore"
	"github.com/jobweaver/jobweaver/shared/apidb/operationstore"
	"github.com/jobweaver/jobweaver/shared/apidb/statusstore"
	"github.com/jobweaver/jobweaver/shared/apidb/workerstore"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// callBack completes an attempt by a callback, and reports whether it was accepted.
func (h *fixture) callBack(t *testing.T, id uuid.UUID, attempt int) bool {
	t.Helper()
	reported := apibody.Callback{JobID: id, Attempt: attempt, Status: apibody.CallbackCompleted, Output: []byte(`{"a":1}`)}
	_, err := h.Callbacks.Keep(t.Context(), reported, "")
	if refused := (*callbackstore.RefusedError)(nil); err != nil && !errors.As(err, &refused) {
		t.Fatal(err)
	}
	return err == nil
}

// cancellable reports whether a cancel would be accepted, and rolls it back.
func (h *fixture) cancellable(t *testing.T, id uuid.UUID) bool {
	t.Helper()
	_, err := h.Commands.KeepCommand(t.Context(), nil, apidb.Everyone, id, jobevent.CommandCancel, "me")
	if refused := (*commandstore.RefusedError)(nil); err != nil && (!errors.As(err, &refused) || !refused.Callback) {
		t.Fatal(err)
	}
	h.Exec(t, "delete from commands where job_id = $1", id)
	h.Exec(t, "update jobs set cancel_requested_at = null where job_id = $1", id)
	return err == nil
}

func (h *fixture) kept(t *testing.T, id uuid.UUID) (all, open int64) {
	t.Helper()
	if err := h.Callbacks.Answer(t.Context()); err != nil {
		t.Fatal(err)
	}
	return apidbtest.One[int64](t, h, "select count(*) from callbacks where job_id = $1", id),
		apidbtest.One[int64](t, h, "select count(*) from callbacks where job_id = $1 and answered_at is null", id)
}

func TestACallbackIsInTheWayOfCommandsUntilItsAttemptIsOver(t *testing.T) {
	t.Parallel()
	h := open(t)
	for name, over := range map[string]statusstore.PublishedStatus{
		"retried":   apidbtest.Status(uuid.Nil, 2, jobstate.Retrying, apidbtest.OfAttempt(1)),
		"lost":      apidbtest.Status(uuid.Nil, 2, jobstate.Pending, apidbtest.OfAttempt(1)),
		"the next":  apidbtest.Status(uuid.Nil, 2, jobstate.Queued, apidbtest.OfAttempt(2)),
		"snoozed":   apidbtest.Status(uuid.Nil, 2, jobstate.Scheduled, apidbtest.OfAttempt(1)),
		"waits now": apidbtest.Status(uuid.Nil, 2, jobstate.Waiting, apidbtest.OfAttempt(1)),
	} {
		id := h.Accept(t, apidbtest.NewJob()).JobID
		h.Apply(t, apidbtest.Status(id, 1, jobstate.Running, apidbtest.OfAttempt(1)))
		if !h.callBack(t, id, 1) || h.cancellable(t, id) {
			t.Errorf("%s: it is not in the way", name)
		}
		over.JobID, over.Status.JobID = id, id
		over.JSON, _ = json.Marshal(over.Status)
		h.Apply(t, over)
		isOver := name != "waits now"
		if got := h.cancellable(t, id); got != isOver {
			t.Errorf("%s: a cancel is kept: %v", name, got)
		}
		all, open := h.kept(t, id)
		output := apidbtest.One[int64](t, h, "select count(output) from callbacks where job_id = $1", id)
		if want := map[bool]int64{true: 0, false: 1}[isOver]; all != 1 || open != want || output != want {
			t.Errorf("%s: %d kept, %d open, %d with their output", name, all, open, output)
		}
	}
}

// Once the scheduler has asked the worker to cancel, the command is answered, and the attempt may yet begin to wait:
// then the job is cancelled, whatever the callback.
func TestNoCallbackIsTakenWhileAJobIsBeingCancelled(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.Accept(t, apidbtest.NewJob()).JobID
	h.Apply(t, apidbtest.Status(id, 1, jobstate.Running, apidbtest.OfAttempt(1)))
	if _, err := h.Commands.KeepCommand(t.Context(), nil, apidb.Everyone, id, jobevent.CommandCancel, "me"); err != nil {
		t.Fatal(err)
	}
	if h.callBack(t, id, 1) {
		t.Error("a callback is taken before the cancel is answered")
	}
	h.Apply(t, apidbtest.Status(id, 2, jobstate.Running, apidbtest.OfAttempt(1), apidbtest.Answered(1, true)))
	if h.callBack(t, id, 1) {
		t.Error("a callback is taken after the worker was asked")
	}

	refused := h.Accept(t, apidbtest.NewJob()).JobID
	h.Apply(t, apidbtest.Status(refused, 1, jobstate.Running, apidbtest.OfAttempt(1)))
	if _, err := h.Commands.KeepCommand(t.Context(), nil, apidb.Everyone, refused, jobevent.CommandCancel, "me"); err != nil {
		t.Fatal(err)
	}
	h.Apply(t, apidbtest.Status(refused, 2, jobstate.Running, apidbtest.OfAttempt(1), apidbtest.Answered(1, false)))
	if !h.callBack(t, refused, 1) {
		t.Error("a callback is refused though the cancel was")
	}
}

// A client with a secret of the installation can name any attempt. A callback for an attempt that does not exist must
// not block its job for ever, nor count for a later attempt.
func TestACallbackForAnAttemptThatThereIsNotGoesAway(t *testing.T) {
	t.Parallel()
	h := open(t)
	waits := func() uuid.UUID {
		id := h.Accept(t, apidbtest.NewJob()).JobID
		h.Apply(t, apidbtest.Status(id, 1, jobstate.Waiting, apidbtest.OfAttempt(1)))
		if !h.callBack(t, id, 99) || h.cancellable(t, id) {
			t.Fatal("it is not taken, or not in the way")
		}
		return id
	}
	later := func(d time.Duration) func(*jobevent.Status) {
		return func(s *jobevent.Status) { s.UpdatedAt = time.Now().Add(d) }
	}
	unconfirmed := waits()
	h.Exec(t, "update callbacks set received_at = received_at - interval '11 min' where job_id = $1", unconfirmed)
	h.Exec(t, "update jobs set updated_at = updated_at - interval '11 min' where job_id = $1", unconfirmed)
	if !h.cancellable(t, unconfirmed) {
		t.Error("after ten minutes it is still in the way")
	}
	if all, open := h.kept(t, unconfirmed); all != 1 || open != 1 {
		t.Errorf("nothing is known against it, and %d are kept, %d open", all, open)
	}
	early, late, ended, again := waits(), waits(), waits(), waits()
	h.Apply(t, apidbtest.Status(early, 2, jobstate.Waiting, apidbtest.OfAttempt(2), later(50*time.Second)))
	h.Apply(t, apidbtest.Status(late, 2, jobstate.Waiting, apidbtest.OfAttempt(2), later(time.Hour))) // its clock is ahead
	if all, _ := h.kept(t, late); all != 1 {
		t.Error("a callback is dropped at once since another server's clock is ahead")
	}
	h.Exec(t, "update callbacks set received_at = received_at - interval '11 min' where job_id = $1", late)
	h.Apply(t, apidbtest.Status(late, 3, jobstate.Waiting, apidbtest.OfAttempt(2)))
	h.Apply(t, apidbtest.Status(ended, 2, jobstate.Failed, apidbtest.OfAttempt(1)))
	h.Exec(t, "delete from callbacks where job_id = $1", again)
	h.Apply(t, apidbtest.Status(again, 2, jobstate.Failed, apidbtest.OfAttempt(1)))
	if _, err := h.Commands.KeepCommand(t.Context(), nil, apidb.Everyone, again, jobevent.CommandRetry, "me"); err != nil {
		t.Fatal(err)
	}
	if !h.callBack(t, again, 2) {
		t.Error("of a job that is to run again, the next attempt is not waited for")
	}
	for name, c := range map[string]struct {
		id   uuid.UUID
		kept int64
	}{"a word that may be older": {early, 1}, "a newer word": {late, 0}, "its end": {ended, 0}, "its retry": {again, 1}} {
		if all, _ := h.kept(t, c.id); all != c.kept {
			t.Errorf("after %s %d are kept, want %d", name, all, c.kept)
		}
	}
	if !h.cancellable(t, late) || h.callBack(t, ended, 2) {
		t.Error("what was dropped is in the way, or a job that has ended has another attempt")
	}
}

func TestAnOperationSkipsJobsWithAPendingCallback(t *testing.T) {
	t.Parallel()
	h := open(t)
	var ids []uuid.UUID
	for range 3 {
		id := h.Accept(t, apidbtest.NewJob()).JobID
		h.Apply(t, apidbtest.Status(id, 1, jobstate.Waiting, apidbtest.OfAttempt(1)))
		ids = append(ids, id)
	}
	h.callBack(t, ids[1], 1)
	asked, _, err := h.Operations.InsertOperation(t.Context(), operationstore.NewOperation{
		ID: uuid.Must(uuid.NewV7()), By: "me", RequestHash: []byte("x"), Whose: apidb.Everyone,
		Request: apibody.Operation{Command: jobevent.CommandCancel, JobIDs: ids},
	})
	if err != nil {
		t.Fatal(err)
	}
	commands, _, err := h.Operations.Operate(t.Context(), asked.ID)
	if err != nil || len(commands) != 2 {
		t.Errorf("%d commands, %v", len(commands), err)
	}
	reason := apidbtest.One[string](t, h, "select reason from operation_skips where job_id = $1", ids[1])
	if reason != "a callback of the job is not answered yet" {
		t.Errorf("left out since %q", reason)
	}
}

// A late heartbeat of a worker knows less than the outside system that has the attempt now.
func TestALateHeartbeatDoesNotHideAnOutsideSystemsProgress(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.Accept(t, apidbtest.NewJob()).JobID
	heartbeat := func(percent int) {
		t.Helper()
		if err := h.Workers.See(t.Context(), []workerstore.Heartbeat{{JSON: []byte(`{}`), Heartbeat: jobevent.Heartbeat{WorkerID: "w", Attempts: []jobevent.ListedAttempt{
			{JobID: id, Attempt: 1, Progress: &jobevent.Progress{Percent: percent}},
		}}}}); err != nil {
			t.Fatal(err)
		}
	}
	shows := func(percent int) {
		t.Helper()
		if p := h.ReadJob(t, id).Progress; p == nil || p.Percent != percent {
			t.Errorf("shows %+v, want %d %%", p, percent)
		}
	}
	h.Apply(t, apidbtest.Status(id, 1, jobstate.Running, apidbtest.OfAttempt(1)))
	heartbeat(10)
	shows(10)
	h.Apply(t, apidbtest.Status(id, 2, jobstate.Waiting, apidbtest.OfAttempt(1)))
	shows(10)
	reported := apibody.Callback{JobID: id, Attempt: 1, Status: apibody.CallbackProgress, Progress: jobevent.Progress{Percent: 50}}
	if _, err := h.Callbacks.Keep(t.Context(), reported, ""); err != nil {
		t.Fatal(err)
	}
	heartbeat(10)
	shows(50)
	h.Apply(t, apidbtest.Status(id, 3, jobstate.Running, apidbtest.OfAttempt(2)))
	h.Apply(t, apidbtest.Status(id, 4, jobstate.Waiting, apidbtest.OfAttempt(2)))
	if err := h.Workers.See(t.Context(), []workerstore.Heartbeat{{JSON: []byte(`{}`), Heartbeat: jobevent.Heartbeat{WorkerID: "w", Left: []jobevent.ListedAttempt{
		{JobID: id, Attempt: 2, Progress: &jobevent.Progress{Percent: 70}},
	}}}}); err != nil {
		t.Fatal(err)
	}
	shows(70) // the worker's last, of an attempt of which the outside system has reported nothing
}

func TestACallbackStaysAsLongAsItsJob(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.Accept(t, apidbtest.NewJob()).JobID
	h.Apply(t, apidbtest.Status(id, 1, jobstate.Waiting, apidbtest.OfAttempt(1)))
	h.callBack(t, id, 1)
	h.Apply(t, apidbtest.Status(id, 2, jobstate.Completed, apidbtest.OfAttempt(1)))
	if all, _ := h.kept(t, id); all != 1 {
		t.Errorf("%d are kept", all)
	}
	if _, err := h.Statuses.ForgetJobs(t.Context(), []statusstore.Gone{{JobID: id, Version: 3}}); err != nil {
		t.Fatal(err)
	}
	if all, _ := h.kept(t, id); all != 0 {
		t.Errorf("%d are left of a job that is gone", all)
	}
}

// waitsUntil returns a status in which an attempt waits.
func waitsUntil(id uuid.UUID, attempt int, at time.Time) statusstore.PublishedStatus {
	return apidbtest.Status(id, 2, jobstate.Waiting, func(s *jobevent.Status) { s.Attempt, s.CallbackDeadlineAt = attempt, &at })
}

func TestAnAttemptIsGivenUpOnlyWhereNoCallbackWasTaken(t *testing.T) {
	t.Parallel()
	h := open(t)
	past, future := time.Now().Add(-time.Minute), time.Now().Add(time.Hour)
	silent, answered, early := h.Accept(t, apidbtest.NewJob()).JobID, h.Accept(t, apidbtest.NewJob()).JobID, h.Accept(t, apidbtest.NewJob()).JobID
	other, ended := h.Accept(t, apidbtest.NewJob()).JobID, h.Accept(t, apidbtest.NewJob()).JobID
	if !h.callBack(t, answered, 1) {
		t.Fatal("it is not taken")
	}
	words := []statusstore.PublishedStatus{
		waitsUntil(silent, 1, past), waitsUntil(answered, 1, past), waitsUntil(early, 1, future), waitsUntil(other, 1, past),
		waitsUntil(ended, 1, past),
	}
	h.Apply(t, words...)
	h.Apply(t, apidbtest.Status(other, 3, jobstate.Waiting, apidbtest.OfAttempt(2)), apidbtest.Status(ended, 3, jobstate.Cancelled, apidbtest.OfAttempt(1)))
	var asked []jobevent.Status
	for _, w := range words {
		asked = append(asked, w.Status)
	}
	for range 2 { // a repeated call returns the same
		due, err := h.Callbacks.Due(t.Context(), asked)
		if err != nil || len(due) != 2 {
			t.Fatalf("due: %+v, %v", due, err)
		}
		for _, c := range due {
			switch {
			case c.JobID == answered && c.Kind == jobstate.KindCompleted && string(c.Output) == `{"a":1}`:
			case c.JobID == silent && c.Kind == jobstate.KindFailed && c.ErrorCode == "WORKER.CALLBACK_TIMEOUT" && c.Retryable:
			default:
				t.Errorf("due: %+v", c)
			}
		}
	}
	reported := apibody.Callback{JobID: silent, Attempt: 1, Status: apibody.CallbackCompleted}
	var refused *callbackstore.RefusedError
	if _, err := h.Callbacks.Keep(t.Context(), reported, ""); !errors.As(err, &refused) || refused.Why != callbackstore.Expired {
		t.Errorf("then it is answered %v", err)
	}
	if !h.callBack(t, early, 1) || h.cancellable(t, silent) {
		t.Error("what is not late is refused, or a command is taken of what is given up")
	}
}

func TestOfACallbackAndItsDeadlineOneCounts(t *testing.T) {
	t.Parallel()
	h := open(t)
	taken := 0
	for range 200 {
		id := h.Accept(t, apidbtest.NewJob()).JobID
		w := waitsUntil(id, 1, time.Now().Add(time.Duration(rand.IntN(3000))*time.Microsecond))
		h.Apply(t, w)
		var both sync.WaitGroup
		var isTaken bool
		both.Go(func() { isTaken = h.callBack(t, id, 1) })
		both.Go(func() {
			if _, err := h.Callbacks.Due(t.Context(), []jobevent.Status{w.Status}); err != nil {
				t.Error(err)
			}
		})
		both.Wait()
		<-time.After(time.Until(*w.CallbackDeadlineAt)) // from now on a callback is late
		due, err := h.Callbacks.Due(t.Context(), []jobevent.Status{w.Status})
		if err != nil || len(due) != 1 || (due[0].Kind == jobstate.KindCompleted) != isTaken {
			t.Fatalf("taken: %v, due %+v, %v", isTaken, due, err)
		}
		if isTaken {
			taken++
		}
	}
	t.Logf("%d of 200 were taken", taken)
}
