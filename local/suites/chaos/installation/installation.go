// Package installation runs JobWeaver with three brokers, a primary and a standby of PostgreSQL, as processes whose
// network, disks and clocks can fail.
package installation

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/jobweaver/jobweaver/infra/laptop/freeport"
	"github.com/jobweaver/jobweaver/local/suites/balancer"
	"github.com/jobweaver/jobweaver/local/suites/chaos/clock"
	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
	"github.com/jobweaver/jobweaver/shared/retry"
)

// Installation runs every component as a process of its own, in a folder of its own.
type Installation struct {
	Dir       string
	Log       func(line string)
	Diary     *diary
	Net       *network
	mounts    []string
	Brokers   []*Broker
	Postgres  *servers
	Functions []*Function
	Pullers   []*Function // pull workers, which reach the gateways through proxies
	Paired    bool        // Functions are a jobweaver serve and its standby, and there are no brokers
	balancer  *balancer.Balancer
	Witness   *witness
	Gateways  []string       // base URLs
	Records   map[string]int // events on the run-job topics that were counted, by id
}

// Function is one process of a function.
type Function struct {
	*process
	Of    string // the function
	port  int
	Clock *clock.Control
}

const (
	copies  = 2 // of each function but the worker
	workers = 3
)

// LimitedQueue is the queue with a limit.
const LimitedQueue = "limited"

// Queues are the queues of the installation; the second is limited, and the third is that of the function pull.
var Queues = []string{jobevent.DefaultQueue, LimitedQueue, "pull"}

// Open starts everything. The caller closes what it returns, also after an error.
func Open(ctx context.Context, bin string, names []string, logLine func(string)) (*Installation, error) {
	dir, err := os.MkdirTemp("", "jobweaver-chaos-")
	if err != nil {
		return nil, err
	}
	h := &Installation{Dir: dir, Log: logLine, Diary: &diary{}, Net: newNetwork()}
	// PostgreSQL's user must be able to enter it.
	if err := os.Chmod(dir, 0o755); err != nil {
		return h, err
	}
	if h.Witness, err = newWitness(h.Path("witness.jsonl"), h.killCaller); err != nil {
		return h, err
	}
	logLine("starting PostgreSQL with a synchronous standby")
	if err := h.newServers(ctx); err != nil {
		return h, err
	}
	if h.Paired = slices.Equal(names, []string{serve}); h.Paired {
		err = h.pair(bin)
	} else {
		err = errors.Join(h.openBrokers(ctx), h.furnish(ctx, bin, names))
	}
	if err != nil {
		return h, err
	}
	if err := h.addPullers(bin); err != nil {
		return h, err
	}
	for _, f := range h.Processes() {
		if err := f.Start(); err != nil {
			return h, err
		}
	}
	return h, errors.Join(h.AwaitReady(ctx, h.Functions...), h.awaitPullers(ctx))
}

func (h *Installation) openBrokers(ctx context.Context) error {
	h.Log("starting three Apache Kafka brokers")
	if err := h.newBrokers(ctx); err != nil {
		return err
	}
	return h.StartBrokers(ctx, h.Brokers...)
}

// Path returns the path of a file in the folder of the installation.
func (h *Installation) Path(name string) string { return filepath.Join(h.Dir, name) }

func (h *Installation) process(name string, command func() *exec.Cmd) *process {
	return &process{Name: name, Log: h.Path(name + ".log"), command: command, onDeath: killedWithUs, diary: h.Diary}
}

// disk makes a folder for a server's data. As root, a small one is a file system that can be filled.
func (h *Installation) disk(name string, small bool, size int) (string, error) {
	dir := h.Path(name)
	if err := os.Mkdir(dir, 0o700); err != nil || !small || !h.CanFill() {
		return dir, err
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0700", size)); err != nil {
		return "", fmt.Errorf("mount a small disk at %s: %w", dir, err)
	}
	h.mounts = append(h.mounts, dir)
	return dir, nil
}

// CanFill reports whether disks can be filled: only root can mount small ones.
func (h *Installation) CanFill() bool { return os.Geteuid() == 0 }

// furnish makes databases, tables, roles and topics, and prepares the functions.
func (h *Installation) furnish(ctx context.Context, bin string, names []string) error {
	urls, err := migrations.EnsureDatabases(ctx, h.Postgres.URL("postgres"))
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
		if err := errors.Join(migrations.Up(ctx, url, set, nil), migrations.Grant(ctx, url, set, own)); err != nil {
			return err
		}
	}
	if err := h.CreateTopics(ctx); err != nil {
		return err
	}
	of := map[string][]int{}
	for _, name := range names {
		for range countOf(name) {
			port, err := freeport.Pick()
			if err != nil {
				return err
			}
			of[name] = append(of[name], port)
		}
	}
	h.Gateways = addresses(of["gateway"])
	for _, name := range names {
		for n, port := range of[name] {
			pulls := strings.Join(addresses(of["pull"]), ",")
			if err := h.prepare(bin, name, n+1, port, passwords[migrations.Role(name)], "PULL_URL="+pulls); err != nil {
				return err
			}
		}
	}
	return nil
}

func addresses(ports []int) (list []string) {
	for _, port := range ports {
		list = append(list, "http://"+loopback(port))
	}
	return list
}

func countOf(function string) int {
	if function == "runjob" {
		return workers
	}
	return copies
}

// prepare makes a function's process, with its own links to both databases and all brokers.
func (h *Installation) prepare(bin, of string, n, port int, password string, more ...string) error {
	name := fmt.Sprintf("%s-%d", of, n)
	address, err := h.Postgres.urlOf(name, migrations.Role(of), password, databaseOf(of))
	if err != nil {
		return err
	}
	return h.add(name, of, port, []string{filepath.Join(bin, of)}, append(more, "DATABASE_URL="+address,
		"KAFKA_BROKERS="+strings.Join(h.Bootstrap(), ","), "KAFKA_CLIENT_ID="+name,
		fmt.Sprintf("KAFKA_REPLICATION_FACTOR=%d", Brokers))...)
}

// add adds a process of a function.
func (h *Installation) add(name, of string, port int, command []string, more ...string) error {
	f, err := h.clocked(name, of, command, append([]string{
		"HOST=127.0.0.1", "AUTH=off", fmt.Sprintf("PORT=%d", port), "QUEUES=" + strings.Join(Queues, ","),
	}, append(h.Witness.settings(h.Gateways[0]), more...)...))
	if err != nil {
		return err
	}
	f.port = port
	h.Functions = append(h.Functions, f)
	return nil
}

// clocked makes a process with a clock of its own.
func (h *Installation) clocked(name, of string, command, env []string) (*Function, error) {
	control, err := clock.NewControl(h.Path(name + ".clock"))
	if err != nil {
		return nil, err
	}
	env = append([]string{
		"PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(), clock.Env + "=" + control.Path(),
	}, env...)
	f := &Function{Of: of, Clock: control}
	f.process = h.process(name, func() *exec.Cmd {
		cmd := exec.Command(command[0], command[1:]...) //nolint:gosec // our own
		cmd.Env = env
		return cmd
	})
	return f, nil
}

// Processes returns the processes of the functions and the pull workers.
func (h *Installation) Processes() []*Function { return slices.Concat(h.Functions, h.Pullers) }

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

// Kafka returns the configuration by which the suite itself reaches the brokers.
func (h *Installation) Kafka() kafkaevent.Config {
	return kafkaevent.Config{Brokers: h.Bootstrap(), ReplicationFactor: Brokers, ClientID: harness}
}

// harness is the suite's client id. Its links never fail.
const harness = "harness"

// CreateTopics creates the topics that are missing.
func (h *Installation) CreateTopics(ctx context.Context) error {
	return Within(ctx, startsWithin, func(ctx context.Context) error {
		return kafkaevent.CreateTopics(ctx, h.Kafka(), jobevent.Topics(Queues))
	})
}

// CopiesOf returns the processes of one function.
func (h *Installation) CopiesOf(of string) (list []*Function) {
	for _, f := range h.Functions {
		if f.Of == of {
			list = append(list, f)
		}
	}
	return list
}

// Workers returns the processes that run jobs.
func (h *Installation) Workers() []*Function {
	if h.Paired {
		return h.Functions
	}
	return h.CopiesOf("runjob")
}

// AwaitReady waits until the functions are ready. Of a jobweaver serve and its standby one is.
func (h *Installation) AwaitReady(ctx context.Context, list ...*Function) error {
	if h.Paired {
		return Within(ctx, startsWithin, func(ctx context.Context) error {
			return balancer.Probe(ctx, h.Gateways[0], "readiness")
		})
	}
	for _, f := range list {
		err := Within(ctx, startsWithin, func(ctx context.Context) error {
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
			return fmt.Errorf("%s is not ready: %w\n%s", f.Name, err, tail(f.Log, 2000))
		}
	}
	return nil
}

// Close ends the running processes; the folder stays.
func (h *Installation) Close() error {
	var errs []error
	for _, f := range h.Processes() {
		errs = append(errs, f.Kill(), f.Clock.Close())
	}
	for _, b := range h.Brokers {
		errs = append(errs, b.Kill())
	}
	if h.Postgres != nil {
		for _, n := range h.Postgres.Nodes {
			if n != nil {
				errs = append(errs, n.Kill())
			}
		}
	}
	if h.balancer != nil {
		h.balancer.Close()
	}
	errs = append(errs, h.Net.close())
	if h.Witness != nil {
		errs = append(errs, h.Witness.close())
	}
	for _, dir := range h.mounts {
		errs = append(errs, syscall.Unmount(dir, syscall.MNT_DETACH))
	}
	return errors.Join(errs...)
}

// Within calls try until it succeeds or d has passed.
func Within(ctx context.Context, d time.Duration, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		if !retry.Pause(ctx, 100*time.Millisecond) {
			return err
		}
	}
}

// tail returns the end of a file.
func tail(path string, n int) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-n):])
}
