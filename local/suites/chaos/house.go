package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/jobweaver/jobweaver/infra/laptop/freeport"
	"github.com/jobweaver/jobweaver/local/suites/chaos/clock"
	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
)

// house is everything as processes of its own, in a folder of its own.
type house struct {
	dir       string
	say       func(line string)
	diary     *diary
	net       *network
	mounts    []string
	brokers   []*broker
	postgres  *servers
	functions []*function
	witness   *witness
	gateways  []string       // base URLs
	records   map[string]int // events on the run-job topics that were counted, by id
}

// function is one process of a function.
type function struct {
	*process
	of    string // the function
	port  int
	clock *clock.Control
}

const (
	copies  = 2 // of each function but the worker
	workers = 3
)

// queues: the second one is limited.
var queues = []string{jobevent.DefaultQueue, limitedQueue}

// open brings up everything. Whatever it returns has to be closed.
func open(ctx context.Context, bin string, names []string, say func(string)) (*house, error) {
	dir, err := os.MkdirTemp("", "jobweaver-chaos-")
	if err != nil {
		return nil, err
	}
	h := &house{dir: dir, say: say, diary: &diary{}, net: newNetwork()}
	// PostgreSQL's user has to get into it.
	if err := os.Chmod(dir, 0o755); err != nil {
		return h, err
	}
	if h.witness, err = newWitness(h.path("witness.jsonl"), h.killCaller); err != nil {
		return h, err
	}
	say("starting PostgreSQL with a synchronous standby, and three Apache Kafka brokers")
	if err := h.newServers(ctx); err != nil {
		return h, err
	}
	if err := h.newBrokers(ctx); err != nil {
		return h, err
	}
	if err := h.startBrokers(ctx, h.brokers...); err != nil {
		return h, err
	}
	if err := h.furnish(ctx, bin, names); err != nil {
		return h, err
	}
	for _, f := range h.functions {
		if err := f.start(); err != nil {
			return h, err
		}
	}
	return h, h.awaitReady(ctx, h.functions...)
}

func (h *house) path(name string) string { return filepath.Join(h.dir, name) }

func (h *house) process(name string, command func() *exec.Cmd) *process {
	return &process{name: name, log: h.path(name + ".log"), command: command, onDeath: killedWithUs, diary: h.diary}
}

// disk makes a folder for a server's data. Where we may mount, a small one is a file system that can be full.
func (h *house) disk(name string, small bool, size int) (string, error) {
	dir := h.path(name)
	if err := os.Mkdir(dir, 0o700); err != nil || !small || !h.canFill() {
		return dir, err
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0700", size)); err != nil {
		return "", fmt.Errorf("mount a small disk at %s: %w", dir, err)
	}
	h.mounts = append(h.mounts, dir)
	return dir, nil
}

func (h *house) canFill() bool { return os.Geteuid() == 0 }

// furnish makes databases, tables, roles and topics, and prepares the functions.
func (h *house) furnish(ctx context.Context, bin string, names []string) error {
	urls, err := migrations.EnsureDatabases(ctx, h.postgres.url("postgres"))
	if err != nil {
		return err
	}
	passwords := map[string]string{}
	for _, set := range []migrations.Set{migrations.API, migrations.Scheduler, migrations.Worker} {
		own := map[string]string{}
		for _, role := range set.Roles() {
			own[role] = rand.Text()
			passwords[role] = own[role]
		}
		url := urls.Of(set.Functions[0])
		if err := errors.Join(migrations.Up(ctx, url, set), migrations.Grant(ctx, url, set, own)); err != nil {
			return err
		}
	}
	if err := h.createTopics(ctx); err != nil {
		return err
	}
	gateway, err := ports(copies)
	if err != nil {
		return err
	}
	for _, port := range gateway {
		h.gateways = append(h.gateways, "http://"+loopback(port))
	}
	for _, name := range names {
		for n := range countOf(name) {
			port, err := freeport.Pick()
			if err != nil {
				return err
			}
			if name == "gateway" {
				port = gateway[n]
			}
			if err := h.prepare(bin, name, n+1, port, passwords[migrations.Role(name)]); err != nil {
				return err
			}
		}
	}
	return nil
}

func countOf(function string) int {
	if function == "runjob" {
		return workers
	}
	return copies
}

// prepare makes a function's process, with links of its own to both databases and all brokers.
func (h *house) prepare(bin, of string, n, port int, password string) error {
	name := fmt.Sprintf("%s-%d", of, n)
	address, err := h.postgres.urlOf(name, migrations.Role(of), password, databaseOf(of))
	if err != nil {
		return err
	}
	control, err := clock.NewControl(h.path(name + ".clock"))
	if err != nil {
		return err
	}
	env := append([]string{
		"PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(), clock.Env + "=" + control.Path(),
		"HOST=127.0.0.1", "AUTH=off", fmt.Sprintf("PORT=%d", port), "DATABASE_URL=" + address,
		"KAFKA_BROKERS=" + strings.Join(h.bootstrap(), ","), "KAFKA_CLIENT_ID=" + name,
		fmt.Sprintf("KAFKA_REPLICATION_FACTOR=%d", brokers), "QUEUES=" + strings.Join(queues, ","),
	}, h.witness.settings(h.gateways[0])...)
	if version := os.Getenv("EVENTS_VERSION"); version != "" {
		env = append(env, "EVENTS_VERSION="+version)
	}
	f := &function{of: of, port: port, clock: control}
	f.process = h.process(name, func() *exec.Cmd {
		cmd := exec.Command(filepath.Join(bin, of))
		cmd.Env = env
		return cmd
	})
	h.functions = append(h.functions, f)
	return nil
}

func databaseOf(function string) string {
	for _, set := range []migrations.Set{migrations.API, migrations.Scheduler, migrations.Worker} {
		for _, name := range set.Functions {
			if name == function {
				return set.Database()
			}
		}
	}
	return "postgres"
}

func (h *house) kafka() kafkaevent.Config {
	return kafkaevent.Config{Brokers: h.bootstrap(), ReplicationFactor: brokers, ClientID: harness}
}

// harness is our own name to the brokers. Its links never fail.
const harness = "harness"

func (h *house) createTopics(ctx context.Context) error {
	return within(ctx, startsWithin, func(ctx context.Context) error {
		return kafkaevent.CreateTopics(ctx, h.kafka(), jobevent.Topics(queues))
	})
}

// copiesOf are the processes of one function.
func (h *house) copiesOf(of string) (list []*function) {
	for _, f := range h.functions {
		if f.of == of {
			list = append(list, f)
		}
	}
	return list
}

func (h *house) awaitReady(ctx context.Context, list ...*function) error {
	for _, f := range list {
		err := within(ctx, startsWithin, func(ctx context.Context) error {
			url := fmt.Sprintf("http://%s/health/readiness", loopback(f.port))
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
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
		if err != nil {
			return fmt.Errorf("%s is not ready: %w\n%s", f.name, err, tail(f.log, 2000))
		}
	}
	return nil
}

// close ends what still runs; the folder stays.
func (h *house) close() error {
	var errs []error
	for _, f := range h.functions {
		errs = append(errs, f.kill(), f.clock.Close())
	}
	for _, b := range h.brokers {
		errs = append(errs, b.kill())
	}
	if h.postgres != nil {
		for _, n := range h.postgres.nodes {
			if n != nil {
				errs = append(errs, n.kill())
			}
		}
	}
	errs = append(errs, h.net.close())
	if h.witness != nil {
		errs = append(errs, h.witness.close())
	}
	for _, dir := range h.mounts {
		errs = append(errs, syscall.Unmount(dir, syscall.MNT_DETACH))
	}
	return errors.Join(errs...)
}

// within tries something until it succeeds, or d has passed.
func within(ctx context.Context, d time.Duration, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		if !pause(ctx, 100*time.Millisecond) {
			return err
		}
	}
}

// pause waits, and is false when ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// tail is the end of a file.
func tail(path string, n int) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-n):])
}
