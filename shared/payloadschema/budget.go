package payloadschema

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A few lines of schema can take 2¹⁰⁰ steps (if each level refers twice to the next), and one pattern can take a minute
// for a long text. So a check by an untrusted schema counts its steps, and gives up after too many.
const (
	freeSteps    = 10_000
	stepsPerByte = 2     // of the payload: 512 KiB of small numbers take half of it
	maxPattern   = 500   // bytes
	maxProgram   = 2_000 // instructions of a compiled pattern
	patternCost  = 100   // bytes times instructions of a match that count as one step
	valueCost    = 10    // values of an enum that count as one step
)

// CompileForeign reads an untrusted schema, such as one that a worker advertised. Its Check returns ErrTooCostly
// instead of running for long, or waiting for long for other checks.
func CompileForeign(text json.RawMessage) (s *Schema, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("compile schema: %v", value)
		}
	}()
	return compile(text, newBudget())
}

type budget struct {
	turn  chan struct{} // has one value while a check runs
	left  int
	spent bool // a check runs, so its steps are counted
}

type overspent struct{}

// turnPatience is how long a check waits for those before it.
const turnPatience = 100 * time.Millisecond

func newBudget() *budget { return &budget{turn: make(chan struct{}, 1)} }

func (b *budget) run(ctx context.Context, bytes int, check func() error) (err error) {
	ctx, cancel := context.WithTimeout(ctx, turnPatience)
	defer cancel()
	select {
	case b.turn <- struct{}{}:
		defer func() { <-b.turn }()
	case <-ctx.Done():
		return ErrTooCostly
	}
	defer func() {
		switch value := recover(); value.(type) {
		case nil:
		case overspent:
			err = ErrTooCostly
		default:
			err = fmt.Errorf("check payload: %v", value)
		}
	}()
	b.left, b.spent = freeSteps+stepsPerByte*bytes, true
	defer func() { b.spent = false }()
	return check()
}

// spend leaves the library by a panic, because the library cannot be stopped in another way. Outside of run it does
// nothing.
func (b *budget) spend(steps int) {
	if b.left -= steps; b.left < 0 {
		panic(overspent{})
	}
}

// regexp compiles the schema's patterns with Go's engine, which needs time in proportion to the text. A payload has
// patterns too if its schema requires the format regex: their cost is spent before they are expanded.
func (b *budget) regexp(pattern string) (jsonschema.Regexp, error) {
	if len(pattern) > maxPattern {
		return nil, fmt.Errorf("a pattern may have at most %d bytes", maxPattern)
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, err
	}
	weight := patternWeight(parsed)
	if b.spent {
		b.spend(1 + weight)
	}
	if weight > 2*maxProgram {
		return nil, errTooLarge
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, err
	}
	if len(program.Inst) > maxProgram {
		return nil, errTooLarge
	}
	compiled, err := regexp.Compile(pattern)
	if err != nil {
		return nil, err
	}
	return countedRegexp{compiled, b, len(program.Inst)}, nil
}

var errTooLarge = errors.New("the pattern is too large")

// patternWeight returns roughly how large a pattern becomes when its repetitions are expanded.
func patternWeight(re *syntax.Regexp) int {
	n := 1
	if re.Op == syntax.OpLiteral {
		n = len(re.Rune)
	}
	for _, part := range re.Sub {
		n += patternWeight(part)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return n
}

type countedRegexp struct {
	*regexp.Regexp
	budget *budget
	size   int
}

// MatchString spends the cost of the match before it matches.
func (r countedRegexp) MatchString(s string) bool {
	r.budget.spend(1 + len(s)*r.size/patternCost)
	return r.Regexp.MatchString(s)
}

// weigh returns the cost of a schema itself: once, and for each member or element of a value. The cost includes the
// steps that its parts take before the library checks their own formats.
func weigh(s *jsonschema.Schema) (atOnce, each int) {
	inPlace := 1 + len(s.AllOf) + len(s.AnyOf) + len(s.OneOf) + len(s.DependentSchemas)
	values := 0
	for _, part := range parts(s) {
		if part.Enum != nil {
			values += len(part.Enum.Values)
		}
	}
	atOnce = inPlace + len(s.Required) + len(s.Dependencies)
	for _, names := range s.DependentRequired {
		atOnce += 1 + len(names)
	}
	each = inPlace + len(s.PatternProperties) + values/valueCost
	if s.UniqueItems {
		each += 20 // up to this many elements are compared with each other
	}
	return atOnce, each
}
