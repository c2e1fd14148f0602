package handlers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/payloadschema"
)

// MaxSchemas is how many bytes of schemas a worker advertises: its heartbeats carry them.
const MaxSchemas = 64 << 10

// Registry knows the handler of each job type. Who makes one closes it when no handler runs any more.
type Registry struct {
	types   map[string]entry
	others  Handler
	closing []func()
}

type entry struct {
	handler Handler
	schema  json.RawMessage
}

// NewRegistry returns an empty registry. Fill it before the worker starts.
func NewRegistry() *Registry { return &Registry{types: map[string]entry{}} }

// Register adds a job type. schema is the JSON Schema (draft 2020-12) of its payload; it may be nil. The
// gateway refuses a job whose payload it does not allow, and the worker fails one that came past the
// gateway, WORKER.INVALID_PAYLOAD, without calling the handler. It stands at GET /api/job-types for people and
// forms. A built-in type has the schema of jobspec, whatever is given. A type can be registered once.
func (r *Registry) Register(jobType string, schema json.RawMessage, h Handler) error {
	switch {
	case jobType == "" || h == nil:
		return errors.New("register job type: it needs a name and a handler")
	case r.Has(jobType):
		return fmt.Errorf("register job type %s: it is there already", jobType)
	}
	if isBuiltin(jobType) {
		if schema = jobspec.PayloadSchema(jobType); schema == nil { // or any payload would be accepted
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

// check calls a handler only with what its type's schema allows.
func check(jobType string, schema json.RawMessage, h Handler) (Handler, error) {
	if jobType == jobspec.Simulation { // its handler reads the payload as strictly, and faster
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

// OnClose has something let go of by Close, the last added first.
func (r *Registry) OnClose(closing func()) { r.closing = append(r.closing, closing) }

// Close lets go of what the handlers hold.
func (r *Registry) Close() {
	for _, closing := range slices.Backward(r.closing) {
		closing()
	}
	r.closing = nil
}

// RegisterOthers has a handler run every job type that is not registered.
func (r *Registry) RegisterOthers(h Handler) { r.others = h }

// Find returns the handler of a job type; nil when there is none.
func (r *Registry) Find(jobType string) Handler {
	if r.Has(jobType) {
		return r.types[jobType].handler
	}
	return r.others
}

// Has reports whether a job type is registered by its name.
func (r *Registry) Has(jobType string) bool { return r.types[jobType].handler != nil }

// JobTypes lists what is registered, by name. The gateway has the schemas of built-in types; of the others those
// are advertised, in this order, that have room within MaxSchemas.
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
