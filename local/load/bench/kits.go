package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jobweaver/jobweaver/local/load/figures"
	"github.com/jobweaver/jobweaver/local/load/rig"
	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/client/worker"
)

const (
	kitJobs  = 3_000
	kitSlots = 50
	kitWait  = 2 * time.Minute
)

// kits runs the same no-ops by the worker kits of three languages, in turn on one installation. The jobs wait before
// a kit starts.
func (b *bench) kits(ctx context.Context) error {
	root, err := rig.Root(ctx)
	if err != nil {
		return err
	}
	python := filepath.Join(root, "clients", "python", ".venv", "bin", "python")
	typescript := filepath.Join(root, "clients", "typescript")
	for _, needed := range []string{python, filepath.Join(typescript, "node_modules")} {
		if _, err := os.Stat(needed); err != nil {
			b.printf("there is no %s: make packages fetches it; this part is left out", needed)
			return nil
		}
	}
	if out, err := exec.CommandContext(ctx, "npm", "run", "--silent", "--prefix", typescript, "build").CombinedOutput(); err != nil {
		return fmt.Errorf("build TypeScript client: %w\n%s", err, out)
	}
	programs := filepath.Join(root, "local", "load", "kits")
	b.pulls = true
	defer func() { b.pulls = false }()
	return b.withSystem(ctx, b.server, nil, func(sys *system) error {
		if err := b.warm(ctx, sys); err != nil {
			return err
		}
		result := figures.Kits{Jobs: kitJobs, Slots: kitSlots, Seconds: map[string][]float64{}}
		for range b.Settings.Rounds {
			for _, kit := range []string{"Go", "TypeScript", "Python"} {
				seconds, err := b.kitRound(ctx, sys, kit, map[string]*exec.Cmd{
					"TypeScript": exec.CommandContext(ctx, "node", filepath.Join(programs, "noop.mjs")), //nolint:gosec // our own program
					"Python":     exec.CommandContext(ctx, python, filepath.Join(programs, "noop.py")),  //nolint:gosec // likewise
				}[kit])
				if err != nil {
					return fmt.Errorf("run no-ops by the kit in %s: %w", kit, err)
				}
				b.printf("%-10s  %.2f s for %d no-ops with %d slots", kit, seconds, kitJobs, kitSlots)
				result.Seconds[kit] = append(result.Seconds[kit], seconds)
			}
		}
		b.results.Kits = &result
		return nil
	})
}

// kitRound submits jobs, and runs them by a program, or without one by the kit in Go.
func (b *bench) kitRound(ctx context.Context, sys *system, kit string, program *exec.Cmd) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, kitWait)
	defer cancel()
	c := client.New(sys.URL, "")
	jobs := make([]client.JobRequest, kitJobs)
	for i := range jobs {
		jobs[i] = client.JobRequest{JobType: NoopType, Queue: rig.PullQueue, Payload: map[string]int{"num": i}}
	}
	if _, err := c.SubmitBatch(ctx, jobs); err != nil {
		return 0, err
	}
	if program == nil {
		return goKit(ctx, c)
	}
	root, err := rig.Root(ctx)
	if err != nil {
		return 0, err
	}
	program.Env = append(os.Environ(), "JOBWEAVER_URL="+sys.URL, "PYTHONPATH="+filepath.Join(root, "clients", "python", "src"))
	program.Args = append(program.Args, NoopType, rig.PullQueue, strconv.Itoa(kitJobs), strconv.Itoa(kitSlots))
	program.Stderr = b.Out
	out, err := program.Output()
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
}

func goKit(ctx context.Context, c *client.Client) (seconds float64, err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	w := worker.New(c, worker.Options{Slots: kitSlots, Queues: []string{rig.PullQueue}})
	var run atomic.Int64
	begin := time.Now()
	worker.Handle(w, NoopType, func(context.Context, *worker.Attempt, struct{}) (any, error) {
		if run.Add(1) == kitJobs {
			seconds = time.Since(begin).Seconds()
			stop()
		}
		return nil, nil
	})
	if err := w.Run(ctx); err != nil {
		return 0, err
	}
	if run.Load() < kitJobs {
		return 0, errors.New("not all jobs have come in time")
	}
	return seconds, nil
}
