package gateway_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/functions/gateway"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/controlstore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

type controlBody struct {
	Kind, Name      string
	Paused, Applied bool
	MaxRunning      *int
	Weight          *int
	StartsPerSecond *float64
	Version         int64
	UpdatedAt       *time.Time
	UpdatedBy       *string
}

func (h *fixture) control(method, path, body string) (c controlBody) {
	h.t.Helper()
	h.do(method, "/api/controls/"+path, body, "Content-Type", "application/json").want(http.StatusOK).into(&c)
	return c
}

// follow confirms each published control, as the scheduler does, until the fixture has stopped.
func (h *fixture) follow() {
	go func() {
		for e := range h.broker.published {
			if e.Type() != jobevent.TypeControl {
				continue
			}
			control, err := jobevent.Decode[jobevent.Control](e)
			if err != nil {
				h.t.Error(err)
			}
			if err := h.store.Controls.ControlsApplied(h.t.Context(), []jobevent.ControlApplied{
				{Kind: control.Kind, Name: control.Name, Version: control.Version},
			}); err != nil && h.t.Context().Err() == nil {
				h.t.Error(err)
			}
		}
	}()
	h.t.Cleanup(func() {
		h.stop()
		close(h.broker.published)
	})
}

func TestNumberOfControlsIsLimited(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.follow()
	h.sql(`insert into controls (kind, name, version, paused, updated_by)
		select 'owner', 'o' || n, nextval('control_versions'), true, 'me' from generate_series(1, 9999) n`, nil)
	h.control(http.MethodPost, "owner/last/pause", "")
	h.do(http.MethodPost, "/api/controls/owner/more/pause", "").wantError(apierror.InvalidJobRequest)
	h.control(http.MethodPost, "owner/none/resume", "")
	h.control(http.MethodPost, "owner/o1/resume", "")
	h.control(http.MethodPost, "owner/more/pause", "")
}

func TestControlAppliesUntilItIsDeleted(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.follow()
	if none := h.control("GET", "queue/mail", ""); none.Version != 0 || !none.Applied || none.UpdatedAt != nil || none.UpdatedBy != nil {
		t.Errorf("an untouched one: %+v", none)
	}
	put := h.control("PUT", "queue/mail", `{"maxRunning": 3, "startsPerSecond": 0.1}`)
	if !put.Applied || put.Paused || *put.MaxRunning != 3 || *put.StartsPerSecond != 0.1 || put.UpdatedBy == nil || put.UpdatedAt == nil {
		t.Errorf("put: %+v", put)
	}
	if again := h.control("PUT", "queue/mail", `{"maxRunning": 3, "startsPerSecond": 0.1}`); again.Version != put.Version {
		t.Errorf("the same again: %+v", again)
	}
	paused := h.control("POST", "queue/mail/pause", "")
	if !paused.Applied || !paused.Paused || *paused.MaxRunning != 3 || paused.Version <= put.Version {
		t.Errorf("paused: %+v", paused)
	}
	if resumed := h.control("POST", "queue/mail/resume", ""); resumed.Paused || *resumed.MaxRunning != 3 || resumed.Version <= paused.Version {
		t.Errorf("resumed: %+v", resumed)
	}
	gone := h.control("DELETE", "queue/mail", "")
	if !gone.Applied || gone.MaxRunning != nil || gone.StartsPerSecond != nil || gone.Version <= paused.Version {
		t.Errorf("let go: %+v", gone)
	}
	if none := h.control("GET", "queue/mail", ""); none.Version != 0 {
		t.Errorf("it is still there: %+v", none)
	}
	if none := h.control("DELETE", "queue/mail", ""); none.Version != 0 || !none.Applied {
		t.Errorf("let go twice: %+v", none)
	}
	if later := h.control("POST", "queue/mail/pause", ""); later.Version <= gone.Version {
		t.Errorf("version %d comes after %d", later.Version, gone.Version)
	}
}

func TestResponseDoesNotWaitForeverForTheScheduler(t *testing.T) {
	t.Parallel()
	h := open(t)
	var g errgroup.Group
	g.Go(func() error {
		if c := h.control("POST", "type/MAIL/pause", ""); c.Applied || !c.Paused {
			t.Errorf("the control is applied without the scheduler: %+v", c)
		}
		return nil
	})
	e := h.broker.next(t)
	control, err := jobevent.Decode[jobevent.Control](e)
	if err != nil || e.Type() != jobevent.TypeControl || e.ID() != jobevent.ControlID("type", "MAIL", control.Version) ||
		control.Kind != "type" || control.Name != "MAIL" || !control.Paused || e.Key() != "type:MAIL" {
		t.Errorf("got %s, %v", e, err)
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	var list struct{ Controls []controlBody }
	if h.get("/api/controls").want(http.StatusOK).into(&list); len(list.Controls) != 1 || list.Controls[0].Applied {
		t.Errorf("listed %+v", list)
	}
}

func TestConcurrentChangesAreAllApplied(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.follow()
	var g errgroup.Group
	for n := range 30 {
		g.Go(func() error {
			if c := h.control("PUT", "owner/acme", fmt.Sprintf(`{"maxRunning": %d}`, n)); !c.Applied || *c.MaxRunning != n {
				t.Errorf("%d: %+v", n, c)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	var same bool
	h.sql("select count(*) = 1 and max(version) = max(applied_version) from controls", &same)
	if !same {
		t.Error("the last version is not applied")
	}
}

func TestOwnerNameMayHaveAnyCharacter(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.follow()
	for _, name := range []string{"a/b", "a+b", "a b", "ü%2F", "..", "pause", strings.Repeat("ü", 255)} {
		if c := h.control("POST", "owner/"+strings.ReplaceAll(url.PathEscape(name), "..", "%2E%2E")+"/pause", ""); c.Name != name || !c.Paused {
			t.Errorf("%q: %+v", name, c)
		}
	}
}

func TestInvalidControlIsRefusedWithTheReason(t *testing.T) {
	t.Parallel()
	h := openCuttable(t, func(*gateway.Config) {})
	for path, wrong := range map[string]string{
		"queue/other": "name", "queue/A": "name", "type/a%20b": "name", "job/x": "kind", "owner/%00": "name", "owner/%FF": "name",
		"owner/" + strings.Repeat("a", 256): "name",
	} {
		h.do("PUT", "/api/controls/"+path, `{"paused": true}`, "Content-Type", "application/json").wantError(apierror.InvalidJobRequest, wrong)
	}
	for body, wrong := range map[string]string{
		`{"maxRunning": -1, "startsPerSecond": 0}`: "maxRunning startsPerSecond", `{"x": 1}`: "x", `[]`: "", `{"paused": "yes"}`: "paused",
		`{"startsPerSecond": 1e400}`: "startsPerSecond",
	} {
		h.do("PUT", "/api/controls/queue/mail", body, "Content-Type", "application/json").
			wantError(apierror.InvalidJobRequest, strings.Split(wrong, " ")...)
	}
	h.do("PUT", "/api/controls/queue/mail", "{}", "Content-Type", "text/plain").wantError(apierror.UnsupportedMediaType)
	if c := h.control("DELETE", "queue/other", ""); c.Version != 0 { // it may have been a queue
		t.Errorf("let go: %+v", c)
	}
	h.cut()
	h.get("/api/controls").wantError(apierror.Unavailable)
}

func TestPendingJobShowsItsControls(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.follow()
	h.control("PUT", "queue/default", `{"paused": true, "maxRunning": 1}`)
	h.control("PUT", "type/MAIL", `{"startsPerSecond": 2}`)
	h.control("POST", "owner/other/pause", "")
	blocks := func(id uuid.UUID) string {
		var job struct{ BlockedBy []jobevent.Block }
		h.get("/api/jobs/" + id.String()).want(http.StatusOK).into(&job)
		return fmt.Sprint(job.BlockedBy)
	}
	pending := h.submit(`{"jobType": "MAIL", "payload": 1, "ownerId": "acme"}`)
	if got := blocks(pending); got != "[{pause queue:default} {limit queue:default} {limit type:MAIL}]" {
		t.Errorf("it waits for %s", got)
	}
	running := h.submit(plainJob)
	h.scheduler(running, 1, jobstate.Running, nil)
	if got := blocks(running); got != "[]" {
		t.Errorf("a running job waits for %s", got)
	}
	var list struct {
		Jobs []struct{ BlockedBy []jobevent.Block }
	}
	if h.get("/api/jobs?status=PENDING").want(http.StatusOK).into(&list); len(list.Jobs) != 1 || len(list.Jobs[0].BlockedBy) != 3 {
		t.Errorf("listed %+v", list)
	}
}

func TestAControlThatAnotherClientHasChangedIsNotReplaced(t *testing.T) {
	t.Parallel()
	h := openLocked(t)
	h.follow()
	admin := h.as("", "admin")
	const path = "/api/controls/type/MAIL"
	match := func(method, body, tag string) *response {
		return admin.do(method, path, body, "Content-Type", "application/json", "If-Match", tag)
	}
	none := admin.get(path).want(http.StatusOK).header.Get("ETag")
	first := match(http.MethodPut, `{"maxRunning": 3}`, none).want(http.StatusOK).header.Get("ETag")
	match(http.MethodPut, `{"paused": true}`, none).wantError(apierror.PreconditionFailed) // both saw none
	if read := admin.get(path).header.Get("ETag"); read != first || first == none {
		t.Errorf("set with the ETag %s, after %s, and read with %s", first, none, read)
	}
	second := match(http.MethodPut, `{"maxRunning": 3, "startsPerSecond": 2}`, first).want(http.StatusOK).header.Get("ETag")
	for _, r := range []*response{
		match(http.MethodPut, `{"maxRunning": 5}`, first), match(http.MethodDelete, "", first),
		admin.do(http.MethodPost, path+"/pause", "", "If-Match", first),
	} {
		r.wantError(apierror.PreconditionFailed)
	}
	match(http.MethodPut, `{"maxRunning": 3, "startsPerSecond": 2}`, first).want(http.StatusOK) // sent again: it is as asked
	var shown controlBody
	admin.get(path).into(&shown)
	if shown.Paused || *shown.MaxRunning != 3 || *shown.StartsPerSecond != 2 {
		t.Errorf("refused, and shown as %+v", shown)
	}
	lifted := match(http.MethodDelete, "", `"other", `+second).want(http.StatusOK).header.Get("ETag")
	match(http.MethodPut, `{"maxRunning": 3}`, lifted+`, W/"0"`).want(http.StatusOK) // applied or not
	admin.put(path, `{"maxRunning": 4}`).want(http.StatusOK)                         // without the header, as before
}

func TestALiftedControlIsNoneUntilItIsApplied(t *testing.T) {
	t.Parallel()
	h := open(t)
	pause := func(paused bool, match func(int64) bool) error {
		_, err := h.store.Controls.ChangeControl(t.Context(), nil, apidb.Everyone, jobevent.ControlOwner, "acme", "me", match,
			func(control *jobevent.Control) { control.Paused = paused })
		return err
	}
	none := func(version int64) bool { return version == 0 }
	err := errors.Join(pause(true, none), pause(false, nil), pause(true, none))
	if refused := pause(false, none); err != nil || !errors.Is(refused, controlstore.ErrChanged) {
		t.Errorf("%v, and while it is paused %v", err, refused)
	}
}
