package gateway_test

import (
	"net/http"
	"testing"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// command posts one and gives its number.
func (h *house) command(id uuid.UUID, name string) int {
	h.t.Helper()
	var body struct {
		JobID   uuid.UUID
		Command int
	}
	h.post("/api/jobs/"+id.String()+"/"+name, "").want(http.StatusAccepted).into(&body)
	if body.JobID != id {
		h.t.Errorf("the command is of job %s", body.JobID)
	}
	return body.Command
}

func (h *house) cancelRequested(id uuid.UUID) bool {
	h.t.Helper()
	var job struct{ CancelRequestedAt *string }
	h.get("/api/jobs/" + id.String()).want(http.StatusOK).into(&job)
	return job.CancelRequestedAt != nil
}

func answered(number int, applied bool) func(*jobevent.Status) {
	return func(s *jobevent.Status) {
		s.LastCommand = &jobevent.CommandResult{Number: number, Command: "cancel", Applied: applied}
	}
}

func TestACancelIsKeptAndToldAndAnswered(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.submit(plainJob)
	h.broker.next(t)
	if n := h.command(id, "cancel"); n != 1 || !h.cancelRequested(id) {
		t.Errorf("number %d", n)
	}
	e := h.broker.next(t)
	said, err := jobevent.Decode[jobevent.Command](e)
	if err != nil || e.ID() != jobevent.CommandID(id, 1) || said.Number != 1 || said.Command != "cancel" || said.JobID != id || said.By == "" {
		t.Errorf("said %s %v", e, err)
	}
	if n := h.command(id, "cancel"); n != 1 {
		t.Errorf("the same again has number %d", n)
	}
	h.post("/api/jobs/"+id.String()+"/retry", "").wantError(apierror.InvalidStateTransition)
	h.scheduler(id, 2, jobstate.Cancelled, answered(1, true))
	if h.cancelRequested(id) {
		t.Error("a cancelled job still shows cancelRequestedAt")
	}
	r := h.post("/api/jobs/"+id.String()+"/cancel", "")
	if r.wantError(apierror.InvalidStateTransition); r.error().JobID == nil || *r.error().JobID != id {
		t.Errorf("the conflict is of %v", r.error().JobID)
	}
	if n := h.command(id, "retry"); n != 2 {
		t.Errorf("the next command has number %d", n)
	}
	if h.cancelRequested(id) {
		t.Error("a retry shows as a cancel")
	}
}

func TestWhichStateAllowsWhat(t *testing.T) {
	t.Parallel()
	h := open(t)
	for _, status := range jobstate.All() {
		for _, command := range []string{"cancel", "retry"} {
			id := h.submit(plainJob)
			h.scheduler(id, 1, status, nil)
			r := h.post("/api/jobs/"+id.String()+"/"+command, "")
			allowed := command == "cancel" && !status.Terminal() ||
				command == "retry" && (status == jobstate.Failed || status == jobstate.Cancelled)
			if allowed {
				r.want(http.StatusAccepted)
			} else {
				r.wantError(apierror.InvalidStateTransition)
			}
		}
	}
}

func TestACancelThatCameTooLateShowsNoMore(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.submit(plainJob)
	h.scheduler(id, 1, jobstate.Running, nil)
	h.command(id, "cancel")
	h.scheduler(id, 2, jobstate.Running, answered(1, true))
	if !h.cancelRequested(id) {
		t.Error("the worker is being asked, and it does not show")
	}
	h.scheduler(id, 3, jobstate.Completed, answered(1, true))
	if h.cancelRequested(id) {
		t.Error("a completed job shows cancelRequestedAt")
	}
}

func TestACommandThatWasRefusedMakesRoom(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.submit(plainJob)
	h.scheduler(id, 1, jobstate.Failed, nil)
	h.command(id, "retry")
	h.scheduler(id, 2, jobstate.Failed, func(s *jobevent.Status) {
		s.LastCommand = &jobevent.CommandResult{Number: 1, Command: "retry"}
	})
	if n := h.command(id, "retry"); n != 2 {
		t.Errorf("number %d", n)
	}
}

func TestAHundredEqualCommandsAreOne(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.submit(plainJob)
	var g errgroup.Group
	for range 100 {
		g.Go(func() error {
			if n := h.command(id, "cancel"); n != 1 {
				t.Errorf("number %d", n)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
}
