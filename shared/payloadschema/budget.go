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

// A few lines of schema can take 2¹⁰⁰ steps (each level refers twice to the next), and one pattern can take a minute
// over a long text. So a check by a schema that is not trusted counts its steps, and gives up.
const (
	freeSteps    = 10_000
	stepsPerByte = 2     // of the payload: 512 KiB of small numbers take half of it
	maxPattern   = 500   // bytes
	maxProgram   = 2_000 // instructions of a compiled pattern
	patternCost  = 100   // bytes times instructions of a match that count as one step
	valueCost    = 10    // values of an enum that count as one step
)

// CompileForeign reads a schema that is not trusted, such as one that a worker advertised. Its Check returns
// ErrTooCostly rather than run, or wait for other checks, for long.
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
	spent bool // what is done is paid for: a check runs
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

// spend leaves the library by a panic, since the library has no other way to stop it. Outside run nothing is spent.
func (b *budget) spend(steps int) {
	if b.left -= steps; b.left < 0 {
		panic(overspent{})
	}
}

// regexp is the engine for the schema's patterns: those of Go need time in proportion to the text. A payload has
// patterns too, where its schema asks for the format regex: their cost is spent before they are written out.
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

// patternWeight is about how large a pattern becomes when its repetitions are written out.
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

// MatchString pays for the match before it is made.
func (r countedRegexp) MatchString(s string) bool {
	r.budget.spend(1 + len(s)*r.size/patternCost)
	return r.Regexp.MatchString(s)
}

// weigh returns what a schema itself costs, at once and for each member or element of a value. That includes the steps
// of its parts before these reach their own format.
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
		each += 20 // up to so many are compared each with each
	}
	return atOnce, each
}
