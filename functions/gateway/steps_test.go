package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/functions/gateway"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// keptStep is a step in answers.
type keptStep struct {
	Name, SavedAt string
	Result        json.RawMessage
	Until         *string
	Attempt       int
	TookMs        *int64
	Bytes         int
}

func stepBody(token, members string) string {
	return `{"worker": "w", "token": "` + token + `", ` + members + `}`
}

func (c *client) save(token, members string) (kept keptStep) {
	c.t.Helper()
	c.post("/api/workers/steps", stepBody(token, members)).want(http.StatusOK).into(&kept)
	return kept
}

func TestStepsAreKeptForLaterAttempts(t *testing.T) {
	t.Parallel()
	p := newPuller(t)
	h := openPulling(t, p)
	c := h.as("acme", "work", "submit", "read")
	id, token := c.attemptOf(p)
	first := c.save(token, `"name": "page 1", "result": {"html": "<b>"}, "tookMs": 12`)
	if first.Name != "page 1" || string(first.Result) != `{"html":"<b>"}` || first.Attempt != 1 || *first.TookMs != 12 || first.Until != nil {
		t.Errorf("%+v", first)
	}
	if again := c.save(token, `"name": "page 1", "result": 2`); string(again.Result) != string(first.Result) || again.SavedAt != first.SavedAt {
		t.Errorf("a second save is answered %+v", again)
	}
	const until = "2036-01-01T00:00:00Z"
	if slept := c.save(token, `"name": "cool off", "until": "`+until+`"`); slept.Until == nil || *slept.Until != until || string(slept.Result) != "null" {
		t.Errorf("%+v", slept)
	}
	var page struct {
		Steps []keptStep
		Next  *string
	}
	c.post("/api/workers/steps/read", stepBody(token, `"after": null`)).want(http.StatusOK).into(&page)
	if len(page.Steps) != 2 || page.Steps[0].Name != "cool off" || string(page.Steps[1].Result) != string(first.Result) || page.Next != nil {
		t.Errorf("%+v", page)
	}
	c.post("/api/workers/steps/read", stepBody(token, `"after": "cool off"`)).want(http.StatusOK).into(&page)
	if len(page.Steps) != 1 || page.Steps[0].Name != "page 1" {
		t.Errorf("%+v", page)
	}
	var job struct{ Steps []keptStep }
	c.get("/api/jobs/" + id).want(http.StatusOK).into(&job)
	if len(job.Steps) != 2 || job.Steps[0].Bytes != len(`{"html": "<b>"}`) || job.Steps[0].SavedAt != first.SavedAt || *job.Steps[1].Until != until {
		t.Errorf("%+v", job)
	}
}

func TestLargeStepsComeInPagesAndAreNotAllShown(t *testing.T) {
	t.Parallel()
	p := newPuller(t)
	h := openPulling(t, p)
	c := h.as("acme", "work", "submit", "read")
	id, token := c.attemptOf(p)
	large := `"` + strings.Repeat("x", 256<<10-2) + `"`
	for i := range 6 {
		c.save(token, fmt.Sprintf(`"name": "%d", "result": %s`, i, large))
	}
	c.post("/api/workers/steps", stepBody(token, `"name": "a", "result": `+large[:9]+large)).wantError(apierror.InvalidJobRequest)
	c.post("/api/workers/steps", stepBody(token, `"name": "a", "result": [`+large+`]`)).wantError(apierror.PayloadTooLarge)
	var page struct {
		Steps []keptStep
		Next  *string
	}
	c.post("/api/workers/steps/read", stepBody(token, `"after": null`)).want(http.StatusOK).into(&page)
	if len(page.Steps) != 4 || page.Next == nil || *page.Next != "3" || len(page.Steps[3].Result) != len(large) {
		t.Errorf("a page of %d steps, next %v", len(page.Steps), page.Next)
	}
	var job struct{ Steps []keptStep }
	c.get("/api/jobs/" + id).want(http.StatusOK).into(&job)
	if len(job.Steps) != 6 || len(job.Steps[0].Result) != len(large) || string(job.Steps[1].Result) != "null" || job.Steps[1].Bytes != len(large) {
		t.Errorf("%d steps are shown", len(job.Steps))
	}
	h.sql("update steps set bytes = 16777216 where name = '0'", nil)
	r := c.post("/api/workers/steps", stepBody(token, `"name": "a"`))
	if r.wantError(apierror.InvalidJobRequest); !strings.Contains(string(r.body), `"steps"`) {
		t.Errorf("%s", r.body)
	}
}

func TestStepsThatCannotBeAreRefused(t *testing.T) {
	t.Parallel()
	p := newPuller(t)
	h := openPulling(t, p)
	c := h.as("acme", "work", "submit", "read")
	id, token := c.attemptOf(p)
	for _, wrong := range []string{"nonsense", "0000000000." + id + ".1.x"} {
		c.post("/api/workers/steps", stepBody(wrong, `"name": "a"`)).wantError(apierror.AttemptOver)
		c.post("/api/workers/steps/read", stepBody(wrong, `"after": null`)).wantError(apierror.AttemptOver)
	}
	h.as("acme", "submit").post("/api/workers/steps", stepBody(token, `"name": "a"`)).wantError(apierror.Forbidden)
	p.mu.Lock()
	p.over = true
	p.mu.Unlock()
	c.post("/api/workers/steps", stepBody(token, `"name": "a"`)).wantError(apierror.AttemptOver)
}

func TestStepsAreSealedEachForItsName(t *testing.T) {
	t.Parallel()
	cfg, _ := newSealer(t)
	p := newPuller(t)
	h := openWith(t, func(c *gateway.Config) {
		c.Auth, c.Sealing, c.Pull.URLs = gateway.AuthOn, cfg, []string{p.URL}
	})
	c := h.as("acme", "work", "submit", "read")
	id, token := c.attemptOf(p)
	c.save(token, `"name": "a", "result": "`+sealedCanary+`"`)
	c.save(token, `"name": "b", "result": 2`)
	var stored string
	if h.sql("select string_agg(result, ' ') from steps", &stored); strings.Contains(stored, sealedCanary) || !jobevent.IsSealed(strings.Trim(stored, `"`)) {
		t.Errorf("stored as %s", stored)
	}
	var job struct {
		Steps  []keptStep
		Sealed []string
	}
	c.get("/api/jobs/" + id).want(http.StatusOK).into(&job)
	if string(job.Steps[0].Result) != `"`+sealedCanary+`"` || len(job.Sealed) > 0 {
		t.Errorf("%+v", job)
	}
	h.sql("update steps set result = (select result from steps where name = 'a') where name = 'b'", nil)
	c.get("/api/jobs/" + id).want(http.StatusOK).into(&job)
	if string(job.Steps[1].Result) != "null" || fmt.Sprint(job.Sealed) != "[steps]" {
		t.Errorf("the result of another step is shown: %+v", job)
	}
	c.post("/api/workers/steps/read", stepBody(token, `"after": "a"`)).wantError(apierror.Unavailable)
	if c.save(token, `"name": "a", "result": 1`).Result[0] != '"' {
		t.Error("a sealed step is not answered as it was saved")
	}
}
