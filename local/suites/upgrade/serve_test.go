package upgrade

import (
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/infra/laptop/freeport"
	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/testwait"
	"github.com/jobweaver/jobweaver/shared/webhook"
)

// takeoverWithin is how long a standby may take.
const takeoverWithin = 10 * time.Second

// beginServe starts jobweaver serve of a build, with the broker in it unless env names others.
func (h *fixture) beginServe(bin string, env ...string) *process {
	h.t.Helper()
	port := freeport.For(h.t)
	cmd := exec.Command(filepath.Join(bin, "jobweaver"), "serve") //nolint:gosec // ours
	p := h.launch(filepath.Base(bin)+"-serve", cmd, append(append([]string{
		"HOST=127.0.0.1", "AUTH=off", "PORT=" + port, "DATABASE_URL=" + h.postgres.URL(),
	}, h.env...), env...)...)
	p.port = port
	return p
}

// serves waits until a process is ready, and makes its gateway that of the flow.
func (h *fixture) serves(p *process) {
	h.t.Helper()
	if err := p.await(h.t.Context(), "readiness", http.StatusOK, readyWithin); err != nil {
		h.t.Fatalf("%s is not ready: %v\n%s", p.name, err, p.tail())
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running["gateway"] = p
}

// handOver starts a standby, ends the process that serves, and waits until the standby has taken over.
func (h *fixture) handOver(serving *process, by syscall.Signal, bin string, env ...string) (standby *process) {
	h.t.Helper()
	standby = h.beginServe(bin, env...)
	if err := awaitLine(standby, "standing by"); err != nil {
		h.t.Fatal(err)
	}
	if by == syscall.SIGKILL {
		serving.kill()
	} else if err := serving.stop(); err != nil {
		h.t.Fatalf("%s: %v\n%s", serving.name, err, serving.tail())
	}
	ended := time.Now()
	h.serves(standby)
	testwait.CheckPromptly(h.t, "the takeover by "+standby.name, time.Since(ended), takeoverWithin)
	return standby
}

// The functions of the older version become one process of today's, first beside them, then with a broker of its own,
// and come back, while jobs flow. Jobs of every state wait all the time.
func TestFunctionsBecomeServeAndAreFunctionsAgain(t *testing.T) {
	t.Parallel()
	h := open(t, "OUTBOUND_ALLOW=127.0.0.0/8", "SHUTDOWN_GRACE=10s", "GRACE=5s", callbacks, callbackURL)
	if err := h.migrate(h.builds.older); err != nil {
		t.Fatal(err)
	}
	if err := h.createTopics(h.builds.older); err != nil {
		t.Fatal(err)
	}
	h.startAll(h.builds.older)
	f := h.flow()
	held := f.hold()
	brokers := "KAFKA_BROKERS=" + h.brokers
	older := h.startedFunctions()
	beside := h.beginServe(h.builds.today, brokers)
	h.serves(beside)
	h.stop(older)
	alone := h.handOver(beside, syscall.SIGTERM, h.builds.today)
	held.areUnchanged()
	beside = h.handOver(alone, syscall.SIGTERM, h.builds.today, brokers)
	h.startAll(h.builds.older)
	h.stop([]*process{beside})
	held.areUnchanged()
	held.end()
	f.end()
	h.wantNoErrorLogs(2*len(functions()) + 3)
}

// A jobweaver serve of the older version gets a standby of today's, which migrates the databases under it, and hands
// over to it; then the other way round, on a schema that is newer than either.
func TestServeAndItsStandbyAreUpgradedOneAfterTheOther(t *testing.T) {
	t.Parallel()
	h := open(t, "OUTBOUND_ALLOW=127.0.0.0/8", "SHUTDOWN_GRACE=10s", "GRACE=5s", callbacks, callbackURL)
	serving := h.beginServe(h.builds.older)
	h.serves(serving)
	f := h.flow()
	held := f.hold()
	serving = h.handOver(serving, syscall.SIGTERM, h.builds.today)
	h.addOfTomorrow()
	serving = h.handOver(serving, syscall.SIGTERM, h.builds.older)
	held.areUnchanged()
	serving = h.handOver(serving, syscall.SIGKILL, h.builds.today)
	held.end()
	f.end()
	h.wantNoErrorLogs(4)
	h.stop([]*process{serving})
}

// stop ends processes, all at once.
func (h *fixture) stop(list []*process) {
	h.t.Helper()
	ended := make(chan error, len(list))
	for _, p := range list {
		go func() {
			err := p.stop()
			if err != nil {
				err = fmt.Errorf("%s: %w\n%s", p.name, err, p.tail())
			}
			ended <- err
		}()
	}
	for range list {
		if err := <-ended; err != nil {
			h.t.Fatal(err)
		}
	}
}

func (h *fixture) startedFunctions() (list []*process) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.running {
		list = append(list, p)
	}
	return list
}

const (
	callbackSecret = "whsec_dXBncmFkZXRlc3QtY2FsbGJhY2tzLXVwZ3JhZGV0ZXN0"
	// Every process has the same, as an installation that becomes serve keeps its own.
	callbacks   = "CALLBACK_SECRETS=" + callbackSecret
	callbackURL = "CALLBACK_URL=http://127.0.0.1:1/api/jobs/callback" // where nothing listens: the test calls back
)

// held are jobs that stay in one state until end, by the state.
type held struct {
	flow *flow
	jobs map[string]string // ids
}

// hold submits a job for each state in which a job can stay.
func (f *flow) hold() *held {
	t := f.fixture.t
	t.Helper()
	at := f.outside.server.URL
	f.must(http.MethodPost, "/api/controls/type/FUNCTION/pause", "")
	h := &held{flow: f, jobs: map[string]string{}}
	submit := func(state, body string) {
		accepted := f.must(http.MethodPost, "/api/jobs", body)
		h.jobs[state] = accepted.JobID
		testwait.Until(t, "a job is "+state, func() bool {
			job, err := f.api().Get(t.Context(), accepted.JobID, 0)
			return err == nil && job.Status == state
		})
	}
	submit("SCHEDULED", `{"jobType": "SIMULATION", "delayMs": 3600000, "payload": {"steps": [{"type": "LOG", "message": "hi"}]}}`)
	submit("PENDING", fmt.Sprintf(`{"jobType": "FUNCTION", "payload": {"url": "%s/called?key=held"}}`, at))
	submit("RETRYING", `{"jobType": "SIMULATION", "maxRetryCount": 1, "retryPolicy": {"type": "fixed", "delayMs": 3600000},
		"payload": {"steps": [{"type": "FAIL", "message": "no", "errorCode": "DEMO", "retryable": true, "failAttempts": 1}]}}`)
	submit("WAITING", fmt.Sprintf(`{"jobType": "EXTERNAL", "payload": {"url": "%s/waiting"}}`, at))
	submit("FAILED", `{"jobType": "SIMULATION", "maxRetryCount": 0,
		"payload": {"steps": [{"type": "FAIL", "message": "no", "errorCode": "DEMO", "failAttempts": 1}]}}`)
	return h
}

// must sends a request until it is answered with success.
func (f *flow) must(method, path, body string, headers ...string) (answer client.Accepted) {
	f.fixture.t.Helper()
	err := f.insist(func() error {
		_, err := f.api().Do(f.fixture.t.Context(), method, path, "application/json", []byte(body), &answer, headers...)
		return err
	})
	if err != nil {
		f.fixture.t.Fatalf("%s %s: %v", method, path, err)
	}
	return answer
}

func (h *held) areUnchanged() {
	t := h.flow.fixture.t
	t.Helper()
	for state, id := range h.jobs {
		job, err := h.flow.api().Get(t.Context(), id, 0)
		if err != nil || job.Status != state {
			t.Errorf("a job that was %s is %+v, %v", state, job, err)
		}
	}
}

// end does what each job waits for, and waits until all are completed.
func (h *held) end() {
	f, t := h.flow, h.flow.fixture.t
	t.Helper()
	keys, err := webhook.NewCallbackKeys([]string{callbackSecret})
	if err != nil {
		t.Fatal(err)
	}
	now := fmt.Sprintf(`{"runAt": %q}`, time.Now().Format(time.RFC3339))
	for _, state := range []string{"SCHEDULED", "RETRYING"} {
		f.must(http.MethodPost, "/api/jobs/"+h.jobs[state]+"/reschedule", now)
	}
	f.must(http.MethodPost, "/api/controls/type/FUNCTION/resume", "")
	f.must(http.MethodPost, "/api/jobs/callback", fmt.Sprintf(`{"jobId": %q, "attempt": 1, "status": "COMPLETED"}`, h.jobs["WAITING"]),
		"X-Callback-Secret", keys.Secret(jobevent.AttemptToken(uuid.MustParse(h.jobs["WAITING"]), 1)))
	f.must(http.MethodPost, "/api/jobs/"+h.jobs["FAILED"]+"/retry", "")
	for state, id := range h.jobs {
		testwait.Until(t, "the job is completed that was "+state, func() bool {
			job, err := f.api().Get(t.Context(), id, 0)
			return err == nil && job.Status == client.Completed
		})
	}
}
