package jobspec

import (
	"encoding/json"
	"errors"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// ErrTooCostly is what Check gives where a schema that is not trusted would take too long: no judgement.
var ErrTooCostly = errors.New("judging the payload takes too long")

// Check says all that is wrong with a payload that Decode has read, as an *apierror.Error with paths that
// start at payload.
func (s *Schema) Check(payload json.RawMessage) error {
	if p := scanProblems(payload, "payload"); p != nil {
		return p.err()
	}
	p, err := s.check(payload)
	if err != nil {
		return err
	}
	return p.err()
}

func (s *Schema) check(payload json.RawMessage) (problems, error) {
	value, err := decodeAny(payload)
	if err != nil {
		return problems{{Path: "payload", Message: "is not valid JSON"}}, nil
	}
	err = s.validate(value, len(payload))
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

func (s *Schema) validate(value any, bytes int) error {
	if s.budget == nil {
		return s.compiled.Validate(value)
	}
	return s.budget.run(bytes, func() error { return s.compiled.Validate(value) })
}
