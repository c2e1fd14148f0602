package serve_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/local/serve"
	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/testwait"
)

const (
	jobs = 1000
	// takeover is how long a standby may take.
	takeover = 10 * time.Second
)

// witness does the work of jobs, and records each attempt that called it.
type witness struct {
	*httptest.Server

	mu    sync.Mutex
	calls map[string]int // by the attempt's token
	gate  chan struct{}  // the later calls are answered when it is closed
}

func newWitness(t *testing.T) *witness {
	t.Helper()
	w := &witness{calls: map[string]int{}, gate: make(chan struct{})}
	w.Server = httptest.NewServer(http.HandlerFunc(func(res http.ResponseWriter, req *http.Request) {
		w.mu.Lock()
		w.calls[req.Header.Get("Ce-Id")]++
		late := len(w.calls) > jobs/4
		w.mu.Unlock()
		if late {
			select {
			case <-w.gate:
			case <-req.Context().Done():
			}
		}
		res.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(w.Close)
	return w
}

// untilMany waits until the API shows that many jobs are done, and returns these. Others are under way.
func (p *process) untilMany(c *client.Client) (done map[string]bool) {
	p.t.Helper()
	p.until("many jobs are done", func() bool {
		done = map[string]bool{}
		for job, err := range c.List(p.t.Context(), client.Filter{Status: []string{client.Completed}}) {
			if err != nil {
				p.t.Fatal(err)
			}
			done[job.JobID] = true
		}
		return len(done) >= jobs/5
	})
	return done
}

// submit submits all jobs at once.
func (w *witness) submit(t *testing.T, c *client.Client) (ids []string) {
	t.Helper()
	requests := make([]client.JobRequest, jobs)
	for i := range requests {
		requests[i] = client.JobRequest{JobType: "FUNCTION", Payload: map[string]any{"url": w.URL}}
	}
	results, err := c.SubmitBatch(t.Context(), requests)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.JobID == "" {
			t.Fatalf("a job was refused: %v", r.Error)
		}
		ids = append(ids, r.JobID)
	}
	return ids
}

// check waits until all jobs have ended, and checks that each was done, that no attempt ran twice, and that no job ran
// again that was done before the kill.
func (w *witness) check(t *testing.T, c *client.Client, ids []string, before map[string]bool) {
	t.Helper()
	for _, id := range ids {
		job, err := c.Get(t.Context(), id, time.Minute)
		if err != nil || job.Status != client.Completed {
			t.Fatalf("a job is %+v, %v", job, err)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	attempts := map[string]int{}
	for token, n := range w.calls {
		if n != 1 {
			t.Errorf("the attempt %s ran %d times", token, n)
		}
		id, _, _ := strings.Cut(token, ".")
		if attempts[id]++; attempts[id] > 1 && before[id] {
			t.Errorf("the job %s was done, and ran again", id)
		}
	}
	if len(attempts) != jobs {
		t.Errorf("%d of %d jobs were done", len(attempts), jobs)
	}
}

// long is for tests that take long under the race detector, which finds the same in the others.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes long")
	}
	t.Parallel()
}

func TestAKilledProcessLosesNothing(t *testing.T) {
	long(t)
	database, w := server(t).URL(), newWitness(t)
	p := start(t, database, "")
	p.untilReady()
	key := p.key()
	ids := w.submit(t, p.client(key))
	done := p.untilMany(p.client(key))
	if code := p.stop(syscall.SIGKILL); code != -1 {
		t.Fatalf("it exits with %d", code)
	}
	close(w.gate)
	p = start(t, database, "")
	p.untilReady()
	w.check(t, p.client(key), ids, done)
}

// A frozen process keeps its connections, and with them the lock, until the server ends the session.
func TestAStandbyTakesOver(t *testing.T) {
	long(t)
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			database, w := server(t).URL(), newWitness(t)
			first := start(t, database, "")
			first.untilReady()
			key := first.key()
			standby := start(t, database, "")
			standby.until("it stands by", func() bool { return strings.Contains(standby.text(), "standing by") })
			if status, body := standby.get("/api/jobs"); status != http.StatusServiceUnavailable {
				t.Errorf("the standby answers %d %s", status, body)
			}
			ids := w.submit(t, first.client(key))
			done := first.untilMany(first.client(key))
			began := time.Now()
			if err := first.cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			close(w.gate)
			standby.untilReady()
			testwait.CheckPromptly(t, "the takeover", time.Since(began), takeover)
			w.check(t, standby.client(key), ids, done)
			if signal == syscall.SIGSTOP {
				if code := first.stop(syscall.SIGCONT); code != 1 || !strings.Contains(first.text(), "another process has taken over") {
					t.Errorf("the first exits with %d", code)
				}
			}
			if job, err := standby.client(key).Run(t.Context(), hello()); err != nil || job.Status != client.Completed {
				t.Errorf("a further job is %+v, %v", job, err)
			}
		})
	}
}

// The restart of the server ends the session that holds the lock. No other process has it then, so this one goes on.
func TestAProcessOutlivesARestartOfItsServer(t *testing.T) {
	t.Parallel()
	s := server(t)
	p := start(t, s.URL(), "")
	p.untilReady()
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	c := p.client(p.key())
	testwait.Retry(t, func() error {
		job, err := c.Run(t.Context(), hello())
		if err == nil && job.Status != client.Completed {
			err = fmt.Errorf("the job is %s", job.Status)
		}
		return err
	})
	p.until("it has the lock again", func() bool {
		return query(t, s.URL(), `select count(*) from pg_locks where locktype = 'advisory' and objid = `+fmt.Sprint(serve.Place)) == "1"
	})
}

// A process with a broker of its own and processes with brokers never run side by side: they would not see each other's
// events.
func TestAnInstallationMovesToBrokersAndBack(t *testing.T) {
	long(t)
	database, w := server(t).URL(), newWitness(t)
	close(w.gate)
	p := start(t, database, "")
	p.untilReady()
	key := p.key()
	ids := w.submit(t, p.client(key))
	brokers := "KAFKA_BROKERS=" + broker(t)
	for _, env := range []string{brokers, "KAFKA_CLIENT_ID=own-broker"} {
		next := start(t, database, "", env)
		next.until("it stands by", func() bool { return strings.Contains(next.text(), "standing by") })
		if code := p.stop(syscall.SIGTERM); code != 0 {
			t.Errorf("exits with %d", code)
		}
		p = next
		p.untilReady()
	}
	w.check(t, p.client(key), ids, nil)
}

// What the broker deletes unread is published again from the databases.
func TestNoJobIsLostWhenTheBrokerIsFull(t *testing.T) {
	long(t)
	database, w := server(t).URL(), newWitness(t)
	p := start(t, database, "", "BROKER_MEMORY=16", "POOL_SIZE=2", "QUEUE_SIZE=2", "LEASE=2s")
	p.untilReady()
	c := p.client(p.key())
	large := strings.Repeat("x", 400_000)
	var ids []string
	w.mu.Lock() // no call is answered
	for range 60 {
		accepted, err := c.Submit(t.Context(), client.JobRequest{
			JobType: "FUNCTION", Payload: map[string]any{"url": w.URL, "data": large},
		})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, accepted.JobID)
	}
	p.until("the broker is full", func() bool { return strings.Contains(p.text(), "it is full") })
	w.mu.Unlock()
	for _, id := range ids {
		if job, err := c.Get(t.Context(), id, time.Minute); err != nil || job.Status != client.Completed {
			t.Errorf("a job is %s, %v", job.Status, err)
		}
	}
}
