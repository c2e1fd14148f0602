package handlers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jobweaver/jobweaver/shared/client/jobrun"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/payloadschema"
)

// MaxSchemas is the most bytes of schemas that a worker advertises, in its heartbeats.
const MaxSchemas = 64 << 10

// Registry has the handler of each job type. Close it when no handler runs any more.
type Registry struct {
	types   map[string]entry
	others  Handler
	closing []func()

	middleware []jobrun.Middleware
}

type entry struct {
	handler Handler
	schema  json.RawMessage
}

// NewRegistry returns an empty registry. Fill it before the worker starts.
func NewRegistry() *Registry { return &Registry{types: map[string]entry{}} }

// Register adds a job type. schema is the JSON Schema (draft 2020-12) of its payload; it may be nil. The gateway
// refuses a job whose payload does not match it. If such a payload reaches the worker, the worker fails the attempt
// with WORKER.INVALID_PAYLOAD without calling the handler. GET /api/job-types returns the schema for people and forms.
// A built-in type has the schema of jobspec, whatever schema is. A type can be registered once.
func (r *Registry) Register(jobType string, schema json.RawMessage, h Handler) error {
	switch {
	case jobType == "" || h == nil:
		return errors.New("register job type: it needs a name and a handler")
	case r.Has(jobType):
		return fmt.Errorf("register job type %s: it is registered already", jobType)
	}
	if isBuiltin(jobType) {
		if schema = jobspec.PayloadSchema(jobType); schema == nil { // without it any payload would be accepted
			return fmt.Errorf("register job type %s: it has no file in shared/jobspec/schemas", jobType)
		}
	}
	if schema == nil {
		r.types[jobType] = entry{handler: h}
		return nil
	}
	checked, err := check(jobType, schema, h)
	if err != nil {
		return fmt.Errorf("register job type %s: %w", jobType, err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, schema); err != nil {
		return fmt.Errorf("register job type %s: %w", jobType, err)
	}
	r.types[jobType] = entry{checked, compact.Bytes()}
	return nil
}

// check returns a handler that is called only with payloads that match the type's schema.
func check(jobType string, schema json.RawMessage, h Handler) (Handler, error) {
	if jobType == jobspec.Simulation { // its handler checks the payload as strictly, and faster
		return h, nil
	}
	compiled, err := payloadschema.Compile(schema)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, a *Attempt) (Result, error) {
		if err := compiled.Check(a.Payload); err != nil {
			return Result{}, invalidPayload(err)
		}
		return h(ctx, a)
	}, nil
}

func isBuiltin(jobType string) bool { return slices.Contains(jobspec.Builtin(), jobType) }

// OnClose registers a function for Close to call, the last one first.
func (r *Registry) OnClose(closing func()) { r.closing = append(r.closing, closing) }

// Close releases what the handlers hold.
func (r *Registry) Close() {
	for _, closing := range slices.Backward(r.closing) {
		closing()
	}
	r.closing = nil
}

// RegisterOthers sets the handler for all job types that are not registered.
func (r *Registry) RegisterOthers(h Handler) { r.others = h }

// RunsAny reports whether the registry has a handler for each job type there may be.
func (r *Registry) RunsAny() bool { return r.others != nil }

// Use lets middleware run around all handlers; the first is the outermost. Call it before the worker starts.
func (r *Registry) Use(all ...jobrun.Middleware) { r.middleware = append(r.middleware, all...) }

// Find returns the handler of a job type, within the middleware; nil if there is none.
func (r *Registry) Find(jobType string) Handler {
	handler := r.others
	if r.Has(jobType) {
		handler = r.types[jobType].handler
	}
	if handler == nil || len(r.middleware) == 0 {
		return handler
	}
	return func(ctx context.Context, a *Attempt) (result Result, err error) {
		info := jobrun.Info{
			JobID: a.JobID.String(), Attempt: a.Number, JobType: jobType, Queue: a.Queue, OwnerID: a.OwnerID,
			TraceID: a.TraceID.String(),
		}
		err = jobrun.Run(ctx, r.middleware, info, func(ctx context.Context) (err error) {
			result, err = handler(ctx, a)
			return err
		})
		return result, err
	}
}

// Has reports whether a job type is registered by its name.
func (r *Registry) Has(jobType string) bool { return r.types[jobType].handler != nil }

// JobTypes returns the registered types, sorted by name. The gateway has the schemas of built-in types. The schemas of
// the other types are advertised, in this order, as long as they fit into MaxSchemas.
func (r *Registry) JobTypes() []jobevent.JobType {
	types := []jobevent.JobType{}
	room := MaxSchemas
	for _, name := range slices.Sorted(maps.Keys(r.types)) {
		advertised := jobevent.JobType{Name: name}
		if schema := r.types[name].schema; !isBuiltin(name) && len(schema) <= room {
			advertised.Schema, room = schema, room-len(schema)
		}
		types = append(types, advertised)
	}
	return types
}
