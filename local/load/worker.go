package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/functions/runjob"
	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/local/load/bench"
	"github.com/jobweaver/jobweaver/local/load/rig"
	"github.com/jobweaver/jobweaver/shared/funchost"
)

// jobTypes registers the bench's own job types, no-ops of which sleep for a time. ended is called at the end of each
// handler.
func jobTypes(noop time.Duration, ended func()) map[string]handlers.Handler {
	sleeping := func(d time.Duration) handlers.Handler {
		return func(ctx context.Context, _ *handlers.Attempt) (handlers.Result, error) {
			if d > 0 {
				select {
				case <-time.After(d):
				case <-ctx.Done():
					return handlers.Result{}, context.Cause(ctx)
				}
			}
			ended()
			return handlers.Result{}, nil
		}
	}
	return map[string]handlers.Handler{bench.NoopType: sleeping(noop), bench.SleepType: sleeping(bench.SleepFor)}
}

// newWorker makes the command that runs a further worker in a process of its own, as any Go program can.
func newWorker() *cobra.Command {
	return &cobra.Command{
		Use: "worker", Args: cobra.NoArgs, Hidden: true,
		Short: "A worker for QUEUES on DATABASE_URL that records in RECORD when its handlers end",
		Run: func(*cobra.Command, []string) {
			os.Args = os.Args[:1] // the other arguments are for this program
			funchost.Main(runjob.Name, buildWorker)
		},
	}
}

func buildWorker(ctx context.Context, env *funchost.Env) (funchost.Function, error) {
	var none funchost.Function
	record, err := os.OpenFile(os.Getenv("RECORD"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return none, fmt.Errorf("RECORD: %w", err)
	}
	registry := handlers.NewRegistry()
	ended := make(chan time.Time, 1<<14)
	for name, handler := range jobTypes(0, func() { ended <- time.Now() }) {
		if err := registry.Register(name, nil, handler); err != nil {
			return none, err
		}
	}
	worker, err := runjob.WireTypes(ctx, env, registry)
	if err != nil {
		return none, err
	}
	recorded := make(chan struct{})
	env.OnClose(func() { // after the drain: no handler runs any more
		close(ended)
		<-recorded
	})
	go func() {
		defer close(recorded)
		if err := keep(record, ended); err != nil {
			slog.Error("record not kept", "error", err)
		}
	}()
	return worker, nil
}

// keep writes instants as they arrive. Waiting instants go into one write.
func keep(record *os.File, ended <-chan time.Time) error {
	var stamps []byte
	for at := range ended {
		stamps = rig.AppendStamp(stamps[:0], at)
		for range len(ended) {
			stamps = rig.AppendStamp(stamps, <-ended)
		}
		if _, err := record.Write(stamps); err != nil {
			return errors.Join(err, record.Close())
		}
	}
	return record.Close()
}
