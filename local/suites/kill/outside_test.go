package kill

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/jobweaver/jobweaver/shared/retry"
	"github.com/jobweaver/jobweaver/shared/secret"
	"github.com/jobweaver/jobweaver/shared/webhook"
)

// outside is an outside system: it receives attempts and calls back, and receives the deliveries of ends.
type outside struct {
	fixture *fixture
	server  *httptest.Server
	ends    *webhook.Outgoing // the keys of the ends of jobs
	calls   *webhook.Outgoing // the keys of the attempts of EXTERNAL jobs
	open    context.Context   // ends with the installation

	mu        sync.Mutex
	called    map[string]int            // requests, by attempt token
	words     map[string]word           // of callbacks that got their 200, by attempt token
	delivered map[string]map[string]end // ends, by job id and webhook-id
	seen      map[string]int            // what happened

	calling sync.WaitGroup
}

type word struct {
	status string
	at     time.Time
}

// end is the part of a delivered job that is checked.
type end struct {
	Status  string `json:"status"`
	Attempt int    `json:"attempt"`
}

const (
	webhookSecret = "whsec_a2lsbHRlc3Qtd2ViaG9va3Mta2lsbHRlc3Qtd2ViaG9va3M="
)

func newOutside(h *fixture) *outside {
	open, shut := context.WithCancel(context.Background())
	o := &outside{
		fixture: h, ends: keysFor(h.t, webhook.End), calls: keysFor(h.t, webhook.Call), open: open,
		called: map[string]int{}, words: map[string]word{},
		delivered: map[string]map[string]end{}, seen: map[string]int{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /attempts/{mood}", o.work)
	mux.HandleFunc("POST /done", o.done)
	o.server = httptest.NewServer(mux)
	h.t.Cleanup(func() {
		shut()
		o.calling.Wait()
		o.server.Close()
	})
	return o
}

// settings returns the settings of the processes that call it, or that it calls back.
func (o *outside) settings(gateway string) []string {
	return []string{
		"OUTBOUND_ALLOW=127.0.0.0/8", "WEBHOOK_SECRETS=" + webhookSecret, "CALLBACK_SECRETS=" + callbackSecret,
		"CALLBACK_URL=" + gateway + "/api/jobs/callback",
	}
}

// handed is the checked part of an EXTERNAL job's request.
type handed struct {
	JobID    string `json:"jobId"`
	Attempt  int    `json:"attempt"`
	Callback struct {
		URL    string `json:"url"`
		Secret string `json:"secret"`
	} `json:"callback"`
}

// The moods of the outside system, each a way to do its work.
const (
	answers     = "answers"
	failsFirst  = "fails-first"
	silentFirst = "silent-first"
)

// work receives an attempt.
func (o *outside) work(w http.ResponseWriter, r *http.Request) {
	var job handed
	if !o.read(w, r, o.calls, &job) {
		return
	}
	token := job.JobID + "." + strconv.Itoa(job.Attempt)
	o.mu.Lock()
	o.called[token]++
	o.mu.Unlock()
	status := completed
	switch mood := r.PathValue("mood"); {
	case mood == failsFirst && job.Attempt == 1:
		status = failed
	case mood == silentFirst && job.Attempt == 1:
		return
	}
	o.calling.Go(func() {
		if retry.Pause(o.open, time.Duration(rand.IntN(3000))*time.Millisecond) {
			o.callBack(job, token, status)
		}
	})
}

func keysFor(t *testing.T, purpose webhook.Purpose) *webhook.Outgoing {
	t.Helper()
	keys, err := webhook.NewOutgoing(webhook.Config{Secrets: secret.AllOf(webhookSecret)}, purpose)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// verify requires a signature with the key of the owner whose job the body is about.
func verify(keys *webhook.Outgoing, body []byte, header http.Header) error {
	var job struct {
		OwnerID string `json:"ownerId"` // null: none
	}
	if err := json.Unmarshal(body, &job); err != nil {
		return err
	}
	verifier, err := standardwebhooks.NewWebhook(keys.Secrets(job.OwnerID)[0])
	if err != nil {
		return err
	}
	return verifier.Verify(body, header)
}

// read accepts only signed requests.
func (o *outside) read(w http.ResponseWriter, r *http.Request, keys *webhook.Outgoing, into any) bool {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return false // the sender died
	}
	if err = verify(keys, body, r.Header); err == nil {
		err = json.Unmarshal(body, into)
	}
	if err != nil {
		o.fixture.complain("outside received %s %s: %v", r.URL.Path, body, err)
		w.WriteHeader(http.StatusBadRequest)
	}
	return err == nil
}

// callBack repeats a callback until it is accepted or refused.
func (o *outside) callBack(job handed, token, status string) {
	events := map[string]any{"jobId": job.JobID, "attempt": job.Attempt, "status": status}
	if status == failed {
		events["errorCode"], events["message"] = "OUTSIDE.NO", "not yet"
	} else {
		events["output"] = map[string]any{"attempt": job.Attempt}
	}
	body, err := json.Marshal(events)
	if err != nil {
		panic(err) // texts and numbers
	}
	for retry.Pause(o.open, 300*time.Millisecond) {
		code, answer := o.post(job, body)
		switch {
		case code == http.StatusOK:
			o.mu.Lock()
			o.words[token] = word{status, time.Now()}
			o.mu.Unlock()
			o.count("callback taken")
			return
		case code == http.StatusConflict: // its attempt is over
			o.count("callback refused")
			return
		case code != 0 && code != http.StatusServiceUnavailable:
			o.fixture.complain("callback of %s: %d %s", token, code, answer)
			return
		}
		o.count("callback published again")
	}
}

func (o *outside) post(job handed, body []byte) (code int, answer string) {
	ctx, cancel := context.WithTimeout(o.open, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, job.Callback.URL, bytes.NewReader(body))
	if err != nil {
		return http.StatusBadRequest, err.Error()
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Callback-Secret", job.Callback.Secret)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, ""
	}
	defer func() { _ = res.Body.Close() }()
	text, _ := io.ReadAll(res.Body)
	return res.StatusCode, string(text)
}

// done receives the delivery of a job's end.
func (o *outside) done(w http.ResponseWriter, r *http.Request) {
	var job struct {
		JobID string `json:"jobId"`
		end
	}
	if !o.read(w, r, o.ends, &job) {
		return
	}
	id := r.Header.Get("Webhook-Id")
	o.mu.Lock()
	defer o.mu.Unlock()
	ends := o.delivered[job.JobID]
	if ends == nil {
		ends = map[string]end{}
		o.delivered[job.JobID] = ends
	}
	if before, twice := ends[id]; twice {
		o.seen["delivered again"]++
		if before != job.end {
			o.fixture.complain("delivery %s has %v, and %v", id, before, job.end)
		}
	}
	if _, twice := ends[id]; !twice && rand.IntN(10) == 0 {
		w.WriteHeader(http.StatusServiceUnavailable) // received but refused, so it is delivered again soon
	}
	ends[id] = job.end
}

func (o *outside) count(what string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seen[what]++
}

// checkOutside: an accepted callback is the outcome of its attempt; each end has a delivery, and there are no others.
func (e *evidence) checkOutside(o *outside) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for token, word := range o.words {
		id, n, _ := strings.Cut(token, ".")
		number, err := strconv.Atoi(n)
		job := e.jobs[id]
		if err != nil || job == nil {
			e.find(id, "a callback of %s was taken, and there is no such job", token)
			continue
		}
		want := map[string]string{completed: "completed", failed: "failed"}[word.status]
		a := job.attempt(number)
		// A worker that dies within moments of a start has not reported it, and its attempt counts as one that never
		// began.
		unseen := a != nil && a.Outcome == "interrupted" && a.StartedAt == nil && word.status == failed
		if a == nil || a.Outcome != want && a.Outcome != "lost" && !unseen {
			e.find(id, "a callback of attempt %d, %s, was taken at %s, and it is %+v", number, word.status, clock(word.at), a)
		}
	}
	for id, ends := range o.delivered {
		if job := e.jobs[id]; job == nil || e.orders[job.key()] == nil || !e.orders[job.key()].delivered {
			e.find(id, "its end was delivered, but it has no callbackUrl: %v", ends)
		}
	}
	for id, job := range e.jobs {
		if order := e.orders[job.key()]; order != nil && order.delivered {
			e.checkDeliveries(id, job, o.delivered[id])
		}
	}
}

func (e *evidence) checkDeliveries(id string, job *shown, delivered map[string]end) {
	var ends []end
	for _, m := range job.History {
		if m.To != m.From && slices.Contains([]string{completed, failed, canceled}, m.To) {
			ends = append(ends, end{m.To, m.Attempt})
		}
	}
	if len(delivered) != len(ends) {
		e.find(id, "has ended %d times, %v, but %d ends were delivered, %v", len(ends), ends, len(delivered), delivered)
	}
	for name, t := range delivered {
		if !strings.HasPrefix(name, id+".v") {
			e.find(id, "a delivery of its end is called %s", name)
		}
		if !slices.Contains(ends, t) {
			e.find(id, "the delivered end %v is not one of its ends", t)
		}
	}
}

// settle waits until outside has sent all callbacks, and received all deliveries. Where the next try is minutes away,
// it restarts the delivery.
func (o *outside) settle(limit time.Duration) {
	o.fixture.t.Helper()
	o.calling.Wait()
	late, err := texts(o.fixture.t.Context(), o.fixture.urls.API, `
		select '/api/jobs/' || job_id || '/deliveries/' || version || '/retry' from deliveries
		where status = 'PENDING' and next_at > now() + interval '10 s'`)
	for _, path := range late {
		_, again := o.fixture.api.Do(o.fixture.t.Context(), http.MethodPost, path, "", nil, nil)
		err = errors.Join(err, again)
	}
	if err != nil {
		o.fixture.t.Error(err)
	}
	err = within(o.fixture.t.Context(), limit, func(ctx context.Context) error {
		open, err := texts(ctx, o.fixture.urls.API, `
			select 'delivery ' || job_id || ': ' || last_error from deliveries where status = 'PENDING'
			union all select 'callback ' || job_id from callbacks where answered_at is null`)
		if err == nil && len(open) > 0 {
			err = fmt.Errorf("%d are open: %v", len(open), first(open, 5))
		}
		return err
	})
	if err != nil {
		o.fixture.t.Error(err)
	}
}

// happened counts the events that a run must contain to prove anything.
func (o *outside) happened() map[string]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := map[string]int{}
	for _, what := range []string{"callback taken", "callback refused", "callback published again", "delivered again"} {
		n[what] = o.seen[what]
	}
	return n
}
