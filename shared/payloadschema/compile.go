// Package payloadschema checks a job's payload against the JSON Schema of its type, and describes in a sentence each
// value that does not fit. A schema that a worker advertised is not trusted: a check by it has a bounded cost.
//
// Why checks have a budget: docs/decisions/workers.md#a-workers-schema-is-evaluated-within-a-budget
package payloadschema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/jobweaver/jobweaver/shared/strictjson"
)

// Limits of a schema.
const (
	MaxBytes      = 64 << 10
	maxSubschemas = 2_000 // the time to compile grows with their square
)

// Schema is the JSON Schema (draft 2020-12) of a job type's payload, compiled.
type Schema struct {
	compiled *jsonschema.Schema
	document any
	budget   *budget // nil: it is trusted
}

const (
	schemaURL  = "schema:///payload" // no document can be read at this address
	dialectURL = "https://json-schema.org/draft/2020-12/schema"
)

// Compile reads a trusted schema, such as a program's own. The schema must not refer to anything outside itself; its
// patterns are Go's regular expressions; format is checked.
func Compile(text json.RawMessage) (*Schema, error) { return compile(text, nil) }

func compile(text json.RawMessage, limits *budget) (*Schema, error) {
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
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("read schema: it has %d bytes, more than %d", len(text), MaxBytes)
	}
	if p := strictjson.Scan(text, "schema"); p != nil {
		return nil, fmt.Errorf("read schema: %s", p.Message("the body"))
	}
	r := strictjson.NewReader(text, "schema")
	r.Raw()
	if p := r.Close(); p != nil {
		return nil, fmt.Errorf("read schema: %s", p.Message("the body"))
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

// countSubschemas counts the values that may be schemas.
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

// Load always fails: reading a schema must not call another host.
func (nothingElse) Load(string) (any, error) {
	return nil, errors.New("a payload's schema may refer to nothing outside itself")
}
