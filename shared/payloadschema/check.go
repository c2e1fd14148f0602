package payloadschema

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/jobweaver/jobweaver/shared/strictjson"
)

// ErrTooCostly is the error of Check if a check by an untrusted schema would take too long. Then it is unknown whether
// the payload fits.
var ErrTooCostly = errors.New("checking the payload takes too long")

// Check returns all problems of a payload that Decode has read, as an *apierror.Error with paths that start at payload.
func (s *Schema) Check(payload json.RawMessage) error {
	return s.CheckWithin(context.Background(), payload)
}

// CheckWithin is Check that waits for other checks by the same schema only until ctx ends, and never for long.
func (s *Schema) CheckWithin(ctx context.Context, payload json.RawMessage) error {
	if p := strictjson.Scan(payload, "payload"); p != nil {
		return p.Err("job request")
	}
	p, err := s.Problems(ctx, payload)
	if err != nil {
		return err
	}
	return p.Err("job request")
}

// Problems is CheckWithin for a payload that strictjson.Scan has passed.
func (s *Schema) Problems(ctx context.Context, payload json.RawMessage) (strictjson.Problems, error) {
	value, err := decodeAny(payload)
	if err != nil {
		return strictjson.Problems{{Path: "payload", Message: "is not valid JSON"}}, nil
	}
	err = s.validate(ctx, value, len(payload))
	var refused *jsonschema.ValidationError
	switch {
	case err == nil:
		return nil, nil
	case errors.As(err, &refused):
		settle(refused, nil)
		return s.explain(refused), nil
	default:
		return nil, err
	}
}

func (s *Schema) validate(ctx context.Context, value any, bytes int) error {
	if s.budget == nil {
		return s.compiled.Validate(value)
	}
	return s.budget.run(ctx, bytes, func() error { return s.compiled.Validate(value) })
}
