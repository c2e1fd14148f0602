package handlers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/jobweaver/jobweaver/shared/apierror"
)

// RegisterTyped adds a job type whose handler has a Go value as its payload and one as its output. The payload's schema
// is that of In.
func RegisterTyped[In, Out any](
	r *Registry, jobType string, run func(ctx context.Context, a *Attempt, in In) (Out, error),
) error {
	schema, err := SchemaOf[In]()
	if err != nil {
		return fmt.Errorf("register job type %s: %w", jobType, err)
	}
	return r.Register(jobType, schema, Typed(run))
}

// Typed returns a Handler that calls a function with Go values. A payload that does not decode as In, or has other
// fields, fails the attempt permanently.
func Typed[In, Out any](run func(ctx context.Context, a *Attempt, in In) (Out, error)) Handler {
	return func(ctx context.Context, a *Attempt) (Result, error) {
		var in In
		d := json.NewDecoder(bytes.NewReader(a.Payload))
		d.DisallowUnknownFields()
		if err := d.Decode(&in); err != nil {
			return Result{}, invalidPayload(fmt.Errorf("payload: %w", err))
		}
		out, err := run(ctx, a, in)
		if err != nil {
			return Result{}, err
		}
		output, err := json.Marshal(out)
		if err != nil {
			return Result{}, &Failure{Code: string(apierror.InvalidOutput), Message: "output: " + err.Error()}
		}
		return Result{Output: output}, nil
	}
}

// SchemaOf returns the JSON Schema of a Go type. It has the fields by their json tags, required unless omitempty or
// omitzero, described by their jsonschema tags, and allows no others.
func SchemaOf[T any]() (json.RawMessage, error) {
	inferred, err := jsonschema.For[T](nil)
	if err != nil {
		return nil, fmt.Errorf("infer schema: %w", err)
	}
	schema, err := json.Marshal(inferred)
	if err != nil {
		return nil, fmt.Errorf("write schema: %w", err)
	}
	return schema, nil
}
