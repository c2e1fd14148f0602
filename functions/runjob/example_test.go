package runjob_test

import (
	"cmp"
	"context"
	"log/slog"
	"os"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/jobweaver/jobweaver/functions/runjob"
	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

type image struct {
	Path  string `json:"path" jsonschema:"where the image is"`
	Width int    `json:"width,omitempty" jsonschema:"in pixels; 800 by default"`
}

type resized struct {
	Width int `json:"width"`
}

// resize is a handler: it ends with its context, writes to the attempt's log, and returns the job's output.
func resize(ctx context.Context, a *handlers.Attempt, in image) (resized, error) {
	if in.Path == "/" {
		return resized{}, &handlers.Failure{Code: "RESIZE.NO_IMAGE", Message: "a folder is not an image"} // never retried
	}
	a.Log(slog.LevelInfo, "resizing "+in.Path)
	for percent := range 100 {
		if ctx.Err() != nil {
			return resized{}, context.Cause(ctx)
		}
		a.Progress(percent, "")
	}
	return resized{Width: cmp.Or(in.Width, 800)}, nil
}

// A Go program that is a worker with one more job type. The schema of its payload is that of the Go type: the gateway
// refuses a job whose payload does not match, and accepts jobs of the type once JOB_TYPES lists it. A queue of their
// own keeps these jobs from workers that do not have the type.
func Example() {
	funchost.Main(runjob.Name, func(ctx context.Context, env *funchost.Env) (funchost.Function, error) {
		registry, err := handlers.Builtin(handlers.Config{})
		if err != nil {
			return funchost.Function{}, err
		}
		env.OnClose(registry.Close)
		if err := handlers.RegisterTyped(registry, "RESIZE", resize); err != nil {
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
