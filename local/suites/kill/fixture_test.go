package kill

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/infra/laptop/freeport"
	"github.com/jobweaver/jobweaver/infra/laptop/localpostgres"
	stepping "github.com/jobweaver/jobweaver/local/suites/chaos/clock"
	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
	"github.com/jobweaver/jobweaver/shared/retry"
)

// fixture runs every component as a process of its own, in a folder of its own, with default settings.
type fixture struct {
	t         *testing.T
	dir       string
	plan      plan
	postgres  *localpostgres.Server
	clock     *stepping.Control // PostgreSQL's; nil: the machine's
	urls      migrations.URLs
	broker    *process
	brokers   []string
	processes []*process // of the functions
	api       *client.Client
	outside   *outside
	mu        sync.Mutex
	complains []string
}

// readyWithin bounds the start of the functions.
const readyWithin = 30 * time.Second

// otherType is a job type with the same handler as WITNESS.
const otherType = "WITNESS.OTHER"

// plan describes an installation.
type plan struct {
	form    form
	workers int
	copies  int                        // of each other function; 0: from the flag
	queues  []string                   // nil: only the default one
	pulls   int                        // copies of pull; 0: as copies
	pollers int                        // pull workers
	relays  int                        // of the outbox at relayed
	relayed string                     // the address of its database
	stepped bool                       // PostgreSQL has a clock that can be stepped
	env     func(name string) []string // additional settings of a process; nil: none
}

// form is how many processes the functions have.
type form int

const (
	apart   form = iota // one each
	grouped             // api, scheduler and each worker: jobweaver serve --functions
	paired              // jobweaver serve with the broker in it, and its standby
)

func open(t *testing.T, workers int) *fixture {
	t.Helper()
	return build(t, plan{workers: workers})
}

func build(t *testing.T, p plan) *fixture {
	t.Helper()
	if p.copies == 0 {
		p.copies = *replicas
	}
	bin := binaries(t)
	dir, err := os.MkdirTemp("", "jobweaver-kill-")
	if err != nil {
		t.Fatal(err)
	}
	h := &fixture{t: t, dir: dir, plan: p}
	t.Cleanup(h.close)
	cfg := localpostgres.Config{Dir: filepath.Join(dir, "postgres")}
	if p.stepped {
		cfg.Env = h.ownClock()
	}
	h.postgres, err = localpostgres.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if p.form != paired {
		h.startBroker(bin)
	}
	h.urls, err = migrations.EnsureDatabases(t.Context(), h.postgres.URL())
	must(t, err)
	if p.form == apart {
		h.furnish()
	}
	h.outside = newOutside(h)
	if p.form == apart {
		h.startFunctions(bin, p)
	} else {
		h.startServes(bin, p)
	}
	return h
}

func (h *fixture) startBroker(bin string) {
	h.t.Helper()
	port := freeport.For(h.t)
	h.brokers = []string{net.JoinHostPort("127.0.0.1", port)}
	h.broker = h.process("broker", bin, "broker", "PORT="+port, "BROKER_DIR="+h.brokerDir())
	if err := h.broker.start(); err != nil {
		h.t.Fatal(err)
	}
}

func (h *fixture) brokerDir() string { return filepath.Join(h.dir, "broker") }

func (h *fixture) witnessFile() string { return filepath.Join(h.dir, "witness") }

func (h *fixture) kafka() kafkaevent.Config {
	return kafkaevent.Config{Brokers: h.brokers, ReplicationFactor: 1}
}

// furnish makes tables and topics. jobweaver serve does that itself.
func (h *fixture) furnish() {
	h.t.Helper()
	err := errors.Join(
		migrations.Up(h.t.Context(), h.urls.API, migrations.API, nil),
		migrations.Up(h.t.Context(), h.urls.Scheduler, migrations.Scheduler, nil),
		migrations.Up(h.t.Context(), h.urls.Worker, migrations.Worker, nil),
		h.admit(migrations.API), h.admit(migrations.Scheduler), h.admit(migrations.Worker),
		h.createTopics(h.t.Context()))
	if err != nil {
		h.t.Fatal(err)
	}
}

// admit gives each function the role of its database, so that no process has more rights than in production.
func (h *fixture) admit(set migrations.Set) error {
	passwords := map[string]string{}
	for _, role := range set.Roles() {
		passwords[role] = h.postgres.Password(role)
	}
	return migrations.Grant(h.t.Context(), h.urls.Of(set.Functions[0]), set, passwords)
}

func (h *fixture) createTopics(ctx context.Context) error {
	return within(ctx, readyWithin, func(ctx context.Context) error {
		return kafkaevent.CreateTopics(ctx, h.kafka(), jobevent.Topics(h.allQueues()))
	})
}

// allQueues returns the queues of the test's jobs, and that of pull.
func (h *fixture) allQueues() []string {
	queues := h.plan.queues
	if len(queues) == 0 {
		queues = []string{jobevent.DefaultQueue}
	}
	return append(slices.Clone(queues), pullQueue)
}

const pullQueue = "pull"

func (h *fixture) startFunctions(bin string, plan plan) {
	h.t.Helper()
	var ports, pulls []string
	gateway := freeport.For(h.t) // of the first
	for range plan.countOf("pull") {
		pulls = append(pulls, freeport.For(h.t))
	}
	for _, function := range functions {
		url := ""
		if function != "relay" { // which has no database of JobWeaver
			var err error
			if url, err = h.urls.As(function, h.postgres.Password(migrations.Role(function))); err != nil {
				h.t.Fatal(err)
			}
		}
		for n := range plan.countOf(function) {
			name := fmt.Sprintf("%s-%d", function, n+1)
			if function != "runjob" && function != "relay" && plan.countOf(function) == 1 {
				name = function
			}
			var port string
			switch {
			case function == "pull":
				port = pulls[n]
			case function == "gateway" && n == 0:
				port = gateway
			default:
				port = freeport.For(h.t)
			}
			ports = append(ports, port)
			p := h.process(name, bin, function, "HOST=127.0.0.1", "AUTH=off", "PORT="+port, "DATABASE_URL="+url,
				"KAFKA_BROKERS="+h.brokers[0], "JOB_TYPES=WITNESS,ECHO,"+otherType, "WITNESS_FILE="+h.witnessFile())
			p.env = append(p.env, h.outside.settings("http://127.0.0.1:"+gateway)...)
			if function == "relay" {
				p.env = append(p.env, "RELAY_DATABASE_URL="+plan.relayed, "GATEWAY_URL=http://127.0.0.1:"+gateway)
			}
			p.env = append(p.env, "QUEUES="+strings.Join(h.allQueues(), ","),
				"PULL_URL=http://127.0.0.1:"+strings.Join(pulls, ",http://127.0.0.1:"))
			if plan.env != nil {
				p.env = append(p.env, plan.env(name)...)
			}
			h.processes = append(h.processes, p)
			if err := p.start(); err != nil {
				h.t.Fatal(err)
			}
		}
	}
	h.api = client.New("http://127.0.0.1:"+gateway, "")
	for i, port := range ports {
		if err := awaitReady(h.t.Context(), port); err != nil {
			h.t.Fatalf("%s is not ready: %v\n%s", h.processes[i].name, err, tail(h.processes[i].log, 2000))
		}
	}
	h.startPollers(bin, plan.pollers, "http://127.0.0.1:"+gateway)
}

// startPollers starts pull workers. They have no port.
func (h *fixture) startPollers(bin string, n int, gateway string) {
	h.t.Helper()
	for n := range n {
		p := h.process(fmt.Sprintf("poller-%d", n+1), bin, "poller", "GATEWAY_URL="+gateway, "WITNESS_FILE="+h.witnessFile())
		h.processes = append(h.processes, p)
		if err := p.start(); err != nil {
			h.t.Fatal(err)
		}
	}
}

func (p plan) countOf(function string) int {
	switch function {
	case "runjob":
		return p.workers
	case "relay":
		return p.relays
	case "pull":
		if p.pulls > 0 {
			return p.pulls
		}
	}
	return p.copies
}

func (h *fixture) process(name, bin, program string, env ...string) *process {
	return &process{
		name: name, bin: filepath.Join(bin, program), env: env, log: filepath.Join(h.dir, name+".log"), bad: h.complain,
	}
}

// workers returns the processes that run jobs.
func (h *fixture) workers() (list []*process) {
	for _, p := range h.processes {
		if len(p.name) > 6 && p.name[:6] == "runjob" {
			list = append(list, p)
		}
	}
	return list
}

// complain records what must not happen, wherever it is noticed.
func (h *fixture) complain(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if text := fmt.Sprintf(format, args...); !slices.Contains(h.complains, text) {
		h.complains = append(h.complains, text)
	}
}

// close ends the running processes, and removes the folder after a success.
func (h *fixture) close() {
	for _, text := range h.complains {
		h.t.Error(text)
	}
	for _, p := range append(slices.Clone(h.processes), h.broker) {
		if p != nil && p.cmd != nil && p.last().ended.IsZero() {
			_ = p.kill()
		}
	}
	if h.postgres != nil {
		if err := h.postgres.Kill(); err != nil {
			h.t.Error(err)
		}
		_ = h.postgres.Stop()
	}
	if h.t.Failed() || *keep {
		h.t.Logf("logs, data and the witness file are in %s", h.dir)
		return
	}
	_ = os.RemoveAll(h.dir)
}

// awaitReady probes a function until it is ready.
func awaitReady(ctx context.Context, port string) error {
	return within(ctx, readyWithin, func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:"+port+"/health/readiness", nil)
		if err != nil {
			return err
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		_ = res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return errors.New(res.Status)
		}
		return nil
	})
}

// within calls try until it succeeds or d has passed.
func within(ctx context.Context, d time.Duration, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		if !retry.Pause(ctx, 50*time.Millisecond) {
			return err
		}
	}
}
