package runjob_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/jobweaver/jobweaver/functions/runjob"
	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

// resize is a handler: it ends with its context, logs for people, and returns what the job's client reads.
func resize(ctx context.Context, a *handlers.Attempt) (handlers.Result, error) {
	var image struct{ Path string }
	if err := json.Unmarshal(a.Payload, &image); err != nil {
		return handlers.Result{}, &handlers.Failure{Code: "RESIZE.BAD_PAYLOAD", Message: err.Error()}
	}
	a.Log(slog.LevelInfo, "resizing "+image.Path)
	for percent := range 100 {
		if ctx.Err() != nil {
			return handlers.Result{}, context.Cause(ctx)
		}
		a.Progress(percent, "")
	}
	return handlers.Result{Output: json.RawMessage(`{"width": 800}`)}, nil
}

// A program of its own with one more job type. The gateway takes jobs of it once it is listed in
// JOB_TYPES; a queue of its own keeps them away from workers that do not know it.
func Example() {
	funchost.Main(runjob.Name, func(ctx context.Context, env *funchost.Env) (funchost.Function, error) {
		registry, err := handlers.Builtin(handlers.Config{})
		if err != nil {
			return funchost.Function{}, err
		}
		env.OnClose(registry.Close)
		if err := registry.Register("RESIZE", json.RawMessage(`{"required": ["path"]}`), resize); err != nil {
			return funchost.Function{}, err
		}
		store, err := workerdb.Open(ctx, os.Getenv("DATABASE_URL"))
		if err != nil {
			return funchost.Function{}, err
		}
		env.OnClose(store.Close)
		cfg := runjob.Config{PoolSize: 4, QueueSize: 100, Queues: []string{"images"}, Kafka: env.Config.Kafka}
		worker, err := runjob.New(cfg, store, registry, prometheus.DefaultRegisterer)
		if err != nil {
			return funchost.Function{}, err
		}
		return worker.Host(), nil
	})
}
