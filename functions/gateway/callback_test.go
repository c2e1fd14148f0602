package gateway_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/functions/gateway"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/secret"
	"github.com/jobweaver/jobweaver/shared/webhook"
)

// formerSecret is about to be replaced, and still accepted.
const (
	globalSecret = "whsec_Z2xvYmFsIHNlY3JldCBvZiB0aGUgdGVzdHMsIG51bWJlciAx"
	formerSecret = "whsec_Z2xvYmFsIHNlY3JldCBvZiB0aGUgdGVzdHMsIG51bWJlciAy"
)

func attemptSecret(t *testing.T, id uuid.UUID, attempt int) string {
	t.Helper()
	keys, err := webhook.NewCallbackKeys([]string{globalSecret})
	if err != nil {
		t.Fatal(err)
	}
	return keys.Secret(jobevent.AttemptToken(id, attempt))
}

func callbackJSON(id uuid.UUID, attempt int, more string) string {
	return fmt.Sprintf(`{"jobId": %q, "attempt": %d, %s}`, id, attempt, more)
}

const done = `"status": "COMPLETED", "output": {"shipment": 17}`

// callBack posts a callback with the secret of its attempt.
func (h *fixture) callBack(id uuid.UUID, attempt int, more string) *response {
	h.t.Helper()
	return h.post("/api/jobs/callback", callbackJSON(id, attempt, more), "X-Callback-Secret", attemptSecret(h.t, id, attempt))
}

// signed posts a callback with a signature.
func (h *fixture) signed(secret, messageID string, at time.Time, body string) *response {
	h.t.Helper()
	signer, err := webhook.NewSigner([]string{secret})
	if err != nil {
		h.t.Fatal(err)
	}
	header := http.Header{}
	signer.Sign(header, messageID, at, []byte(body))
	var headers []string
	for name := range header {
		headers = append(headers, name, header.Get(name))
	}
	return h.post("/api/jobs/callback", body, headers...)
}

// waiting makes a job whose attempt waits for a callback until the deadline.
func (h *fixture) waiting(attempt int, deadlineIn time.Duration) uuid.UUID {
	h.t.Helper()
	id := h.submit(plainJob)
	h.broker.next(h.t)
	h.scheduler(id, 1, jobstate.Waiting, ofAttempt(attempt, deadlineIn))
	return id
}

func ofAttempt(attempt int, deadlineIn time.Duration) func(*jobevent.Status) {
	return func(s *jobevent.Status) {
		s.Attempt = attempt
		if deadlineIn != 0 {
			at := time.Now().Add(deadlineIn).UTC()
			s.CallbackDeadlineAt = &at
		}
	}
}

func TestCallbackIsStoredAndPublished(t *testing.T) {
	t.Parallel()
	h := open(t)
	for name, c := range map[string]struct{ more, want string }{
		"completed": {done, `"output":{"shipment":17}`},
		"failed": {
			`"status": "FAILED", "errorCode": "SHOP.SOLD_OUT", "message": "none left", "retryable": false`,
			`"errorCode":"SHOP.SOLD_OUT","message":"none left","retryable":false,"kind":"failed"`,
		},
		"failed, and no more": {`"status": "FAILED"`, `"errorCode":"WORKER.CALLBACK_FAILED","retryable":true,"kind":"failed"`},
	} {
		id := h.waiting(1, time.Hour)
		r := h.callBack(id, 1, c.more).want(http.StatusOK)
		if r.jobID() != id || r.header.Get("Idempotent-Replayed") != "" {
			t.Errorf("%s: answered %s, %v", name, r.body, r.header)
		}
		e := h.broker.next(t)
		data := strings.ReplaceAll(string(e.Data()), " ", "")
		if e.ID() != jobevent.OutcomeID(id, 1, "callback") || e.Source() != "/jobweaver/gateway" || e.Subject() != id.String() ||
			!strings.Contains(data, strings.ReplaceAll(c.want, " ", "")) || !strings.Contains(data, `"workerId":""`) ||
			strings.Contains(data, "startedAt") {
			t.Errorf("%s: published %s", name, e)
		}
		for range 2 {
			if r := h.callBack(id, 1, c.more).want(http.StatusOK); r.header.Get("Idempotent-Replayed") != "true" {
				t.Errorf("%s: the repeated callback is not marked as replayed", name)
			}
		}
		if len(h.broker.published) > 0 {
			t.Errorf("%s: the repeated callback is published", name)
		}
	}
}

func TestResultOfACallbackDependsOnItsAttempt(t *testing.T) {
	t.Parallel()
	h := open(t)
	over := apierror.InvalidStateTransition
	timedOut := func(s *jobevent.Status) {
		s.History = append(s.History, jobevent.Transition{Attempt: 2, Outcome: "failed", ErrorCode: "WORKER.CALLBACK_TIMEOUT"})
	}
	for name, c := range map[string]struct {
		status  jobstate.Status // empty: the API has no status of the job
		attempt int
		more    func(*jobevent.Status)
		command string
		refused apierror.Code // empty: callbacks are accepted, including progress
	}{
		"unknown to the API":              {},
		"queued":                          {status: jobstate.Queued, attempt: 2},
		"running":                         {status: jobstate.Running, attempt: 2},
		"waiting":                         {status: jobstate.Waiting, attempt: 2, more: ofAttempt(2, time.Minute)},
		"waiting too long":                {status: jobstate.Waiting, attempt: 2, more: ofAttempt(2, -time.Millisecond), refused: apierror.CallbackExpired},
		"given up":                        {status: jobstate.Retrying, attempt: 2, more: timedOut, refused: apierror.CallbackExpired},
		"given up long ago":               {status: jobstate.Running, attempt: 5, more: timedOut, refused: apierror.CallbackExpired},
		"failed before":                   {status: jobstate.Retrying, attempt: 2, refused: over},
		"lost":                            {status: jobstate.Pending, attempt: 2, refused: over},
		"snoozed":                         {status: jobstate.Scheduled, attempt: 2, refused: over},
		"completed":                       {status: jobstate.Completed, attempt: 2, refused: over},
		"cancelled":                       {status: jobstate.Cancelled, attempt: 2, refused: over},
		"an old one":                      {status: jobstate.Waiting, attempt: 3, refused: over},
		"the next of one that waits":      {status: jobstate.Waiting, attempt: 1, more: ofAttempt(1, -time.Hour)},
		"the next of one that is retried": {status: jobstate.Retrying, attempt: 1},
		"the next of a job that ended":    {status: jobstate.Failed, attempt: 1, refused: over},
		"of a job that is to run again":   {status: jobstate.Failed, attempt: 1, command: "retry"},
		"of a job that is to be deleted":  {status: jobstate.Failed, attempt: 1, command: "delete", refused: over},
		"under a cancel":                  {status: jobstate.Running, attempt: 2, command: "cancel", refused: over},
		"the next under a cancel":         {status: jobstate.Pending, attempt: 1, command: "cancel", refused: over},
		"under a reschedule":              {status: jobstate.Retrying, attempt: 1, command: "reschedule"},
	} {
		id := h.submit(plainJob)
		if c.status != "" {
			h.scheduler(id, 3, c.status, func(s *jobevent.Status) {
				if s.Attempt = c.attempt; c.more != nil {
					c.more(s)
				}
				s.Attempt = c.attempt
			})
		}
		if c.command != "" {
			h.ask(id, c.command).want(http.StatusAccepted)
		}
		progress := `"status": "PROGRESS", "progress": {"percent": 40}`
		if c.refused == "" {
			h.callBack(id, 2, progress).want(http.StatusOK)
			h.callBack(id, 2, done).want(http.StatusOK)
			h.callBack(id, 2, progress).wantError(apierror.InvalidStateTransition)
			continue
		}
		for _, more := range []string{progress, done} {
			r := h.callBack(id, 2, more)
			if r.wantError(c.refused); r.error().JobID == nil || *r.error().JobID != id {
				t.Errorf("%s: the conflict is of %v", name, r.error().JobID)
			}
		}
		if h.sqlInt("select count(*) from callbacks where job_id = $1", id) != 0 {
			t.Errorf("%s: it was refused, and is kept", name)
		}
	}
}

func (h *fixture) sqlInt(query string, args ...any) (n int) {
	h.t.Helper()
	h.sql(query, &n, args...)
	return n
}

func TestRepeatedCallbackGetsTheSameAnswerAlways(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.waiting(1, time.Hour)
	failed := `"status": "FAILED", "errorCode": "A"`
	h.callBack(id, 1, failed).want(http.StatusOK)
	again := func(when string) {
		t.Helper()
		if r := h.callBack(id, 1, failed).want(http.StatusOK); r.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%s: it is new", when)
		}
		if r := h.callBack(id, 1, done); r.error().Message == "" || r.status != http.StatusConflict ||
			!strings.Contains(r.error().Message, "a different callback") {
			t.Errorf("%s: another one: %d %s", when, r.status, r.body)
		}
	}
	again("at once")
	h.scheduler(id, 2, jobstate.Failed, ofAttempt(1, 0))
	again("when the job has ended")
	h.command(id, "retry")
	again("while it is to run again")
	h.scheduler(id, 3, jobstate.Waiting, func(s *jobevent.Status) { answered(1, true)(s); s.Attempt = 2 })
	again("when it runs again")
	h.callBack(id, 2, done).want(http.StatusOK)
	if err := h.store.Callbacks.Answer(t.Context()); err != nil {
		t.Fatal(err)
	}
	again("when it has been answered")
	if n := h.sqlInt("select count(*) from callbacks where job_id = $1", id); n != 2 {
		t.Errorf("%d are kept", n)
	}
}

func TestCallbackWithoutAValidSecretRevealsNothing(t *testing.T) {
	t.Parallel()
	h := open(t)
	id, gone := h.waiting(1, time.Hour), uuid.Must(uuid.NewV7())
	for name, c := range map[string]struct {
		secret string
		body   string
	}{
		"no secret":                       {"", callbackJSON(id, 1, done)},
		"a wrong one":                     {"whsec_" + strings.Repeat("A", 44), callbackJSON(id, 1, done)},
		"that of another attempt":         {attemptSecret(t, id, 2), callbackJSON(id, 1, done)},
		"that of another job":             {attemptSecret(t, gone, 1), callbackJSON(id, 1, done)},
		"a wrong one and no job":          {"x", callbackJSON(gone, 1, done)},
		"no secret and no job":            {"", callbackJSON(gone, 1, done)},
		"a wrong one and a bad body":      {"x", callbackJSON(id, 1, `"status": "DONE", "x": 1`)},
		"a wrong one and no JSON":         {"x", `{"jobId`},
		"that of no attempt and no JSON":  {attemptSecret(t, uuid.Nil, 0) + "x", `{"jobId`},
		"a wrong one and an old attempt":  {"x", callbackJSON(id, 99, done)},
		"a global one of other spelling":  {strings.ToLower(globalSecret), callbackJSON(id, 1, done)},
		"a global one with more after it": {globalSecret + "A", callbackJSON(id, 1, done)},
	} {
		h.post("/api/jobs/callback", c.body, "X-Callback-Secret", c.secret).wantError(apierror.Unauthorized)
		if t.Failed() {
			t.Fatal(name)
		}
	}
	h.post("/api/jobs/callback", callbackJSON(gone, 1, done), "X-Callback-Secret", attemptSecret(t, gone, 1)).wantError(apierror.JobNotFound)
	h.post("/api/jobs/callback", callbackJSON(gone, 1, done), "X-Callback-Secret", globalSecret).wantError(apierror.JobNotFound)
	h.post("/api/jobs/callback", callbackJSON(id, 1, `"status": "DONE", "x": 1`), "X-Callback-Secret", attemptSecret(t, id, 1)).
		wantError(apierror.InvalidJobRequest, "status", "x")
	h.post("/api/jobs/callback", `{`, "X-Callback-Secret", globalSecret).wantError(apierror.InvalidJobRequest)
	h.post("/api/jobs/callback", callbackJSON(id, 1, done), "X-Callback-Secret", globalSecret, "Content-Type", "text/plain").
		wantError(apierror.UnsupportedMediaType)
	h.post("/api/jobs/callback", strings.Repeat(" ", 600<<10), "X-Callback-Secret", globalSecret).wantError(apierror.PayloadTooLarge)
	if n := h.sqlInt("select count(*) from callbacks"); n != 0 {
		t.Errorf("%d are kept", n)
	}
	h.post("/api/jobs/callback", callbackJSON(id, 1, done), "X-Callback-Secret", formerSecret).want(http.StatusOK)
}

func TestWithoutSecretsEveryCallbackIsRefused(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.waiting(1, time.Hour)
	f := mustNew(t, gateway.Config{Auth: gateway.AuthOff, Queues: []string{"default"}}, h.store.Store)
	server := httptest.NewServer(f.Handler())
	t.Cleanup(server.Close)
	other := &fixture{t: t, client: &client{t: t, base: server.URL}}
	for _, secret := range []string{"", globalSecret, attemptSecret(t, id, 1)} {
		other.post("/api/jobs/callback", callbackJSON(id, 1, done), "X-Callback-Secret", secret).wantError(apierror.Unauthorized)
	}
	other.signed(globalSecret, "a", time.Now(), callbackJSON(id, 1, done)).wantError(apierror.Unauthorized)
	if _, err := gateway.New(gateway.Config{Callbacks: webhook.CallbackConfig{Secrets: secret.AllOf("whsec_short")}}, h.store.Store); err == nil ||
		!strings.HasPrefix(err.Error(), "CALLBACK_SECRETS") || strings.Contains(err.Error(), "short") {
		t.Errorf("a bad secret: %v", err)
	}
}

func TestASignedCallbackCountsOnce(t *testing.T) {
	t.Parallel()
	h := open(t)
	id, other := h.waiting(1, time.Hour), h.waiting(1, time.Hour)
	now := time.Now()
	at := func(percent int) string {
		return callbackJSON(id, 1, `"status": "PROGRESS", "progress": {"percent": `+strconv.Itoa(percent)+`}`)
	}
	own := attemptSecret(t, id, 1)
	h.signed(own, "m1", now, at(10)).want(http.StatusOK)
	h.signed(globalSecret, "m2", now, at(60)).want(http.StatusOK)
	for _, late := range []time.Duration{0, time.Second, -4 * time.Minute} {
		if r := h.signed(own, "m1", now.Add(late), at(10)).want(http.StatusOK); r.header.Get("Idempotent-Replayed") != "true" {
			t.Error("a message that was taken is new")
		}
	}
	if got := h.percent(id); got != 60 {
		t.Errorf("a message that comes again makes it %d %%", got)
	}
	// A sender that restarts its message ids for each attempt, or sends none, is accepted, too.
	h.signed(own, "m1", now, at(70)).want(http.StatusOK)
	h.signed(attemptSecret(t, other, 1), "m1", now, callbackJSON(other, 1, done)).want(http.StatusOK)
	if got := h.percent(id); got != 70 || h.sqlInt("select count(*) from callbacks where job_id = $1", other) != 1 {
		t.Errorf("%d %%, and another's message is not kept", got)
	}
	for name, r := range map[string]*response{
		"an old one":            h.signed(own, "m3", now.Add(-6*time.Minute), at(80)),
		"one of tomorrow":       h.signed(own, "m3", now.Add(6*time.Minute), at(80)),
		"another attempt's":     h.signed(attemptSecret(t, id, 2), "m3", now, at(80)),
		"one by another secret": h.signed("whsec_"+strings.Repeat("A", 44), "m3", now, at(80)),
	} {
		if r.wantError(apierror.Unauthorized); t.Failed() {
			t.Fatal(name)
		}
	}
	// A refused message does not count as sent: it is accepted later, when it is valid.
	h.command(id, "cancel")
	h.signed(own, "m4", now, callbackJSON(id, 1, done)).wantError(apierror.InvalidStateTransition)
	h.scheduler(id, 2, jobstate.Waiting, func(s *jobevent.Status) { answered(1, false)(s); s.Attempt = 1 })
	if r := h.signed(own, "m4", now, callbackJSON(id, 1, done)).want(http.StatusOK); r.header.Get("Idempotent-Replayed") != "" {
		t.Error("a message that was refused counts as taken")
	}
	h.sql("update webhook_ids set seen_at = seen_at - interval '16 min'", nil)
	if err := h.store.Callbacks.Answer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := h.sqlInt("select count(*) from webhook_ids"); n != 0 {
		t.Errorf("%d old messages are remembered", n)
	}
}

func (h *fixture) percent(id uuid.UUID) int {
	h.t.Helper()
	var job struct{ Progress *struct{ Percent int } }
	h.get("/api/jobs/" + id.String()).want(http.StatusOK).into(&job)
	if job.Progress == nil {
		return -1
	}
	return job.Progress.Percent
}

func TestProgressBelongsToTheWaitingAttempt(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.waiting(2, time.Hour)
	at := func(attempt, percent int) *response {
		return h.callBack(id, attempt, `"status": "PROGRESS", "progress": {"percent": `+strconv.Itoa(percent)+`, "message": "packing"}`)
	}
	at(2, 30).want(http.StatusOK)
	at(1, 90).wantError(apierror.InvalidStateTransition)
	if got := h.percent(id); got != 30 {
		t.Errorf("shows %d %%", got)
	}
	var job struct{ CallbackDeadlineAt *time.Time }
	if h.get("/api/jobs/" + id.String()).into(&job); job.CallbackDeadlineAt == nil {
		t.Error("a job that waits shows no deadline")
	}
	var page struct {
		Jobs []struct{ CallbackDeadlineAt *time.Time }
	}
	if h.get("/api/jobs").into(&page); len(page.Jobs) != 1 || page.Jobs[0].CallbackDeadlineAt == nil {
		t.Error("a list shows no deadline")
	}
	h.callBack(id, 2, done).want(http.StatusOK)
	at(2, 50).wantError(apierror.InvalidStateTransition)
	h.scheduler(id, 2, jobstate.Completed, ofAttempt(2, 0))
	at(2, 60).wantError(apierror.InvalidStateTransition)
	if got := h.percent(id); got != -1 {
		t.Errorf("after the end it shows %d %%", got)
	}
}

func TestNoCommandIsAcceptedWhileACallbackIsUnconfirmed(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.waiting(1, time.Hour)
	h.callBack(id, 1, done).want(http.StatusOK)
	r := h.ask(id, "cancel")
	if r.wantError(apierror.InvalidStateTransition); !strings.Contains(r.error().Message, "callback") {
		t.Errorf("it returned %s", r.error().Message)
	}
	h.scheduler(id, 2, jobstate.Retrying, ofAttempt(1, 0))
	h.ask(id, "cancel").want(http.StatusAccepted)
}

func TestOneOfConcurrentEqualCallbacksIsStored(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.waiting(1, time.Hour)
	var all errgroup.Group
	var mu sync.Mutex
	fresh := 0
	for range 50 {
		all.Go(func() error {
			if r := h.callBack(id, 1, done).want(http.StatusOK); r.header.Get("Idempotent-Replayed") == "" {
				mu.Lock()
				fresh++
				mu.Unlock()
			}
			return nil
		})
	}
	_ = all.Wait()
	if n := h.sqlInt("select count(*) from callbacks"); n != 1 || fresh != 1 {
		t.Errorf("%d are kept, %d answered as new", n, fresh)
	}
	h.broker.next(t)
	if len(h.broker.published) > 0 {
		t.Error("the callback is published twice")
	}
}

func TestOneOfConcurrentCancelAndCallbackIsAccepted(t *testing.T) {
	t.Parallel()
	h := open(t)
	var won [2]int
	for range 150 {
		id := h.waiting(1, time.Hour)
		var callback, cancel *response
		var both errgroup.Group
		both.Go(func() error { callback = h.callBack(id, 1, done); return nil })
		both.Go(func() error { cancel = h.ask(id, "cancel"); return nil })
		_ = both.Wait()
		switch {
		case callback.status == http.StatusOK && cancel.status == http.StatusConflict:
			won[0]++
		case callback.status == http.StatusConflict && cancel.status == http.StatusAccepted:
			won[1]++
		default:
			t.Fatalf("the callback is answered %d, the cancel %d", callback.status, cancel.status)
		}
		h.broker.next(t)
	}
	t.Logf("the callback was first %d times, the cancel %d times", won[0], won[1])
}

// TestNothingOfACallbackIsLogged must not run in parallel: the log belongs to the process.
func TestNothingOfACallbackIsLogged(t *testing.T) {
	var log lockedBuffer
	was := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	defer slog.SetDefault(was)
	h := openCuttable(t, func(*gateway.Config) {})
	id := h.waiting(1, time.Hour)
	const canary = "canary-0xfeed"
	secret := attemptSecret(t, id, 1)
	bodies := []string{
		callbackJSON(id, 1, `"status": "PROGRESS", "progress": {"percent": 1, "message": "`+canary+`"}`),
		callbackJSON(id, 1, `"status": "FAILED", "errorCode": "A", "message": "`+canary+`"`),
		callbackJSON(id, 1, `"status": "COMPLETED", "output": "`+canary+`"`), // a different outcome: 409
		callbackJSON(id, 1, `"status": "COMPLETED", "`+canary+`": 1`), `{"` + canary, canary,
	}
	ask := func() {
		for _, body := range bodies {
			for _, given := range []string{secret, canary, globalSecret} {
				h.post("/api/jobs/callback", body, "X-Callback-Secret", given)
			}
			h.signed(secret, canary, time.Now(), body)
		}
	}
	h.broker.set(errAway)
	ask()
	h.sql("alter table callbacks rename column output to away", nil)
	other := h.waitingUnpublished()
	h.failing(callbackJSON(other, 1, `"status": "COMPLETED", "output": "`+canary+`"`))
	h.cut()
	ask()
	h.stop()
	text := log.String()
	if !strings.Contains(text, "cannot serve request") {
		t.Errorf("the log is not caught: %s", text)
	}
	for _, never := range []string{canary, secret, globalSecret, formerSecret, secret[6:], globalSecret[6:]} {
		if strings.Contains(text, never) {
			t.Errorf("%q is in the log:\n%s", never, text)
		}
	}
}

// failing posts a callback that must be answered with 500, which the contract does not have.
func (h *fixture) failing(body string) {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), http.MethodPost, h.base+"/api/jobs/callback", strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Callback-Secret", globalSecret)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusInternalServerError {
		h.t.Errorf("answered %d", res.StatusCode)
	}
}

// waitingUnpublished is waiting while no test reads the published events.
func (h *fixture) waitingUnpublished() uuid.UUID {
	h.t.Helper()
	id := h.submit(plainJob)
	h.scheduler(id, 1, jobstate.Waiting, ofAttempt(1, time.Hour))
	return id
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
