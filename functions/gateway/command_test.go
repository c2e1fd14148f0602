package gateway_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// command posts a command and returns its number.
func (h *fixture) command(id uuid.UUID, name string) int {
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

// ask sends any command.
func (h *fixture) ask(id uuid.UUID, command string) *response {
	h.t.Helper()
	path := "/api/jobs/" + id.String()
	switch command {
	case "delete":
		return h.do(http.MethodDelete, path, "")
	case "reschedule":
		return h.post(path+"/reschedule", `{"runAt": "2026-11-22T08:00:00Z"}`)
	}
	return h.post(path+"/"+command, "")
}

func (h *fixture) cancelRequested(id uuid.UUID) bool {
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

func TestCancelIsStoredPublishedAndConfirmed(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.submit(plainJob)
	h.broker.next(t)
	if n := h.command(id, "cancel"); n != 1 || !h.cancelRequested(id) {
		t.Errorf("number %d", n)
	}
	e := h.broker.next(t)
	command, err := jobevent.Decode[jobevent.Command](e)
	if err != nil || e.ID() != jobevent.CommandID(id, 1) || command.Number != 1 || command.Command != "cancel" || command.JobID != id || command.By == "" {
		t.Errorf("got %s %v", e, err)
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

func TestStateDecidesWhichCommandsAreAllowed(t *testing.T) {
	t.Parallel()
	h := open(t)
	for _, status := range jobstate.All() {
		waits := status == jobstate.Scheduled || status == jobstate.Pending || status == jobstate.Retrying
		for command, allowed := range map[string]bool{
			"cancel": !status.Terminal(), "retry": status == jobstate.Failed || status == jobstate.Cancelled,
			"reschedule": waits, "delete": status.Terminal(),
		} {
			id := h.submit(plainJob)
			h.scheduler(id, 1, status, nil)
			r := h.ask(id, command)
			if allowed {
				r.want(http.StatusAccepted)
			} else {
				r.wantError(apierror.InvalidStateTransition)
			}
		}
	}
}

func TestCommandsOfAJobThatItsWaitsAreWakingAreAccepted(t *testing.T) {
	t.Parallel()
	h := open(t)
	for command, status := range map[string]jobstate.Status{
		"cancel": jobstate.Scheduled, "reschedule": jobstate.Scheduled, "retry": jobstate.Failed, "delete": jobstate.Failed,
	} {
		id := h.submit(plainJob)
		h.broker.next(t)
		h.scheduler(id, 1, status, func(s *jobevent.Status) { s.Attempt = 1 })
		if _, err := h.direct.Exec(t.Context(), `with numbered as (update jobs set command_seq = 1 where job_id = $1 returning job_id)
			insert into commands (job_id, number, command, by_whom, run_at) select job_id, 1, 'reschedule', $2, now() from numbered`,
			id, jobevent.ByWait); err != nil {
			t.Fatal(err)
		}
		h.ask(id, command).want(http.StatusAccepted)
		sent, err := jobevent.Decode[jobevent.Command](h.broker.next(t))
		if err != nil || sent.Number != 2 || sent.Command != command || sent.By == jobevent.ByWait {
			t.Errorf("got %+v, %v", sent, err)
		}
	}
}

func TestLateCancelIsNoLongerShown(t *testing.T) {
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

func TestRefusedCommandAllowsTheNext(t *testing.T) {
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

func TestHundredEqualCommandsAreOne(t *testing.T) {
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

func TestRescheduleHasTheInstantAndAnotherInstantIsAnotherCommand(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.submit(plainJob)
	h.broker.next(t)
	path := "/api/jobs/" + id.String() + "/reschedule"
	for _, same := range []string{"2035-11-22T08:00:00Z", "2035-11-22T09:00:00+01:00"} {
		h.post(path, `{"runAt": "`+same+`"}`).want(http.StatusAccepted)
		command, err := jobevent.Decode[jobevent.Command](h.broker.next(t))
		if err != nil || command.Number != 1 || command.Command != jobevent.CommandReschedule || command.RunAt == nil ||
			!command.RunAt.Equal(time.Date(2035, 11, 22, 8, 0, 0, 0, time.UTC)) {
			t.Errorf("got %+v, %v", command, err)
		}
	}
	for _, other := range []string{`{"runAt": "2035-11-22T08:00:01Z"}`, `{"delayMs": 1000}`} {
		h.post(path, other).wantError(apierror.InvalidStateTransition)
	}
	at := time.Date(2035, 11, 22, 8, 0, 0, 0, time.UTC)
	h.scheduler(id, 1, jobstate.Scheduled, func(s *jobevent.Status) {
		s.NextRunAt, s.LastCommand = &at, &jobevent.CommandResult{Number: 1, Command: "reschedule", Applied: true}
	})
	var job struct{ NextRunAt time.Time }
	if h.get("/api/jobs/" + id.String()).want(http.StatusOK).into(&job); !job.NextRunAt.Equal(at) {
		t.Errorf("next run at %s", job.NextRunAt)
	}
	h.post(path, `{"delayMs": 60000}`).want(http.StatusAccepted)
	command, err := jobevent.Decode[jobevent.Command](h.broker.next(t))
	if err != nil || command.Number != 2 || command.RunAt == nil || time.Until(*command.RunAt) < 30*time.Second || time.Until(*command.RunAt) > time.Minute {
		t.Errorf("got %+v, %v", command, err)
	}
}

func TestJobIsNotRescheduledPastItsExpiry(t *testing.T) {
	t.Parallel()
	h := open(t)
	at := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	id := h.submit(with(`"expiresAt": "` + at.Format(time.RFC3339) + `"`))
	path := "/api/jobs/" + id.String() + "/reschedule"
	for _, late := range []string{`{"runAt": "` + at.Format(time.RFC3339) + `"}`, `{"delayMs": 3600000}`} {
		r := h.post(path, late)
		if r.wantError(apierror.InvalidStateTransition); !strings.Contains(string(r.body), "expires before") {
			t.Errorf("%s: %s", late, r.body)
		}
	}
	op := h.operate(`{"command": "reschedule", "runAt": "` + at.Format(time.RFC3339) + `", "jobIds": ["` + id.String() + `"]}`)
	h.work(op.OperationID)
	if op = h.operation(op.OperationID); op.Progress.Skipped != 1 || len(op.Reasons) != 1 ||
		op.Reasons[0].Reason != "the job expires before it could run then" {
		t.Errorf("the operation: %+v", op)
	}
	h.post(path, `{"delayMs": 3500000}`).want(http.StatusAccepted)
}

func TestDeleteHasTheKnownVersion(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.submit(plainJob)
	h.broker.next(t)
	h.scheduler(id, 7, jobstate.Completed, func(s *jobevent.Status) { s.Attempt = 1 })
	h.ask(id, "delete").want(http.StatusAccepted)
	if command, err := jobevent.Decode[jobevent.Command](h.broker.next(t)); err != nil || command.Version != 7 {
		t.Errorf("got %+v, %v", command, err)
	}
}

func TestRescheduleWithoutATimeIsRefused(t *testing.T) {
	t.Parallel()
	h := open(t)
	path := "/api/jobs/" + h.submit(plainJob).String() + "/reschedule"
	for body, at := range map[string]string{
		`{}`: "runAt", `{"runAt": "2035-11-22T08:00:00Z", "delayMs": 1}`: "delayMs", `{"runAt": null}`: "runAt",
		`{"runAt": "tomorrow"}`: "runAt", `{"delayMs": -1}`: "delayMs", `{"delayMs": 1.5}`: "delayMs", `[]`: "",
		`{"runAt": "9999-11-22T08:00:00Z"}`: "runAt", `{"delayMs": 1, "x": 1}`: "x", `{"delayMs": 1, "delayMs": 1}`: "delayMs",
	} {
		h.post(path, body).wantError(apierror.InvalidJobRequest, at)
	}
	h.post("/api/jobs/"+uuid.NewString()+"/reschedule", `{"delayMs": 1}`).wantError(apierror.JobNotFound)
	h.post("/api/jobs/x/reschedule", `{`).wantError(apierror.JobNotFound)
	h.post(path, `{"delayMs": 1}`, "Content-Type", "text/plain").wantError(apierror.UnsupportedMediaType)
}

func TestCommandHasALocationAndTakesNoBody(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.submit(plainJob)
	path := "/api/jobs/" + id.String()
	for _, body := range []string{`{"x": 1}`, `[]`, `null`, `reason`} {
		h.post(path+"/cancel", body).wantError(bad)
		h.do(http.MethodDelete, path, body).wantError(bad)
	}
	for _, body := range []string{"", "{}"} {
		if r := h.post(path+"/cancel", body).want(http.StatusAccepted); r.header.Get("Location") != path {
			t.Errorf("Location %q", r.header.Get("Location"))
		}
	}
}

// A value that no job can have is refused. An empty page would hide a typing error.
func TestFilterThatNoJobCanMatchIsRefused(t *testing.T) {
	t.Parallel()
	h := open(t)
	long := strings.Repeat("x", 256)
	for path, name := range map[string]string{
		"/api/jobs?type=0.5": "type", "/api/jobs/dead?type=0.5": "type", "/api/stats?type=a+b": "type",
		"/api/keys?ownerId=" + long: "ownerId", "/api/schedules?ownerId=" + long: "ownerId", "/api/schedules/a/ticks?ownerId=" + long: "ownerId",
		"/api/jobs?since=1969-01-01T00:00:00Z": "since",
	} {
		h.get(path).wantError(bad, name)
	}
}
