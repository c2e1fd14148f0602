package kill

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/retry"
	"github.com/jobweaver/jobweaver/shared/webhook"
)

const callbackSecret = "whsec_a2lsbHRlc3Qga2lsbHRlc3Qga2lsbHRlc3Qga2lsbHRlc3Q="

// callBack calls back for each attempt of a waiting job, as an outside system does, until there is an answer.
func (l *load) callBack(o *order) {
	for {
		job, err := l.fixture.api.Get(l.follow, o.id, 0)
		switch {
		case err == nil && job.Terminal():
			return
		case err == nil && job.Status == "WAITING" && l.fixture.callBack(l.follow, o.id, job.Attempt) == nil:
			l.count("called back")
			o.mu.Lock()
			o.calledBack = append(o.calledBack, job.Attempt)
			o.mu.Unlock()
			if l.awaitEnd(o.id) == nil {
				return
			}
		case wrong(err):
			l.fixture.complain("GET job %s: %v", o.id, err)
			return
		}
		if !retry.Pause(l.follow, 200*time.Millisecond) {
			return
		}
	}
}

// callBack posts a callback once. The attempt is in the output.
func (h *fixture) callBack(ctx context.Context, id string, attempt int) error {
	keys, err := webhook.NewCallbackKeys([]string{callbackSecret})
	if err != nil {
		panic(err) // it is valid
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	body := fmt.Appendf(nil, `{"jobId": %q, "attempt": %d, "status": "COMPLETED", "output": {"attempt": %d}}`, id, attempt, attempt)
	secret := keys.Secret(jobevent.AttemptToken(uuid.MustParse(id), attempt))
	_, err = h.api.Do(ctx, http.MethodPost, "/api/jobs/callback", "application/json", body, nil, "X-Callback-Secret", secret)
	if wrong(err) {
		h.complain("a callback about attempt %d of job %s: %v", attempt, id, err)
	}
	return err
}

// checkCallbacks: a callback that got its 200 is the outcome of its attempt, and so of the job.
func (e *evidence) checkCallbacks(job *shown, o *order) {
	for _, n := range o.calledBack {
		if a := job.attempt(n); a == nil || a.Outcome != "completed" || job.Attempt != n {
			e.find(job.JobID, "attempt %d was called back as completed; the job is %s after attempt %d: %+v", n, job.Status, job.Attempt, a)
		}
	}
}

// TestACallbackThatGotItsAnswerCounts kills all processes that could pass the callback on: the gateway that answered,
// the functions that decide about jobs, and the broker with all its data.
func TestACallbackThatGotItsAnswerCounts(t *testing.T) {
	duration(t)
	t.Parallel()
	h := open(t, 1)
	dead := func(names ...string) []target { return h.targetsNamed(names...) }
	kill := func(list []target) {
		for _, d := range list {
			must(t, d.kill())
		}
	}
	start := func(list []target) {
		for _, d := range list {
			must(t, d.restart(t.Context()))
		}
	}

	ids := h.waiting(t, 5)
	h.callAllBack(t, ids)
	gateway := dead("gateway")
	kill(gateway)
	start(gateway)
	h.wantCompleted(t, "the gateway is killed", ids)

	ids = h.waiting(t, 5)
	deciders := dead("outcome", "dispatch", "command", "watchdog", "ingest", "projection")
	kill(deciders)
	h.callAllBack(t, ids)
	kill(gateway)
	start(gateway)
	start(deciders)
	h.wantCompleted(t, "those who decide are dead", ids)

	ids = h.waiting(t, 5)
	kill(deciders)
	h.callAllBack(t, ids)
	kill(gateway)
	must(t, h.broker.kill())
	must(t, errors.Join(os.RemoveAll(h.brokerDir()), h.broker.start()))
	start(gateway)
	start(deciders)
	h.wantCompleted(t, "the broker is wiped", ids)
	h.stopAll()
}

// waiting submits jobs and waits until all wait for a callback.
func (h *fixture) waiting(t *testing.T, n int) (ids []string) {
	t.Helper()
	for range n {
		accepted, err := h.api.SubmitJSON(t.Context(), []byte(`{"jobType": "WITNESS", "payload": {"key": "k", "waits": true}}`))
		must(t, err)
		ids = append(ids, accepted.JobID)
	}
	h.until(t, ids, readyWithin, func(job *client.Job) error {
		if job.Status != "WAITING" {
			return fmt.Errorf("it is %s", job.Status)
		}
		return nil
	})
	return ids
}

func (h *fixture) callAllBack(t *testing.T, ids []string) {
	t.Helper()
	for _, id := range ids {
		must(t, h.callBack(t.Context(), id, 1))
	}
}

// wantCompleted waits until all jobs have completed with the output of their callbacks.
func (h *fixture) wantCompleted(t *testing.T, after string, ids []string) {
	t.Helper()
	began := time.Now()
	h.until(t, ids, wipedWithin, func(job *client.Job) error {
		if output := strings.ReplaceAll(string(job.Output), " ", ""); job.Status != completed || job.Attempt != 1 || output != `{"attempt":1}` {
			return fmt.Errorf("after %s it is %s, attempt %d, with %s", after, job.Status, job.Attempt, job.Output)
		}
		return nil
	})
	t.Logf("after %s all had ended within %s", after, ms(time.Since(began)))
}

func (h *fixture) until(t *testing.T, ids []string, d time.Duration, wanted func(*client.Job) error) {
	t.Helper()
	for _, id := range ids {
		must(t, within(t.Context(), d, func(ctx context.Context) error {
			job, err := h.api.Get(ctx, id, 0)
			if err != nil {
				return err
			}
			return wanted(job)
		}))
	}
}
