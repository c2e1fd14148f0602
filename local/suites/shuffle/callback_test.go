package shuffle

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/callbackstore"
	"github.com/jobweaver/jobweaver/shared/apidb/commandstore"
	"github.com/jobweaver/jobweaver/shared/apievent"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

// callBack makes the outside systems report the outcome of each attempt once. If lose returns true, the gateway's
// event is lost.
func (h *fixture) callBack(lose func() bool) {
	h.t.Helper()
	for _, id := range h.ids {
		j := h.jobs[id]
		if len(j.reports) == 0 {
			continue
		}
		shown := h.look(id)
		attempt := shown.Attempt
		if j.early {
			attempt = h.workers.lastStarted(id)
		} else if shown.Status != jobstate.Waiting {
			continue
		}
		if _, done := j.calledBack[attempt]; done || attempt == 0 {
			continue
		}
		if j.early && (shown.Status != jobstate.Waiting || shown.Attempt != attempt) {
			h.mishaps[calledBackEarly]++
		}
		h.callBackOf(id, attempt, lose)
	}
}

func (h *fixture) callBackOf(id uuid.UUID, attempt int, lose func() bool) {
	h.t.Helper()
	j := h.jobs[id]
	n := 0
	for _, kind := range j.calledBack {
		if kind != "" {
			n++
		}
	}
	reported := apibody.Callback{JobID: id, Attempt: attempt, Status: j.reports[min(n, len(j.reports)-1)], Retryable: true}
	if reported.Status == apibody.CallbackFailed {
		reported.ErrorCode, reported.Message = "TEST", "no"
	}
	taken, err := h.api.Callbacks.Keep(h.t.Context(), reported, "")
	if refused := (*callbackstore.RefusedError)(nil); errors.As(err, &refused) && j.early {
		h.mishaps[callbackRefused]++
		j.calledBack[attempt] = ""
		return
	}
	if err != nil || taken.Callback == nil {
		h.t.Fatalf("attempt %d of a job that %s: %+v, %v", attempt, j.name, taken, err)
	}
	j.calledBack[attempt] = taken.Callback.Kind
	e, err := apievent.Callback(*taken.Callback)
	h.gateway(e, err, lose)
}

// lastStarted returns the newest attempt that an outside system can know; 0: none.
func (ws *workers) lastStarted(id uuid.UUID) (last int) {
	for key := range ws.started {
		if key.JobID == id {
			last = max(last, key.Attempt)
		}
	}
	return last
}

// checkCallbacks: an accepted callback has ended its attempt, unless its worker had lost or released the attempt
// before.
func (h *fixture) checkCallbacks() {
	h.t.Helper()
	for id, j := range h.jobs {
		ended := map[int]jobevent.Transition{}
		for _, move := range h.look(id).Snapshot.History {
			if move.Outcome != "" && move.Outcome != string(jobstate.KindWaiting) {
				ended[move.Attempt] = move
			}
		}
		for attempt, kind := range j.calledBack {
			is := jobstate.Kind(ended[attempt].Outcome)
			wasLost := j.early && byChance(ended[attempt]) // after the call, and before it reported its start
			if kind != "" && is != kind && !wasLost {
				h.t.Errorf("attempt %d of a job that %s was called back as %s, and is %s", attempt, j.name, kind, is)
			}
		}
	}
	if err := h.api.Callbacks.Answer(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
	var open int
	err := h.apiPool.QueryRow(h.t.Context(), "select count(*) from callbacks where answered_at is null or output is not null").Scan(&open)
	if err != nil || open > 0 {
		h.t.Errorf("%d callbacks are not done with, %v", open, err)
	}
}

// A cancel and a callback come at the same time, and the broker is wiped before anything about them is consumed.
func TestAnAcceptedCancelAndCallbackCountAfterAWipe(t *testing.T) {
	t.Parallel()
	const jobs = 500
	rnd := rand.New(rand.NewPCG(1, 0))
	h := open(t, time.Hour, random(rnd))
	waits := &kind{name: "waits", ends: outcomes(waits)}
	for range jobs {
		h.submitOne(waits, rnd, never)
	}
	h.until("all wait", rnd, func() bool { return h.count("status = 'WAITING'") == jobs })
	won := map[uuid.UUID]jobstate.Status{}
	for _, id := range h.ids {
		won[id] = h.race(id)
	}
	h.wipe()
	h.until("all have ended", rnd, func() bool { return h.count("status in ('COMPLETED', 'CANCELLED')") == jobs && h.ended() })
	count := map[jobstate.Status]int{}
	for id, status := range won {
		count[status]++
		if shown := h.look(id); shown.Status != status || shown.CancelRequestedAt != nil {
			t.Errorf("the winner makes it %s, it is %s", status, shown.Status)
		}
	}
	t.Log(count)
	h.checkCallbacks()
}

// race submits a cancel and a callback at the same time, and returns the status in which the job must end.
func (h *fixture) race(id uuid.UUID) jobstate.Status {
	h.t.Helper()
	var callback, cancel error
	var both errgroup.Group
	both.Go(func() error {
		reported := apibody.Callback{JobID: id, Attempt: 1, Status: apibody.CallbackCompleted, Output: []byte(`{"a":1}`)}
		_, callback = h.api.Callbacks.Keep(h.t.Context(), reported, "")
		return nil
	})
	both.Go(func() error {
		_, cancel = h.api.Commands.KeepCommand(h.t.Context(), nil, apidb.Everyone, id, jobevent.CommandCancel, client)
		return nil
	})
	_ = both.Wait()
	var late *callbackstore.RefusedError
	var refused *commandstore.RefusedError
	switch {
	case callback == nil && errors.As(cancel, &refused):
		return jobstate.Completed
	case cancel == nil && errors.As(callback, &late):
		return jobstate.Cancelled
	}
	h.t.Fatalf("the callback: %v; the cancel: %v", callback, cancel)
	return ""
}

func (h *fixture) count(where string) (n int) {
	h.t.Helper()
	if err := h.apiPool.QueryRow(h.t.Context(), "select count(*) from jobs where "+where).Scan(&n); err != nil {
		h.t.Fatal(err)
	}
	return n
}

// until delivers events until holds returns true.
func (h *fixture) until(what string, rnd *rand.Rand, holds func() bool) {
	h.t.Helper()
	for range 20_000 {
		h.publish(h.t, h.workers.fill())
		for items, done := h.workers.finish(); done; items, done = h.workers.finish() {
			h.publish(h.t, items)
		}
		if h.shuffled(h.t, rnd) {
			continue
		}
		if holds() {
			return
		}
		h.tick("dispatch", h.dispatch.Tick)
		h.reconcile()
	}
	h.t.Fatalf("in vain: %s", what)
}

// Only the API has the callback when all events are lost.
func TestACallbackCountsThoughTheBrokerIsWipedAtOnce(t *testing.T) {
	t.Parallel()
	for _, reported := range []apibody.CallbackStatus{apibody.CallbackCompleted, apibody.CallbackFailed} {
		rnd := rand.New(rand.NewPCG(2, 0))
		h := open(t, time.Hour, random(rnd))
		h.submitOne(&kind{name: "waits", ends: outcomes(waits), reports: reports(reported)}, rnd, never)
		id := h.ids[0]
		h.until("it waits", rnd, func() bool { return h.look(id).Status == jobstate.Waiting })
		h.callBackOf(id, 1, never)
		h.wipe()
		h.until("it has ended", rnd, func() bool { return h.look(id).Status.Terminal() })
		h.checkCallbacks()
		if got := h.workers.started[workerdb.Key{JobID: id, Attempt: 1}]; got != 1 {
			t.Errorf("attempt 1 was started %d times", got)
		}
	}
}
