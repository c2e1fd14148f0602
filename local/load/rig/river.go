package rig

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jobweaver/jobweaver/local/load/figures"
)

// Root is the folder of this module. The bench builds and runs programs in modules below it.
func Root(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("find the source (run this within it): %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// River is the program that measures River.
type River struct {
	program string
	dir     string
	server  *Server
	Version string // of River
}

// RiverWorkers is River's number of workers, as in its own bench.
const RiverWorkers = 2_000

// BuildRiver builds the program into dir.
func BuildRiver(ctx context.Context, dir string, server *Server) (*River, error) {
	root, err := Root(ctx)
	if err != nil {
		return nil, err
	}
	source := filepath.Join(root, "local", "load", "river")
	r := &River{program: filepath.Join(dir, "river"), dir: dir, server: server}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("build River: %w", err)
	}
	build := exec.CommandContext(ctx, "go", "build", "-C", source, "-o", r.program, ".")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build River: %w\n%s", err, out)
	}
	list := exec.CommandContext(ctx, "go", "list", "-C", source, "-m", "-f", "{{.Version}}", "github.com/riverqueue/river")
	out, err := list.Output()
	r.Version = strings.TrimSpace(string(out))
	return r, err
}

// RiverRun is the result of a run.
type RiverRun struct {
	Seconds  float64              `json:"seconds"`
	Inserted float64              `json:"inserted_s"`
	JobsPerS float64              `json:"jobs_per_s"`
	CPU      float64              `json:"cpu_s"` // of River's process
	Switches int64                `json:"switches"`
	Insert   figures.Distribution `json:"insert"`
	Start    figures.Distribution `json:"start"`
}

// RiverLoad describes the jobs of a run.
type RiverLoad struct {
	Jobs, Warm int           // of a throughput run
	Rate       int           // of a latency run, a second
	For        time.Duration // of a latency run
	Pad        int           // bytes that are added to the payload
	Handler    time.Duration // how long each job of a throughput run sleeps
	Workers    int           // of a throughput run
}

// Throughput measures how fast River works jobs. began is called when the timed part begins, and ended after it, while
// River's sessions with PostgreSQL are still open.
func (r *River) Throughput(ctx context.Context, l RiverLoad, began, ended func()) (RiverRun, error) {
	return r.run(ctx, began, ended, "throughput",
		"--jobs", strconv.Itoa(l.Jobs), "--warm", strconv.Itoa(l.Warm), "--pad", strconv.Itoa(l.Pad),
		"--handler", l.Handler.String(), "--workers", strconv.Itoa(l.Workers))
}

// Latency inserts single jobs at a rate. It has more than the four connections that are enough for batches: with four,
// inserts would queue. began and ended are called as in Throughput.
func (r *River) Latency(ctx context.Context, l RiverLoad, began, ended func()) (RiverRun, error) {
	return r.run(ctx, began, ended, "latency",
		"--rate", strconv.Itoa(l.Rate), "--for", l.For.String(), "--pool", "32", "--pad", strconv.Itoa(l.Pad))
}

func (r *River) run(ctx context.Context, began, ended func(), args ...string) (result RiverRun, err error) {
	child, err := start("river", r.dir, []string{"DATABASE_URL=" + r.server.URL()}, r.program, append(args, "--stay")...)
	if err != nil {
		return result, err
	}
	for {
		line, err := child.line(ctx)
		if err != nil {
			_ = child.Stop()
			return result, err
		}
		if line == "begin" {
			began()
			continue
		}
		if err := json.Unmarshal([]byte(line), &result); err != nil {
			_ = child.Stop()
			return result, fmt.Errorf("read River's result: %w", err)
		}
		break
	}
	ended()
	return result, child.Stop()
}
