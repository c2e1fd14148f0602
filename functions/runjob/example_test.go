package runjob_test

import (
	"cmp"
	"context"
	"log/slog"

	"github.com/jobweaver/jobweaver/functions/runjob"
	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/shared/funchost"
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
// own keeps these jobs from workers that do not have the type: QUEUES=images.
func Example() {
	funchost.Main(runjob.Name, func(ctx context.Context, env *funchost.Env) (funchost.Function, error) {
		types, err := runjob.Builtin(env)
		if err != nil {
			return funchost.Function{}, err
		}
		if err := handlers.RegisterTyped(types, "RESIZE", resize); err != nil {
			return funchost.Function{}, err
		}
		return runjob.WireTypes(ctx, env, types)
	})
}
