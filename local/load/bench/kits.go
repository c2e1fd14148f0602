package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
	typescript, python := filepath.Join(root, "clients", "typescript"), filepath.Join(root, "clients", "python")
	interpreter := filepath.Join(python, ".venv", "bin", "python")
	for _, needed := range []string{interpreter, filepath.Join(typescript, "node_modules")} {
		if _, err := os.Stat(needed); err != nil {
			b.printf("there is no %s: make packages fetches it; this part is left out", needed)
			return nil
		}
	}
	build := exec.CommandContext(ctx, "npm", "run", "--silent", "--prefix", typescript, "build") //nolint:gosec // ours
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build TypeScript client: %w\n%s", err, out)
	}
	programs := filepath.Join(root, "local", "load", "kits")
	commands := map[string][]string{
		"TypeScript": {"node", filepath.Join(programs, "noop.mjs")},
		"Python":     {interpreter, filepath.Join(programs, "noop.py")},
	}
	env := append(os.Environ(), "PYTHONPATH="+filepath.Join(python, "src"))
	return b.kitRounds(ctx, commands, env)
}

func (b *bench) kitRounds(ctx context.Context, commands map[string][]string, env []string) error {
	b.pulls = true
	defer func() { b.pulls = false }()
	return b.withSystem(ctx, b.server, nil, func(sys *system) error {
		if err := b.warm(ctx, sys); err != nil {
			return err
		}
		result := figures.Kits{Jobs: kitJobs, Slots: kitSlots, Seconds: map[string][]float64{}}
		for range b.Settings.Rounds {
			for _, kit := range []string{"Go", "TypeScript", "Python"} {
				seconds, err := b.kitRound(ctx, sys, commands[kit], env)
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
func (b *bench) kitRound(ctx context.Context, sys *system, command, env []string) (float64, error) {
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
	if command == nil {
		return goKit(ctx, c)
	}
	args := slices.Concat(command[1:], []string{NoopType, rig.PullQueue, strconv.Itoa(kitJobs), strconv.Itoa(kitSlots)})
	program := exec.CommandContext(ctx, command[0], args...) //nolint:gosec // our own programs
	program.Env, program.Stderr = slices.Concat(env, []string{"JOBWEAVER_URL=" + sys.URL}), b.Out
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
