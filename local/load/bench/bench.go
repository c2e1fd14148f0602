// Package bench measures JobWeaver part by part, beside River, on this machine. It starts what it needs, and drives
// JobWeaver only through its public API.
package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jobweaver/jobweaver/local/load/figures"
	"github.com/jobweaver/jobweaver/local/load/rig"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// The bench's own job types, which its functions and its workers know.
const (
	NoopType  = "NOOP"    // does nothing
	SleepType = "SLEEP50" // sleeps for SleepFor
	SleepFor  = 50 * time.Millisecond
)

// Contestants are the contestants besides figures.Yardstick.
var Contestants = []string{embedded, apache}

const (
	embedded = "embedded" // the broker in the process of the functions, as in make run
	apache   = "apache"   // Apache Kafka beside it
)

// request is a JobRequest as small as River's.
func request(jobType, queue string) string { return padded(jobType, queue, 0) }

// padded returns a request with a payload that is larger by this many bytes.
func padded(jobType, queue string, bytes int) string {
	pad := ""
	if bytes > 0 {
		pad = `,"pad":"` + strings.Repeat("x", bytes) + `"`
	}
	return fmt.Sprintf(`{"jobType":%q,"queue":%q,"payload":{"num":1%s}}`, jobType, queue, pad)
}

// Parts names every part, in the order of measurement.
var Parts = []string{
	"throughput", "latency", "backlog", "keys", "scale", "cost", "soak", "idle", "streams", "outbox", "pull", "kits",
	"waits", "payload", "retention", "audit", "http", "neighbours", "peers",
}

// Options select what is measured, and for how long.
type Options struct {
	Parts       []string
	Contestants []string
	Dir         string // where the folder for all data is made; it is removed at the end
	JSON        string // file of results, in which parts of other runs are kept; empty: none
	Settings    figures.Settings

	Rates       []int         // of the latency part
	LatencyFor  time.Duration // for each rate
	Window      time.Duration // over which a rate is measured in backlog and scale
	Hold        time.Duration // of the open transaction
	BacklogMost int           // caps every backlog
	Soak        time.Duration
	SoakRate    float64           // 0: 70 % of the measured maximum
	SoakBatch   int               // jobs in a POST of the soak
	OldJobs     int               // that retention has to delete
	Waiting     int               // jobs that wait for an event at once
	Neighbours  []string          // the cases of that part; empty: all
	Postgres    map[string]string // settings of the server, beside those of make run

	Out io.Writer
}

type bench struct {
	Options
	server  *rig.Server
	river   *rig.River
	apache  *rig.Broker // started when first needed
	results figures.Results
	systems int    // started so far
	pulls   bool   // installations have the function pull
	noop    string // the job with which most parts are measured
	pad     int    // bytes that are added to its payload, and to that of River's jobs
}

// Run measures the selected parts and prints the results.
func Run(ctx context.Context, o Options) (err error) {
	b := &bench{Options: o, noop: request(NoopType, jobevent.DefaultQueue)}
	if err := errors.Join(known("part", o.Parts, Parts), known("contestant", o.Contestants, Contestants)); err != nil {
		return err
	}
	if b.results, err = figures.Read(o.JSON); o.JSON != "" && err != nil {
		return err
	}
	if b.Dir, err = b.makeDir(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.Dir)) }()
	b.server, err = rig.StartServer(ctx, filepath.Join(b.Dir, "postgres"), b.Postgres, b.print)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.server.Stop()) }()
	if b.river, err = rig.BuildRiver(ctx, filepath.Join(b.Dir, "river"), b.server); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.stopApache()) }()
	return b.measure(ctx)
}

func known(what string, asked, all []string) error {
	for _, name := range asked {
		if !slices.Contains(all, name) {
			return fmt.Errorf("there is no %s %q; there are %v", what, name, all)
		}
	}
	return nil
}

// makeDir makes the folder of all data on a disk, because in memory the figures would be wrong.
func (b *bench) makeDir() (string, error) {
	dir, err := os.MkdirTemp(b.Dir, "jobweaver-bench-")
	if err != nil {
		return "", fmt.Errorf("make folder: %w", err)
	}
	if rig.InMemory(dir) {
		return "", errors.Join(fmt.Errorf("%s is in memory: name a folder on a disk with --dir", dir), os.Remove(dir))
	}
	return dir, os.Chmod(dir, 0o755) // PostgreSQL may run as another user
}

func (b *bench) measure(ctx context.Context) error {
	version, err := b.server.Version(ctx)
	if err != nil {
		return err
	}
	b.results.Machine = machine(ctx, version, b.river.Version)
	b.results.Settings = b.Settings
	b.print(describe(b.results))
	all := map[string]func(context.Context) error{
		"throughput": b.throughput, "latency": b.latency, "backlog": b.backlog, "keys": b.keys, "scale": b.scale,
		"cost": b.cost, "soak": b.soak, "idle": b.idle, "streams": b.streams, "outbox": b.outbox, "pull": b.pull,
		"kits": b.kits, "waits": b.waits, "payload": b.payload, "retention": b.retention, "audit": b.audit,
		"http": b.overHTTP, "neighbours": b.neighbours, "peers": b.peers,
	}
	for _, part := range Parts {
		if !slices.Contains(b.Parts, part) {
			continue
		}
		b.print("\n" + part)
		if err := all[part](ctx); err != nil {
			return fmt.Errorf("measure %s: %w", part, err)
		}
		if b.JSON != "" { // after each part: the long ones may be interrupted
			if err := b.results.Keep(b.JSON); err != nil {
				return fmt.Errorf("keep results: %w", err)
			}
		}
	}
	b.print("")
	if err := table(b.Out, b.results, b.Parts); err != nil {
		return err
	}
	if slices.Contains(b.Parts, "throughput") && slices.Contains(b.Parts, "latency") {
		guard(b.Out, b.results)
	}
	return nil
}

func (b *bench) print(line string) { fmt.Fprintln(b.Out, line) }

func (b *bench) printf(format string, args ...any) { b.print(fmt.Sprintf("  "+format, args...)) }

// contestants returns the selected contestants that this machine can run.
func (b *bench) contestants() []string {
	return slices.DeleteFunc(slices.Clone(b.Contestants), func(name string) bool {
		if name != apache {
			return false
		}
		_, err := exec.LookPath("java")
		if err != nil {
			b.printf("there is no java: Apache Kafka is left out")
		}
		return err != nil
	})
}

// broker returns a contestant's broker: none, or Apache Kafka, which stays warm between rounds.
func (b *bench) broker(ctx context.Context, contestant string) (_ *rig.Broker, err error) {
	if contestant != apache {
		return nil, nil
	}
	if b.apache == nil {
		b.apache, err = rig.StartBroker(ctx, apache, filepath.Join(b.Dir, "apache"))
	}
	return b.apache, err
}

func (b *bench) stopApache() error {
	if b.apache == nil {
		return nil
	}
	broker := b.apache
	b.apache = nil
	return broker.Stop()
}

// folder returns a new folder for an installation and what belongs to it.
func (b *bench) folder() string {
	b.systems++
	return filepath.Join(b.Dir, "functions"+strconv.Itoa(b.systems))
}
