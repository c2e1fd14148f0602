package jobtypes

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/jobweaver/jobweaver/shared/apidb/typestore"
	"github.com/jobweaver/jobweaver/shared/apidb/workerstore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/payloadschema"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// Payloads checks payloads of job types that are not built in, against the schemas that workers advertise.
type Payloads struct {
	advertised func(context.Context) (map[string]workerstore.AdvertisedType, error)
	learned    *typestore.Store

	mu       sync.Mutex
	compiled map[string]func() *payloadschema.Schema // by the text of the schema; nil for a bad one
	slow     rate.Sometimes
	asking   telemetry.Trouble
}

const (
	maxCompiled = 200 // when there are more, all are dropped
	// advertisedPatience is short: a database that does not answer this read will not accept the job either.
	advertisedPatience = time.Second
)

// NewPayloads makes a check of the job types that advertised returns and of those that were learned.
func NewPayloads(
	advertised func(context.Context) (map[string]workerstore.AdvertisedType, error), learned *typestore.Store,
) *Payloads {
	return &Payloads{
		advertised: advertised, learned: learned, compiled: map[string]func() *payloadschema.Schema{},
		slow:   rate.Sometimes{Interval: time.Second},
		asking: telemetry.Trouble{What: "read the schemas by which payloads are checked"},
	}
}

// Check returns why a payload is refused; nil: it is not.
type Check func(*jobspec.Request) error

// Check checks the payloads of one request. It reads the schemas at most once, when the first payload needs them.
func (p *Payloads) Check(ctx context.Context) Check {
	advertised := sync.OnceValue(func() map[string]workerstore.AdvertisedType {
		ctx, cancel := context.WithTimeout(ctx, advertisedPatience)
		defer cancel()
		types, err := p.advertised(ctx)
		p.asking.Note(ctx, err) // the worker checks, too
		return types
	})
	return func(req *jobspec.Request) error {
		if slices.Contains(jobspec.Builtin(), req.JobType) || req.Inputs != nil {
			return nil // the decoder has checked it, or the worker does when it has the outputs
		}
		schemas := advertised()[req.JobType].Schemas
		if len(schemas) == 0 {
			schemas = p.ofLearned(ctx, req)
		}
		return p.check(ctx, schemas, req)
	}
}

// ofLearned returns the schemas of a type that the workers of the request's owner, or of all owners, have described.
func (p *Payloads) ofLearned(ctx context.Context, req *jobspec.Request) (schemas []json.RawMessage) {
	ctx, cancel := context.WithTimeout(ctx, advertisedPatience)
	defer cancel()
	types, err := p.learned.Find(ctx, req.OwnerID, req.JobType, false)
	p.asking.Note(ctx, err)
	for i := range types {
		schemas = append(schemas, types[i].Schema)
	}
	return schemas
}

// check refuses a payload that does not match any of the schemas: while workers are updated, the old and the new schema
// both count. A schema that is invalid, or cannot be read in time, refuses nothing.
func (p *Payloads) check(ctx context.Context, schemas []json.RawMessage, req *jobspec.Request) error {
	var first error
	for _, text := range schemas {
		if text == nil {
			return nil
		}
		schema := p.compile(ctx, req.JobType, text)
		if schema == nil {
			return nil
		}
		err := schema.CheckWithin(ctx, req.Payload)
		var refused *apierror.Error
		if !errors.As(err, &refused) {
			if err != nil {
				p.slow.Do(func() {
					telemetry.Logger(ctx).WarnContext(ctx, "payload is not checked",
						"jobType", req.JobType, "bytes", len(req.Payload), "error", err)
				})
			}
			return nil
		}
		if first == nil {
			first = refused
		}
	}
	return first
}

// compile compiles each schema once, and logs once that a schema is invalid.
func (p *Payloads) compile(ctx context.Context, jobType string, text json.RawMessage) *payloadschema.Schema {
	p.mu.Lock()
	compiled, ok := p.compiled[string(text)]
	if !ok {
		if len(p.compiled) >= maxCompiled {
			clear(p.compiled)
		}
		compiled = sync.OnceValue(func() *payloadschema.Schema {
			schema, err := payloadschema.CompileForeign(text)
			if err != nil {
				telemetry.Logger(ctx).WarnContext(ctx, "a worker advertises a schema that cannot be used",
					"jobType", jobType, "error", err)
				return nil
			}
			return schema
		})
		p.compiled[string(text)] = compiled
	}
	p.mu.Unlock()
	return compiled()
}
