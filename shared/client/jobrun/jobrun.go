// Package jobrun has the middleware of Go workers: code that runs around every handler, in runjob and in pull workers.
package jobrun

import "context"

// Info describes the attempt that a handler runs.
type Info struct {
	JobID   string `json:"jobId"`
	Attempt int    `json:"attempt"` // from 1
	JobType string `json:"jobType"`
	Queue   string `json:"queue"`
	OwnerID string `json:"ownerId"` // empty: the job has no owner
	TraceID string `json:"traceId"`
}

// Middleware runs around a handler. It calls next, at most once, with the context for the handler, and returns the
// error with which the attempt ends: next's, or another. A panic of the handler passes through it.
type Middleware func(ctx context.Context, a Info, next func(context.Context) error) error

// Run runs a handler within middleware, of which the first is the outermost.
func Run(ctx context.Context, all []Middleware, a Info, handler func(context.Context) error) error {
	if len(all) == 0 {
		return handler(ctx)
	}
	return all[0](ctx, a, func(ctx context.Context) error { return Run(ctx, all[1:], a, handler) })
}
