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
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// outside is what is not ours: it is handed attempts and calls back, and is told of the ends of jobs.
type outside struct {
	fixture  *fixture
	server   *httptest.Server
	verifier *standardwebhooks.Webhook
	open     context.Context // ends with the installation

	mu    sync.Mutex
	calls map[string]int            // requests, by attempt token
	words map[string]word           // of callbacks that got their 200, by attempt token
	told  map[string]map[string]end // ends, by job id and webhook-id
	seen  map[string]int            // what happened

	calling sync.WaitGroup
}

type word struct {
	status string
	at     time.Time
}

// end is the part of a delivered job that is looked at.
type end struct {
	Status  string `json:"status"`
	Attempt int    `json:"attempt"`
}

const (
	webhookSecret = "whsec_a2lsbHRlc3Qtd2ViaG9va3Mta2lsbHRlc3Qtd2ViaG9va3M="
)

func newOutside(h *fixture) *outside {
	verifier, err := standardwebhooks.NewWebhook(webhookSecret)
	if err != nil {
		h.t.Fatal(err)
	}
	open, shut := context.WithCancel(context.Background())
	o := &outside{
		fixture: h, verifier: verifier, open: open, calls: map[string]int{}, words: map[string]word{},
		told: map[string]map[string]end{}, seen: map[string]int{},
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

// settings are those of the processes that deal with it.
func (o *outside) settings(gateway string) []string {
	return []string{
		"OUTBOUND_ALLOW=127.0.0.0/8", "WEBHOOK_SECRETS=" + webhookSecret, "CALLBACK_SECRETS=" + callbackSecret,
		"CALLBACK_URL=" + gateway + "/api/jobs/callback",
	}
}

// handed is an EXTERNAL job's request, as far as it is looked at.
type handed struct {
	JobID    string `json:"jobId"`
	Attempt  int    `json:"attempt"`
	Callback struct {
		URL    string `json:"url"`
		Secret string `json:"secret"`
	} `json:"callback"`
}

// The moods of the outside system: how it does its work.
const (
	answers     = "answers"
	failsFirst  = "fails-first"
	silentFirst = "silent-first"
)

// work is handed an attempt.
func (o *outside) work(w http.ResponseWriter, r *http.Request) {
	var job handed
	if !o.read(w, r, &job) {
		return
	}
	token := job.JobID + "." + strconv.Itoa(job.Attempt)
	o.mu.Lock()
	o.calls[token]++
	o.mu.Unlock()
	status := completed
	switch mood := r.PathValue("mood"); {
	case mood == failsFirst && job.Attempt == 1:
		status = failed
	case mood == silentFirst && job.Attempt == 1:
		return
	}
	o.calling.Go(func() {
		if pause(o.open, time.Duration(rand.IntN(3000))*time.Millisecond) {
			o.callBack(job, token, status)
		}
	})
}

// read takes only what is signed.
func (o *outside) read(w http.ResponseWriter, r *http.Request, into any) bool {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return false // its sender died
	}
	if err = o.verifier.Verify(body, r.Header); err == nil {
		err = json.Unmarshal(body, into)
	}
	if err != nil {
		o.fixture.complain("outside hears %s %s: %v", r.URL.Path, body, err)
		w.WriteHeader(http.StatusBadRequest)
	}
	return err == nil
}

// callBack says the same until it is taken, or refused.
func (o *outside) callBack(job handed, token, status string) {
	say := map[string]any{"jobId": job.JobID, "attempt": job.Attempt, "status": status}
	if status == failed {
		say["errorCode"], say["message"] = "OUTSIDE.NO", "not yet"
	} else {
		say["output"] = map[string]any{"attempt": job.Attempt}
	}
	body, err := json.Marshal(say)
	if err != nil {
		panic(err) // texts and numbers
	}
	for pause(o.open, 300*time.Millisecond) {
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
		o.count("callback said again")
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

// done is told how a job has ended.
func (o *outside) done(w http.ResponseWriter, r *http.Request) {
	var job struct {
		JobID string `json:"jobId"`
		end
	}
	if !o.read(w, r, &job) {
		return
	}
	id := r.Header.Get("Webhook-Id")
	o.mu.Lock()
	defer o.mu.Unlock()
	ends := o.told[job.JobID]
	if ends == nil {
		ends = map[string]end{}
		o.told[job.JobID] = ends
	}
	if before, twice := ends[id]; twice {
		o.seen["told again"]++
		if before != job.end {
			o.fixture.complain("delivery %s says %v, and %v", id, before, job.end)
		}
	}
	if _, twice := ends[id]; !twice && rand.IntN(10) == 0 {
		w.WriteHeader(http.StatusServiceUnavailable) // heard, and not said so: it comes again, soon after the first time
	}
	ends[id] = job.end
}

func (o *outside) count(what string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seen[what]++
}

// checkOutside: a callback that was taken is what became of its attempt; of each end there is a delivery, and
// of nothing else.
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
		// A worker that dies within moments of a start has not reported it, and its attempt counts as one that never began.
		unseen := a != nil && a.Outcome == "interrupted" && a.StartedAt == nil && word.status == failed
		if a == nil || a.Outcome != want && a.Outcome != "lost" && !unseen {
			e.find(id, "a callback of attempt %d, %s, was taken at %s, and it is %+v", number, word.status, clock(word.at), a)
		}
	}
	for id, ends := range o.told {
		if job := e.jobs[id]; job == nil || e.orders[job.key()] == nil || !e.orders[job.key()].told {
			e.find(id, "its end was told, and nobody asked for that: %v", ends)
		}
	}
	for id, job := range e.jobs {
		if order := e.orders[job.key()]; order != nil && order.told {
			e.checkTold(id, job, o.told[id])
		}
	}
}

func (e *evidence) checkTold(id string, job *shown, told map[string]end) {
	var ends []end
	for _, m := range job.History {
		if m.To != m.From && slices.Contains([]string{completed, failed, canceled}, m.To) {
			ends = append(ends, end{m.To, m.Attempt})
		}
	}
	if len(told) != len(ends) {
		e.find(id, "has ended %d times, %v, and was told to have %d times, %v", len(ends), ends, len(told), told)
	}
	for name, t := range told {
		if !strings.HasPrefix(name, id+".v") {
			e.find(id, "a delivery of its end is called %s", name)
		}
		if !slices.Contains(ends, t) {
			e.find(id, "was told to have ended as %v, which it has not", t)
		}
	}
}

// heard waits until outside has said all it has to say, and has been told everything. What is to be tried again only
// in minutes, after more tries than one, is asked for.
func (o *outside) heard(limit time.Duration) {
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

// happened counts what must have been seen for the run to mean something.
func (o *outside) happened() map[string]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := map[string]int{}
	for _, what := range []string{"callback taken", "callback refused", "callback said again", "told again"} {
		n[what] = o.seen[what]
	}
	return n
}
