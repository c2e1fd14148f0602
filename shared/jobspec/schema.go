package jobspec

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Limits of the JSON Schema of a job type's payload.
const (
	MaxSchemaBytes = 64 << 10
	maxSubschemas  = 2_000 // compiling takes time in the square of them
)

//go:embed schemas/*.json
var schemaFiles embed.FS

// PayloadSchema is the JSON Schema of a built-in job type's payload; nil for any other job type.
func PayloadSchema(jobType string) json.RawMessage {
	text, err := schemaFiles.ReadFile("schemas/" + strings.ToLower(jobType) + ".json")
	if err != nil || strings.ToUpper(jobType) != jobType {
		return nil
	}
	return text
}

// builtinSchema holds the compiled schema of each built-in job type but SIMULATION, whose own parser is much faster.
var builtinSchema = sync.OnceValue(func() map[string]*Schema {
	schemas := map[string]*Schema{}
	for _, jobType := range Builtin() {
		if jobType == Simulation {
			continue
		}
		schema, err := CompileSchema(PayloadSchema(jobType))
		if err != nil { // a test compiles them all
			panic(fmt.Sprintf("schema of %s: %v", jobType, err))
		}
		schemas[jobType] = schema
	}
	return schemas
})

// Schema is the JSON Schema (draft 2020-12) of a job type's payload, ready to judge payloads.
type Schema struct {
	compiled *jsonschema.Schema
	document any
	budget   *budget // nil: it is trusted
}

const (
	schemaURL  = "schema:///payload" // nothing can be read at it
	dialectURL = "https://json-schema.org/draft/2020-12/schema"
)

// CompileSchema reads a schema that is trusted to be of good will, such as a program's own. It refers to
// nothing outside itself; its patterns are Go's regular expressions; format is checked.
func CompileSchema(text json.RawMessage) (*Schema, error) { return compileSchema(text, nil) }

func compileSchema(text json.RawMessage, limits *budget) (*Schema, error) {
	document, err := readSchema(text)
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	c.UseLoader(nothingElse{})
	if limits != nil {
		c.UseRegexpEngine(limits.regexp)
	}
	if err := c.AddResource(schemaURL, document); err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	compiled, err := c.Compile(schemaURL)
	if err != nil {
		return nil, fmt.Errorf("compile schema: %w", err)
	}
	if err := standIn(compiled, limits); err != nil {
		return nil, fmt.Errorf("compile schema: %w", err)
	}
	return &Schema{compiled: compiled, document: document, budget: limits}, nil
}

func readSchema(text json.RawMessage) (any, error) {
	if len(text) > MaxSchemaBytes {
		return nil, fmt.Errorf("read schema: it has %d bytes, more than %d", len(text), MaxSchemaBytes)
	}
	if p := scanProblems(text, "schema"); p != nil {
		return nil, fmt.Errorf("read schema: %s", p.message())
	}
	r := newReader(text, "schema")
	r.raw()
	if p := r.close(); p != nil {
		return nil, fmt.Errorf("read schema: %s", p.message())
	}
	document, err := decodeAny(text)
	if err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	if n := countSubschemas(document); n > maxSubschemas {
		return nil, fmt.Errorf("read schema: it has %d objects, more than %d", n, maxSubschemas)
	}
	root, ok := document.(map[string]any)
	if _, isBool := document.(bool); !ok && !isBool {
		return nil, errors.New("read schema: it must be an object, true or false")
	}
	if dialect, ok := root["$schema"]; ok && dialect != dialectURL && dialect != dialectURL+"#" {
		return nil, fmt.Errorf("read schema: its $schema must be %s", dialectURL)
	}
	return document, nil
}

func decodeAny(text []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

// countSubschemas counts what may be a schema.
func countSubschemas(v any) int {
	n := 0
	switch v := v.(type) {
	case map[string]any:
		n++
		for _, member := range v {
			n += countSubschemas(member)
		}
	case []any:
		for _, element := range v {
			n += countSubschemas(element)
		}
	case bool:
		n++
	}
	return n
}

type nothingElse struct{}

// Load refuses: a schema must not have its reader call anybody.
func (nothingElse) Load(string) (any, error) {
	return nil, errors.New("a payload's schema may refer to nothing outside itself")
}
