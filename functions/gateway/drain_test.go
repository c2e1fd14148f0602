package gateway_test

import (
	"net/http"
	"testing"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

func TestAWorkerDrainsUntilItIsUndone(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.follow()
	h.heartbeat(jobevent.Heartbeat{WorkerID: "w/1", Slots: 4, Free: 4}, jobevent.Heartbeat{WorkerID: "w2", Slots: 4, Free: 4})
	drain := func(method string) (body struct {
		WorkerID          string
		Draining, Applied bool
	}) {
		h.t.Helper()
		h.do(method, "/api/workers/w%2F1/drain", "").want(http.StatusOK).into(&body)
		return body
	}
	if got := drain(http.MethodPut); !got.Draining || !got.Applied || got.WorkerID != "w/1" {
		t.Errorf("drained: %+v", got)
	}
	drain(http.MethodPut) // the same again
	if got := h.workers(); !got[0].Draining || got[0].Drained || got[1].Draining {
		t.Errorf("listed %+v", got)
	}
	var list struct{ Controls []controlBody }
	if h.get("/api/controls").want(http.StatusOK).into(&list); len(list.Controls) != 0 {
		t.Errorf("among the controls: %+v", list)
	}
	ordered := func() (version int64) {
		h.sql("select version from controls where name = 'w/1'", &version)
		return version
	}
	followed := jobevent.Heartbeat{WorkerID: "w/1", Slots: 4, Draining: true, Drained: true, DrainVersion: ordered()}
	h.heartbeat(followed)
	if got := h.workers()[0]; !got.Drained || got.Busy != 0 {
		t.Errorf("with nothing left: %+v", got)
	}
	if got := drain(http.MethodDelete); got.Draining || !got.Applied {
		t.Errorf("undone: %+v", got)
	}
	if got := h.workers()[0]; !got.Draining || got.Drained { // until its heartbeat has followed
		t.Errorf("undone: %+v", got)
	}
	drain(http.MethodPut)
	h.heartbeat(followed) // it was sent before, and comes late
	if got := h.workers()[0]; !got.Draining || got.Drained {
		t.Errorf("drained again: %+v", got)
	}
	followed.DrainVersion = ordered()
	h.heartbeat(followed)
	if got := h.workers()[0]; !got.Drained {
		t.Errorf("drained again, with nothing left: %+v", got)
	}
	drain(http.MethodDelete)
	h.heartbeat(jobevent.Heartbeat{WorkerID: "w/1", Slots: 4, Free: 4})
	if got := h.workers()[0]; got.Draining {
		t.Errorf("after that: %+v", got)
	}
	for _, method := range []string{http.MethodPut, http.MethodDelete} {
		h.do(method, "/api/workers/gone/drain", "").wantError(apierror.NotFound)
		h.do(method, "/api/workers/w2/drain?force=true", "").wantError(apierror.InvalidJobRequest)
	}
	h.post("/api/workers/w2/drain", "").want(http.StatusMethodNotAllowed)
}

func TestADrainEndsWithItsWorker(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.follow()
	h.heartbeat(jobevent.Heartbeat{WorkerID: "w1", Slots: 4}, jobevent.Heartbeat{WorkerID: "w2", Slots: 4})
	h.do(http.MethodPut, "/api/workers/w1/drain", "").want(http.StatusOK)
	h.do(http.MethodPut, "/api/workers/w2/drain", "").want(http.StatusOK)
	h.heartbeat(jobevent.Heartbeat{WorkerID: "w1", Slots: 4, Stopping: true})
	h.sql("update controls set updated_at = now() - interval '2 minutes'", nil)
	if err := h.store.Workers.DeleteOld(t.Context()); err != nil {
		t.Fatal(err)
	}
	var names string
	h.sql("select string_agg(name, ',') from controls", &names)
	if names != "w2" {
		t.Errorf("drains are left of %s", names)
	}
}

// After a long silence the worker drains, as its heartbeats show, and its control is deleted.
func TestAWorkerThatDrainsWithoutAControlCanTakeAttemptsAgain(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.heartbeat(jobevent.Heartbeat{WorkerID: "w1", Slots: 4, Draining: true})
	if got := h.workers()[0]; !got.Draining {
		t.Errorf("listed %+v", got)
	}
	h.do(http.MethodDelete, "/api/workers/w1/drain", "").want(http.StatusOK)
	control, err := jobevent.DecodeAs[jobevent.Control](h.broker.next(t), jobevent.TypeControl)
	if err != nil || control.Kind != jobevent.ControlWorker || control.Name != "w1" || control.Paused {
		t.Errorf("published %+v, %v", control, err)
	}
}
