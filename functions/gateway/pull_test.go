package gateway_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway"
	"github.com/jobweaver/jobweaver/shared/apidb/keystore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/pullwire"
	"github.com/jobweaver/jobweaver/shared/webhook"
)

// puller is an instance of pull that hands out the attempts of a test.
type puller struct {
	*httptest.Server

	mu         sync.Mutex
	has        []pullwire.Attempt
	claims     []pullwire.Claim
	heartbeats []pullwire.Heartbeat
	sent       []pullwire.Settle
	saved      []pullwire.Checkpoints
	stops      bool
	over       bool // all attempts are over
	ahead      time.Duration
}

func newPuller(t *testing.T) *puller {
	t.Helper()
	keys, err := webhook.NewCallbackKeys([]string{globalSecret})
	if err != nil {
		t.Fatal(err)
	}
	p := &puller{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !pullwire.IsSecret(keys, r.Header.Get(pullwire.SecretHeader)) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		body, _ := io.ReadAll(r.Body)
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.stops {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Date", time.Now().Add(p.ahead).UTC().Format(http.TimeFormat))
		switch r.URL.Path {
		case pullwire.ClaimPath:
			p.claim(w, body)
		case pullwire.HeartbeatPath:
			p.heartbeats = append(p.heartbeats, decoded[pullwire.Heartbeat](body))
			answer := pullwire.HeartbeatAnswer{Cancelled: []string{}, Lost: []string{}}
			for _, a := range p.heartbeats[len(p.heartbeats)-1].Attempts {
				if p.over {
					answer.Lost = append(answer.Lost, a.Token)
				}
			}
			_ = json.NewEncoder(w).Encode(answer)
		case pullwire.CheckpointPath:
			s := decoded[pullwire.Checkpoints](body)
			p.saved = append(p.saved, s)
			var answer pullwire.Settled
			for _, one := range s.Checkpoints {
				answer.Results = append(answer.Results, pullwire.Answer{Token: one.Token, Status: http.StatusOK})
			}
			_ = json.NewEncoder(w).Encode(answer)
		case pullwire.SettlePath:
			s := decoded[pullwire.Settle](body)
			p.sent = append(p.sent, s)
			var answer pullwire.Settled
			for _, result := range s.Results {
				answer.Results = append(answer.Results, pullwire.Answer{Token: result.Token, Status: http.StatusOK})
			}
			_ = json.NewEncoder(w).Encode(answer)
		}
	}))
	t.Cleanup(p.Close)
	return p
}

func decoded[T any](body []byte) (v T) {
	_ = json.Unmarshal(body, &v)
	return v
}

func (p *puller) claim(w http.ResponseWriter, body []byte) {
	asked := decoded[pullwire.Claim](body)
	p.claims = append(p.claims, asked)
	switch {
	case len(p.has) == 0:
		w.WriteHeader(http.StatusNoContent)
	case asked.Peek:
		w.WriteHeader(http.StatusAccepted)
	default:
		for i := range p.has {
			p.has[i].Token = asked.Instance + "." + p.has[i].Token
		}
		_ = pullwire.Write(w, pullwire.Attempts{Attempts: p.has})
		p.has = nil
	}
}

func (p *puller) give(token string) { p.giveOf(uuid.New(), token) }

func (p *puller) giveOf(job uuid.UUID, token string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var a pullwire.Attempt
	a.JobID, a.Attempt, a.Token, a.JobType, a.Queue, a.TraceID = job.String(), 1, token, "MAIL", "mail", uuid.NewString()
	a.Payload, a.Deadline = json.RawMessage(`{"a":"<b>"}`), time.Now().Add(p.ahead).UTC()
	p.has = append(p.has, a)
}

func (p *puller) last() pullwire.Claim {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.claims[len(p.claims)-1]
}

func openPulling(t *testing.T, pullers ...*puller) *fixture {
	t.Helper()
	return openWith(t, func(cfg *gateway.Config) {
		cfg.Auth = gateway.AuthOn
		for _, p := range pullers {
			cfg.Pull.URLs = append(cfg.Pull.URLs, p.URL)
		}
	})
}

const claimMail = `{"worker": "w", "types": ["MAIL"], "slots": 2, "wait": "300ms"}`

func (c *client) claimed() (tokens []string) {
	c.t.Helper()
	var got pullwire.Attempts
	c.post("/api/workers/claim", claimMail).want(http.StatusOK).into(&got)
	for _, a := range got.Attempts {
		tokens = append(tokens, a.Token)
	}
	return tokens
}

func TestRequestsOfPullWorkersGoToTheInstanceWithTheAttempt(t *testing.T) {
	t.Parallel()
	one, two := newPuller(t), newPuller(t)
	h := openPulling(t, one, two)
	c := h.as("acme", "work")
	c.post("/api/workers/claim", claimMail).want(http.StatusNoContent)
	two.give("second")
	fromTwo := c.claimed()
	one.give("first")
	fromOne := c.claimed()
	if len(fromOne) != 1 || len(fromTwo) != 1 {
		t.Fatalf("got %v and %v", fromOne, fromTwo)
	}
	body, err := json.Marshal(map[string]any{"worker": "w", "results": []map[string]any{
		{"token": fromTwo[0], "status": "COMPLETED", "output": 2}, {"token": "0000000000.x", "status": "COMPLETED"},
		{"token": fromOne[0], "status": "FAILED", "errorCode": "A.B"}, {"token": fromOne[0], "status": "SNOOZED"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	var settled pullwire.Settled
	c.post("/api/workers/settle", string(body)).want(http.StatusOK).into(&settled)
	want := []int{http.StatusOK, http.StatusConflict, http.StatusOK, http.StatusBadRequest}
	for i, answer := range settled.Results {
		if answer.Status != want[i] {
			t.Errorf("result %d is answered %+v", i, answer)
		}
	}
	if settled.Results[1].Error.ErrorCode != apierror.AttemptOver {
		t.Errorf("a token of no instance is answered %+v", settled.Results[1])
	}
	if len(one.sent) != 1 || len(two.sent) != 1 || one.sent[0].Results[0].Token != fromOne[0] ||
		two.sent[0].Owner != "acme" || two.sent[0].Everyone {
		t.Errorf("passed on %+v and %+v", one.sent, two.sent)
	}
	two.mu.Lock()
	two.stops = true
	two.mu.Unlock()
	c.post("/api/workers/settle", `{"worker": "w", "results": [{"token": "`+fromTwo[0]+`", "status": "COMPLETED"}]}`).
		want(http.StatusOK).into(&settled)
	if settled.Results[0].Status != http.StatusServiceUnavailable {
		t.Errorf("with its instance away a result is answered %+v", settled.Results[0])
	}
	var answer pullwire.HeartbeatAnswer
	c.post("/api/workers/heartbeat", `{"worker": "w", "attempts": [{"token": "`+fromOne[0]+`"}, {"token": "0000000000.x"}]}`).
		want(http.StatusOK).into(&answer)
	if len(answer.Lost) != 1 || len(one.heartbeats) != 1 {
		t.Errorf("a heartbeat is answered %+v", answer)
	}
}

func TestCheckpointsGoToTheInstanceWithTheAttempt(t *testing.T) {
	t.Parallel()
	p := newPuller(t)
	h := openPulling(t, p)
	p.give("one")
	c := h.as("acme", "work")
	token := c.claimed()[0]
	large := strings.Repeat("a", 64<<10-2)
	body, err := json.Marshal(map[string]any{"worker": "w", "checkpoints": []any{
		map[string]any{"token": token, "number": 1, "checkpoint": large},
		map[string]any{"token": token, "number": 2, "checkpoint": large + "a"},
		map[string]any{"token": token, "number": 0, "checkpoint": 1},
		map[string]any{"token": token, "number": 3},
		map[string]any{"token": "0000000000.x", "number": 1, "checkpoint": nil},
		7,
	}})
	if err != nil {
		t.Fatal(err)
	}
	var got pullwire.Settled
	c.post("/api/workers/checkpoint", string(body)).want(http.StatusOK).into(&got)
	for i, want := range []struct {
		status int
		code   apierror.Code
		path   string
	}{
		{200, "", ""}, {413, apierror.CheckpointTooLarge, ""}, {400, apierror.InvalidJobRequest, "number"},
		{400, apierror.InvalidJobRequest, "checkpoint"}, {409, apierror.AttemptOver, ""}, {400, apierror.InvalidJobRequest, ""},
	} {
		answer := got.Results[i]
		if answer.Status != want.status || want.code != "" && answer.Error.ErrorCode != want.code ||
			want.path != "" && answer.Error.Details[0].Path != want.path {
			t.Errorf("checkpoint %d is answered %+v %+v", i, answer, answer.Error)
		}
	}
	if len(p.saved) != 1 || len(p.saved[0].Checkpoints) != 1 || p.saved[0].Owner != "acme" || p.saved[0].Everyone ||
		string(p.saved[0].Checkpoints[0].Checkpoint) != `"`+large+`"` {
		t.Errorf("passed on %.200v", p.saved)
	}
	h.as("acme", "submit").post("/api/workers/checkpoint", string(body)).wantError(apierror.Forbidden)
}

// The sizes of outputs and checkpoints are limited, so < must not become \u003c on the way.
func TestMarkupIsPassedOnUnescaped(t *testing.T) {
	t.Parallel()
	p := newPuller(t)
	h := openPulling(t, p)
	p.give("one")
	c := h.as("acme", "work")
	var got pullwire.Attempts
	c.post("/api/workers/claim", claimMail).want(http.StatusOK).into(&got)
	if payload := string(got.Attempts[0].Payload); payload != `{"a":"<b>"}` {
		t.Errorf("the payload is %s", payload)
	}
	const page = `"<p>this & that</p>"`
	entry := `{"worker": "w", "%s": [{"token": "` + got.Attempts[0].Token + `", %s: ` + page + `}]}`
	c.post("/api/workers/checkpoint", fmt.Sprintf(entry, "checkpoints", `"number": 1, "checkpoint"`)).want(http.StatusOK)
	c.post("/api/workers/settle", fmt.Sprintf(entry, "results", `"status": "COMPLETED", "output"`)).want(http.StatusOK)
	if len(p.saved) != 1 || string(p.saved[0].Checkpoints[0].Checkpoint) != page {
		t.Errorf("saved is %+v", p.saved)
	}
	if len(p.sent) != 1 || string(p.sent[0].Results[0].Output) != page {
		t.Errorf("settled is %+v", p.sent)
	}
}

func TestAnAttemptHasTheTagsOfItsJob(t *testing.T) {
	t.Parallel()
	p := newPuller(t)
	h := openPulling(t, p)
	job := h.as("acme", "submit").post("/api/jobs", `{"jobType": "MAIL", "payload": 1, "tags": ["a", "b"]}`).want(http.StatusAccepted)
	var accepted struct{ JobID uuid.UUID }
	job.into(&accepted)
	p.giveOf(accepted.JobID, "tagged")
	p.give("plain")
	var got pullwire.Attempts
	h.as("acme", "work").post("/api/workers/claim", claimMail).want(http.StatusOK).into(&got)
	if len(got.Attempts) != 2 || !slices.Equal(got.Attempts[0].Tags, []string{"a", "b"}) {
		t.Fatalf("got %+v", got)
	}
	if tags := got.Attempts[1].Tags; tags == nil || len(tags) > 0 {
		t.Errorf("a job without tags has %v", tags)
	}
}

func TestADeadlineIsByTheGatewaysClock(t *testing.T) {
	t.Parallel()
	p := newPuller(t)
	h := openPulling(t, p).as("acme", "work")
	for _, ahead := range []time.Duration{0, time.Hour, -time.Hour} {
		p.mu.Lock()
		p.ahead = ahead
		p.mu.Unlock()
		p.give("a")
		var got pullwire.Attempts
		h.post("/api/workers/claim", claimMail).want(http.StatusOK).into(&got)
		if off := time.Until(got.Attempts[0].Deadline).Abs(); off > time.Minute {
			t.Errorf("the clock of pull is %v ahead, the deadline is off by %v", ahead, off)
		}
	}
}

func TestRoleWorkCoversTheTypesAndQueuesOfTheKey(t *testing.T) {
	t.Parallel()
	p := newPuller(t)
	h := openPulling(t, p)
	for _, roles := range [][]string{{"submit"}, {"read"}, {"operate"}, {"submit", "read", "operate"}} {
		h.as("acme", roles...).post("/api/workers/claim", claimMail).wantError(apierror.Forbidden)
	}
	h.as("acme", "work").get("/api/jobs").wantError(apierror.Forbidden)
	limited := &client{t: t, base: h.base, key: h.key(keystore.Key{
		OwnerID: "acme", Roles: []string{"work"}, Types: []string{"MAIL"}, Queues: []string{"mail"},
	}).Reveal()}
	limited.post("/api/workers/claim", `{"worker": "w", "types": ["MAIL", "SLOW"]}`).wantError(apierror.Forbidden)
	limited.post("/api/workers/claim", `{"worker": "w", "types": ["MAIL"], "queues": ["default"]}`).wantError(apierror.Forbidden)
	limited.post("/api/workers/claim", claimMail).want(http.StatusNoContent)
	if got := p.last(); got.Owner != "acme" || got.Everyone || len(got.Queues) != 1 || got.Queues[0] != "mail" {
		t.Errorf("passed on %+v", got)
	}
	h.as("", "work").post("/api/workers/claim", claimMail).want(http.StatusNoContent)
	if got := p.last(); !got.Everyone {
		t.Errorf("a key of the installation asks for %+v", got)
	}
	admin := h.as("acme", "admin")
	admin.post("/api/keys", `{"name": "a", "roles": ["read"], "workTypes": ["MAIL"]}`).wantError(apierror.InvalidJobRequest, "workTypes")
	var made struct{ Key string }
	admin.post("/api/keys", `{"name": "a", "roles": ["work"], "workTypes": ["MAIL"], "workQueues": null}`).want(http.StatusCreated).into(&made)
	own := &client{t: t, base: h.base, key: made.Key}
	own.post("/api/workers/claim", claimMail).want(http.StatusNoContent)
	own.post("/api/workers/claim", `{"worker": "w", "types": ["SLOW"]}`).wantError(apierror.Forbidden)
}

func TestWrongRequestsOfPullWorkersAreRefused(t *testing.T) {
	t.Parallel()
	h := openPulling(t, newPuller(t))
	c := h.as("acme", "work")
	for path, bodies := range map[string]map[string]string{
		"/api/workers/claim": {
			`{}`: "worker", `{"worker": "w", "types": []}`: "types", `{"worker": "", "types": ["A"]}`: "worker",
			`{"worker": "w", "types": ["A", "A"]}`: "types[1]", `{"worker": "w", "types": ["A"], "slots": 0}`: "slots",
			`{"worker": "w", "types": ["A"], "slots": 501}`: "slots", `{"worker": "w", "types": ["A"], "wait": "1h"}`: "wait",
			`{"worker": "w", "types": ["A"], "queues": ["A B"]}`: "queues[0]", `{"worker": "w", "types": ["A", "ALERT"]}`: "types[1]", `{"worker": "w", "types": ["A"], "x": 1}`: "x",
		},
		"/api/workers/heartbeat": {
			`{"attempts": []}`: "worker", `{"worker": "w", "attempts": [{}]}`: "attempts[0].token",
			`{"worker": "w", "attempts": [{"token": "a", "progress": {"percent": 101}}]}`: "attempts[0].progress.percent",
			`{"worker": "w", "attempts": [{"token": "a", "log": [{"level": "info"}]}]}`:   "attempts[0].log[0].text",
		},
		"/api/workers/checkpoint": {`{"worker": "w", "checkpoints": []}`: "checkpoints", `{"checkpoints": [{"token": "a"}]}`: "worker"},
		"/api/workers/settle":     {`{"worker": "w", "results": []}`: "results", `{"results": [{"token": "a"}]}`: "worker"},
	} {
		for body, at := range bodies {
			c.post(path, body).wantError(apierror.InvalidJobRequest, at)
		}
		c.post(path, `[`).wantError(apierror.InvalidJobRequest, "")
		c.post(path, `{}`, "Content-Type", "text/plain").wantError(apierror.UnsupportedMediaType)
	}
	var settled pullwire.Settled
	c.post("/api/workers/settle", `{"worker": "w", "results": [{"token": "a", "status": "COMPLETED", "delayMs": 5}, 7]}`).
		into(&settled)
	for _, answer := range settled.Results {
		if answer.Status != http.StatusBadRequest {
			t.Errorf("answered %+v", answer)
		}
	}
}

func TestWithoutPullThereAreNoAttempts(t *testing.T) {
	t.Parallel()
	openLocked(t).as("acme", "work").post("/api/workers/claim", claimMail).wantError(apierror.Unavailable)
	h := openWith(t, func(cfg *gateway.Config) {
		cfg.Auth, cfg.Pull.URLs = gateway.AuthOn, []string{"http://127.0.0.1:1"}
	})
	c := h.as("acme", "work")
	c.post("/api/workers/claim", claimMail).wantError(apierror.Unavailable)
	c.post("/api/workers/heartbeat", `{"worker": "w"}`).want(http.StatusOK)
}
