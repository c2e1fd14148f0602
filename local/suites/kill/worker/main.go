// Command worker is a worker with a job type of its own, WITNESS, which records in a file what it does; WITNESS.OTHER
// is another name of it. It is also an example of a Go program that runs its own job types. With SERVE_FUNCTIONS it is
// `jobweaver serve` with these types.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jobweaver/jobweaver/functions"
	"github.com/jobweaver/jobweaver/functions/runjob"
	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/local/serve"
	"github.com/jobweaver/jobweaver/local/suites/kill/witness"
	"github.com/jobweaver/jobweaver/shared/funchost"
)

type settings struct {
	File string `envconfig:"WITNESS_FILE"` // to which the handlers append
	Name string `envconfig:"WITNESS_NAME"` // of this process in it
}

func main() {
	names, is := os.LookupEnv("SERVE_FUNCTIONS")
	if !is {
		funchost.Main(runjob.Name, build)
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	err := runServe(ctx, names)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "serve:", err)
		os.Exit(1)
	}
}

func runServe(ctx context.Context, names string) error {
	for i := range functions.All {
		if functions.All[i].Name == runjob.Name {
			functions.All[i].Wire = build
		}
	}
	o := serve.Options{Out: os.Stdout}
	if names != "" {
		o.Functions = strings.Split(names, ",")
	}
	return serve.Run(ctx, o)
}

func build(ctx context.Context, env *funchost.Env) (funchost.Function, error) {
	var none funchost.Function
	var own settings
	if err := env.Load(&own); err != nil {
		return none, err
	}
	file, err := witness.Open(own.File, own.Name)
	if err != nil {
		return none, err
	}
	registry, err := runjob.Builtin(env)
	if err != nil {
		return none, err
	}
	for _, name := range []string{"WITNESS", "WITNESS.OTHER"} {
		if err := registry.Register(name, nil, handler{file}.run); err != nil {
			return none, err
		}
	}
	echo := func(_ context.Context, a *handlers.Attempt) (handlers.Result, error) {
		return handlers.Result{Output: a.Payload}, nil
	}
	if err := registry.Register("ECHO", nil, echo); err != nil {
		return none, err
	}
	worker, err := runjob.FromEnv(ctx, env, registry)
	if err != nil {
		return none, err
	}
	return worker.Host(), file.Write(witness.Line{What: witness.Worker, How: worker.ID()})
}

type handler struct{ file *witness.Writer }

func (h handler) run(ctx context.Context, a *handlers.Attempt) (handlers.Result, error) {
	var p witness.Payload
	if err := json.Unmarshal(a.Payload, &p); err != nil {
		return handlers.Result{}, &handlers.Failure{Code: "TEST.PAYLOAD", Message: err.Error()}
	}
	h.record(a, p, witness.Start, "")
	a.Log(slog.LevelInfo, "attempt "+a.Token+" runs")
	err := h.count(ctx, a, p)
	if err == nil {
		err = p.Work(ctx)
	}
	if err != nil {
		h.record(a, p, witness.End, err.Error())
		return handlers.Result{}, err
	}
	switch {
	case p.Dies:
		return handlers.Result{}, errors.Join(syscall.Kill(os.Getpid(), syscall.SIGKILL), errors.New("it should be dead"))
	case p.Panics:
		h.record(a, p, witness.End, witness.Panic)
		panic("as it should")
	case a.Number <= p.FailAttempts:
		h.record(a, p, witness.End, witness.Failed)
		return handlers.Result{}, &handlers.Failure{Code: witness.ErrorCode, Message: "as it should", Retryable: !p.Fatal}
	case a.Number <= p.SnoozeAttempts:
		h.record(a, p, witness.End, witness.Snoozed)
		return handlers.Result{Snooze: 300 * time.Millisecond}, nil
	}
	h.record(a, p, witness.End, witness.OK)
	if p.Waits {
		return handlers.Result{WaitFor: 10 * time.Minute}, nil
	}
	return handlers.Result{Output: json.RawMessage(fmt.Sprintf(`{"attempt":%d}`, a.Number))}, nil
}

// count counts on from the checkpoint, and records each number once it is saved.
func (h handler) count(ctx context.Context, a *handlers.Attempt, p witness.Payload) error {
	if p.Counts == 0 {
		return nil
	}
	n := 0
	if _, err := a.Checkpoint.Load(&n); err != nil {
		return err
	}
	h.record(a, p, witness.Loaded, strconv.Itoa(n))
	for n < p.Counts {
		select {
		case <-time.After(witness.CountEvery):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		n++
		if err := a.Checkpoint.Save(n); err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return err
		}
		h.record(a, p, witness.Saved, strconv.Itoa(n))
	}
	return nil
}

// record ends the process if it cannot write: with an incomplete witness file the test would report false violations.
func (h handler) record(a *handlers.Attempt, p witness.Payload, what, how string) {
	line := witness.Line{What: what, Job: a.JobID, Attempt: a.Number, Key: p.Key, How: how}
	if err := h.file.Write(line); err != nil {
		slog.Error("witness file cannot be written", "error", err)
		os.Exit(1)
	}
}
