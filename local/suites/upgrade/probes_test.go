package upgrade

import (
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	graceOfProbes = time.Second
	// noticed is how long after the grace period a probe may still give its old answer: long enough for the next check
	// on a busy machine.
	noticed = 10 * time.Second
	// probeAtMost bounds an answer, whatever hangs. A probe that checks a hanging server takes half the grace period.
	probeAtMost = 400 * time.Millisecond
)

// watched are functions of each sort: with HTTP, on topics, with a loop of its own, and one that publishes nothing.
var watched = []string{"gateway", "ingest", "runjob", "notify"}

// Servers are killed, restarted, and frozen: then they accept connections but do not answer.
func TestProbesOfProcessesFollowTheirServers(t *testing.T) {
	t.Parallel()
	h := open(t, "READINESS_GRACE="+graceOfProbes.String())
	if err := h.migrate(h.builds.today); err != nil {
		t.Fatal(err)
	}
	if err := h.createTopics(h.builds.today); err != nil {
		t.Fatal(err)
	}
	for _, function := range watched {
		h.running[function] = h.start(h.builds.today, function)
	}
	all, onKafka := watched, []string{"ingest", "runjob"}
	look := h.lookAlways()
	for _, c := range []struct {
		name  string
		away  []string
		begin func()
		end   func()
	}{
		{"the broker is killed", onKafka, h.broker.kill, h.startBroker},
		{"the broker is frozen", onKafka, func() { h.broker.signal(syscall.SIGSTOP) }, func() { h.broker.signal(syscall.SIGCONT) }},
		{"the database is frozen", all, func() { h.signalPostgres(syscall.SIGSTOP) }, func() { h.signalPostgres(syscall.SIGCONT) }},
		{"the database is killed", all, func() { _ = h.postgres.Kill() }, h.restartPostgres},
	} {
		began := time.Now()
		c.begin()
		h.areReady(c.name, c.away, http.StatusServiceUnavailable)
		// The grace counts from the beginning of the last check that succeeded. It may have taken half of the grace, and the
		// next one begins a fifth later.
		if took := time.Since(began); took < graceOfProbes*3/10 {
			t.Errorf("%s: all were not ready after %s, before the grace was over", c.name, took)
		}
		for _, function := range all {
			h.is(c.name, function, "liveness", http.StatusOK)
		}
		h.areReady(c.name, without(all, c.away), http.StatusOK)
		c.end()
		h.areReady("the end of: "+c.name, all, http.StatusOK)
	}
	look()
	for _, function := range all {
		if err := h.running[function].stop(); err != nil {
			t.Errorf("%s: %v", function, err)
		}
	}
}

func without(all, some []string) []string {
	var rest []string
	for _, one := range all {
		if !strings.Contains(strings.Join(some, " "), one) {
			rest = append(rest, one)
		}
	}
	return rest
}

// lookAlways sends requests to the probes all the time; end reports whether one of them was slow.
func (h *fixture) lookAlways() (end func()) {
	stop := make(chan struct{})
	var looking sync.WaitGroup
	slow := make([]int, len(watched))
	asked := make([]int, len(watched))
	for i, function := range watched {
		p := h.running[function]
		looking.Go(func() {
			for {
				for _, which := range []string{"readiness", "liveness"} {
					_, _, took, err := p.probe(h.t.Context(), which)
					asked[i]++
					if err != nil {
						h.t.Errorf("%s has no answer to its %s probe: %v", function, which, err)
					} else if took > probeAtMost {
						slow[i]++
					}
				}
				select {
				case <-stop:
					return
				case <-time.After(50 * time.Millisecond):
				}
			}
		})
	}
	return func() {
		close(stop)
		looking.Wait()
		for i, function := range watched {
			// A machine that is busy with other tests may delay a few.
			if slow[i]*40 > asked[i] {
				h.t.Errorf("%d of %d probes of %s took longer than %s", slow[i], asked[i], function, probeAtMost)
			}
		}
	}
}

func (h *fixture) areReady(when string, functions []string, want int) {
	h.t.Helper()
	for _, function := range functions {
		h.is(when, function, "readiness", want)
	}
}

func (h *fixture) is(when, function, which string, want int) {
	h.t.Helper()
	p := h.running[function]
	if err := p.await(h.t.Context(), which, want, graceOfProbes+noticed); err != nil {
		h.t.Errorf("%s, %s: %v\n%s", when, function, err, p.tail())
	}
}

func (h *fixture) restartPostgres() {
	h.t.Helper()
	if err := h.postgres.Restart(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
}

// signalPostgres signals the server and all its processes.
func (h *fixture) signalPostgres(sig syscall.Signal) {
	h.t.Helper()
	text, err := os.ReadFile(filepath.Join(h.dir, "postgres", "data", "postmaster.pid"))
	if err != nil {
		h.t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	children, err := os.ReadFile("/proc/" + first + "/task/" + first + "/children")
	if err != nil {
		h.t.Fatal(err)
	}
	for _, field := range append(strings.Fields(string(children)), first) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			h.t.Fatal(err)
		}
		_ = syscall.Kill(pid, sig) // one may have ended since
	}
}
