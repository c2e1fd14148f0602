package payloadschema_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/payloadschema"
	"github.com/jobweaver/jobweaver/shared/strictjson"
	"github.com/jobweaver/jobweaver/shared/strictjson/jsontest"
)

const shipment = `{
	"type": "object", "required": ["to", "weight"], "additionalProperties": false,
	"properties": {
		"to": {"type": "array", "items": {"type": "string", "format": "email"}, "minItems": 1, "maxItems": 3, "uniqueItems": true},
		"weight": {"type": "number", "exclusiveMinimum": 0, "maximum": 31.5},
		"count": {"type": "integer", "minimum": 1, "multipleOf": 2},
		"speed": {"enum": ["slow", "fast"]},
		"label": {"type": "string", "minLength": 2, "maxLength": 5, "pattern": "^[a-z]+$"},
		"pickup": {"type": "string", "format": "date-time"},
		"track": {"type": "string", "format": "uri"},
		"note": {"type": ["string", "null"]},
		"odd name": {"type": "boolean"},
		"nested": {"type": "object", "properties": {"list": {"items": {"properties": {"x": {"const": 7}}}}}}
	}}`

func TestASchemaNamesWhatIsWrongAndWhere(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ schema, payload, want string }{
		{shipment, `{"to": ["a@b.org"], "weight": 1, "count": 2.0, "note": null}`, ""},
		{shipment, `{}`, "payload.to is required; payload.weight is required"},
		{shipment, `[]`, "payload must be an object"},
		{shipment, `{"to": [], "weight": 0}`, "payload.to must not be empty; payload.weight must be more than 0"},
		{shipment, `{"to": ["a@b.org", "x"], "weight": 32}`,
			"payload.to[1] must be an e-mail address, as ada@example.org; payload.weight must be at most 31.5"},
		{shipment, `{"to": ["a@b.org", "c@b.org", "a@b.org"], "weight": 1}`, "payload.to[2] is there twice"},
		{shipment, `{"to": ["a@b.org", 2, "a@b.org", "x"], "weight": 1}`, "payload.to must have at most 3 entries, not 4"},
		{`{"items": {"items": {"type": "null"}}}`, `[[null], [null, 1], 7]`, "payload[1][1] must be null"},
		{`{"prefixItems": [{"type": "null"}], "items": {"type": "string"}}`, `[1, "a"]`, "payload[0] must be null"},
		{`{"items": {"type": "string"}, "unevaluatedItems": false}`, `["a"]`, ""},
		{`{"not": {"items": {"type": "string"}}}`, `["a"]`, "payload is not allowed as it is"},
		{`{"not": {"items": {"type": "string"}}}`, `[1]`, ""},
		{shipment, `{"to": ["a@b.org"], "weight": "1", "size": 1, "": 2}`,
			`payload.weight must be a number; payload.size is not a known field; payload[""] is not a known field`},
		{shipment, `{"to": ["a@b.org"], "weight": 1, "count": 3, "speed": "warp", "label": "A"}`,
			"payload.count must be a multiple of 2; payload.label must have at least 2 characters; payload.label must match ^[a-z]+$; payload.speed must be slow or fast"},
		{shipment, `{"to": ["a@b.org"], "weight": 1, "count": 0.5, "note": 1, "label": "abcdef", "odd name": 1}`,
			`payload.count must be an integer; payload.label must have at most 5 characters; payload.note must be a string or null; payload["odd name"] must be true or false`},
		{shipment, `{"to": ["a@b.org"], "weight": 1, "pickup": "tomorrow", "track": "x"}`,
			"payload.pickup must be an RFC 3339 instant, as 2026-11-22T08:00:00Z; payload.track must be an absolute URI, as https://example.org/x"},
		{shipment, `{"to": ["a@b.org"], "weight": 1, "nested": {"list": [{"x": 7}, {"x": 8}]}}`, "payload.nested.list[1].x must be 7"},
		{`{"anyOf": [{"required": ["text"]}, {"required": ["html"]}]}`, `{}`, "payload must have text or html"},
		{`{"oneOf": [{"required": ["rows"]}, {"required": ["query"]}]}`, `{"rows": 1, "query": 1}`,
			"payload must not have both rows and query"},
		{`{"oneOf": [{"type": "integer"}, {"minimum": 2}]}`, `3`, "payload fits more than one of forms that exclude each other"},
		{`{"items": {"anyOf": [{"type": "array"}, {"type": "object"}]}}`, `[1]`, "payload[0] must be an array or an object"},
		{`{"dependentRequired": {"a": ["b"]}}`, `{"a": 1}`, "payload.b is required with a"},
		{`{"propertyNames": {"maxLength": 2}}`, `{"abc": 1}`, "payload.abc is not an allowed name"},
		{`{"not": {"type": "null"}}`, `null`, "payload is not allowed as it is"},
		{`{"properties": {"x": false}}`, `{"x": 1}`, "payload.x is not allowed"},
		{`{"contains": {"type": "null"}}`, `[1]`, "payload has too few entries of a kind that it needs"},
		{`{"$ref": "#/$defs/a", "$defs": {"a": {"type": "string", "const": "x y"}}}`, `"z"`, `payload must be "x y"`},
		{`{"maximum": 9007199254740992}`, `9007199254740993`, "payload must be at most 9007199254740992"},
		{`{"multipleOf": 0.01}`, `19.99`, ""},
		{`{"required": ["a/b"]}`, `{}`, `payload["a/b"] is required`},
		{`true`, `1`, ""}, {`{}`, `1`, ""}, {`false`, `1`, "payload is not allowed"},
	} {
		for name, compile := range compilers {
			schema, err := compile(json.RawMessage(c.schema))
			if err != nil {
				t.Errorf("%s: %s: %v", name, c.schema, err)
				continue
			}
			got := jsontest.Problems(t, schema.Check(json.RawMessage(c.payload)))
			if want := strings.Split(c.want, "; "); got != strings.Join(slices.Sorted(slices.Values(want)), "; ") {
				t.Errorf("%s: of %s\ngot  %s\nwant %s", name, c.payload, got, c.want)
			}
		}
	}
}

var compilers = map[string]func(json.RawMessage) (*payloadschema.Schema, error){
	"own": payloadschema.Compile, "foreign": payloadschema.CompileForeign,
}

func TestBadSchemaIsRefused(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]string{
		``:                                       "must not be empty",
		`{`:                                      "not valid JSON",
		`{} {}`:                                  "more JSON",
		`{"a": 1, "a": 2}`:                       "duplicate",
		`[]`:                                     "must be an object",
		`null`:                                   "must be an object",
		`{"type": "strin"}`:                      "metaschema",
		`{"required": "x"}`:                      "metaschema",
		`{"pattern": "("}`:                       "",
		`{"pattern": "(?=a)"}`:                   "",
		`{"minimum": 1e400}`:                     "double",
		`{"$ref": "https://example.org/a.json"}`: "nothing outside itself",
		`{"$ref": "file:///etc/passwd"}`:         "nothing outside itself",
		`{"$ref": "other.json"}`:                 "",
		`{"$id": "http://127.0.0.1:1/x", "$ref": "y"}`:                        "nothing outside itself",
		`{"$ref": "#/nowhere"}`:                                               "",
		`{"$schema": "http://json-schema.org/draft-07/schema#"}`:              "$schema must be",
		`{"$schema": "http://127.0.0.1:1/"}`:                                  "$schema must be",
		`{"x": "` + strings.Repeat("x", payloadschema.MaxBytes) + `"}`:        "bytes",
		strings.Repeat(`{"not":`, 101) + `{}` + strings.Repeat(`}`, 101):      "nested",
		`{"oneOf": [` + strings.Repeat("true,", 3_000) + `true]}`:             "more than 2000",
		`{"properties": {"a": {"$schema": "https://x/y", "$id": "/a"}}}`:      "",
		`{"properties": {"a": {"$id": "schema:///payload", "type": "null"}}}`: "",
	} {
		for name, compile := range compilers {
			if _, err := compile(json.RawMessage(schema)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %.100s: got %v, want %q in it", name, schema, err, want)
			}
		}
	}
}

// Each of these schemas would keep the library busy for hours, or take very much memory.
func TestForeignSchemaGivesUpSoon(t *testing.T) {
	t.Parallel()
	double := `{"$defs": {`
	for i := range 60 {
		double += fmt.Sprintf(`"a%d": {"allOf": [{"$ref": "#/$defs/a%d"}, {"$ref": "#/$defs/a%d"}]},`, i, i+1, i+1)
	}
	double += `"a60": {"type": "array"}}, `
	ones := `[` + strings.Repeat("1,", 200_000) + `1]`
	deep := strings.Repeat("[", 95) + strings.Repeat("]", 95)
	for name, c := range map[string]struct {
		schema, payload string
		refused         bool // at compilation
	}{
		"each level twice":       {schema: double + `"$ref": "#/$defs/a0"}`, payload: `[]`},
		"each level twice, bool": {schema: double + `"not": {"anyOf": [{"$ref": "#/$defs/a0"}, {"$ref": "#/$defs/a0"}]}}`, payload: `[]`},
		"each depth twice": {payload: deep,
			schema: `{"$defs": {"a": {"allOf": [{"items": {"$ref": "#/$defs/a"}}, {"items": {"$ref": "#/$defs/a"}}]}}, "$ref": "#/$defs/a"}`},
		"a long pattern":           {schema: `{"pattern": "` + strings.Repeat("a", 501) + `"}`, refused: true},
		"a large pattern":          {schema: `{"pattern": "(a{50}){20}(b{50}){20}(c{50}){20}"}`, refused: true},
		"a slow pattern":           {schema: `{"pattern": "(.*a){0,80}$"}`, payload: `"` + strings.Repeat("a", 500_000) + `"`},
		"many numbers to compare":  {schema: `{"items": {"enum": [` + strings.Repeat("1.5,", 15_000) + `2]}}`, payload: ones},
		"many forms of many":       {schema: `{"items": {"anyOf": [` + strings.Repeat(`{"type": "null"},`, 1_000) + `true]}}`, payload: ones},
		"all different":            {schema: `{"items": {"type": "string", "uniqueItems": true}, "uniqueItems": true}`, payload: ones},
		"dynamic references":       {schema: `{"$dynamicRef": "#a", "$dynamicAnchor": "a"}`, refused: true},
		"the schema of schemas":    {schema: `{"$ref": "https://json-schema.org/draft/2020-12/schema"}`, refused: true},
		"a reference to itself":    {schema: `{"$ref": "#"}`, payload: `1`},
		"a loop of two references": {schema: `{"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#"}}}`, payload: `1`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			schema, err := payloadschema.CompileForeign(json.RawMessage(c.schema))
			if (err != nil) != c.refused {
				t.Fatalf("compiled: %v", err)
			}
			if c.refused {
				return
			}
			began := time.Now()
			err = schema.Check(json.RawMessage(c.payload))
			if took := time.Since(began); took > 10*time.Second && !testing.Short() { // short: under the race detector
				t.Errorf("%v after %v", err, took)
			}
			t.Log(time.Since(began), strings.SplitN(fmt.Sprint(err), "\n", 2)[0])
		})
	}
}

// A client's payload is as large as a job may be, and wrong everywhere.
func TestALargePayloadIsCheckedSoon(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("how soon is no question under the race detector, which makes it ten times slower")
	}
	const size = jobspec.MaxJobBytes - 100
	fill := func(open, one, end string) string { return open + strings.Repeat(one, size/len(one)) + end }
	names := `{`
	for i := range 40_000 {
		names += fmt.Sprintf(`"n%d":1,`, i)
	}
	for name, c := range map[string]struct{ schema, payload string }{
		"numbers for numbers":   {`{"items": {"type": "number", "minimum": 0}}`, fill(`[`, `1,`, `1]`)},
		"numbers for text":      {`{"items": {"type": "string", "format": "email"}}`, fill(`[`, `1,`, `1]`)},
		"none of many forms":    {`{"items": {"oneOf": [{"type": "array"}, {"type": "object"}]}}`, fill(`[`, `1,`, `1]`)},
		"unknown names":         {`{"additionalProperties": false}`, names + `"x": 1}`},
		"deep and broad":        {`{"$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}, "$ref": "#/$defs/a"}`, fill(`[`, `[[[[[]]]]],`, `1]`)},
		"all there twice":       {`{"uniqueItems": true}`, fill(`[`, `1,`, `1]`)},
		"a simulation":          {string(jobspec.PayloadSchema("SIMULATION")), fill(`{"steps":[`, `{},`, `1]}`)},
		"one long text":         {`{"type": "string", "pattern": "^(a|b)*c$", "maxLength": 10}`, fill(`"`, `ab`, `"`)},
		"one long mail address": {`{"type": "string", "format": "email"}`, fill(`"`, `a@`, `"`)},
	} {
		schema, err := payloadschema.Compile(json.RawMessage(c.schema))
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		err = schema.Check(json.RawMessage(c.payload))
		took := time.Since(began)
		if took > 5*time.Second { // it is a tenth of a second on a quiet machine
			t.Errorf("%s took %v", name, took)
		}
		t.Log(name, took, len(jsontest.Problems(t, err)))
		if e := (*apierror.Error)(nil); errors.As(err, &e) && len(e.Details) > strictjson.MaxProblems {
			t.Errorf("%s: %d details", name, len(e.Details))
		}
	}
}

func FuzzSchema(f *testing.F) {
	f.Add([]byte(shipment), []byte(`{"to": ["a@b.org", "x"], "weight": 32, "nested": {"list": [{"x": 8}]}}`))
	f.Add([]byte(jobspec.PayloadSchema(jobspec.Simulation)), []byte(`{"steps": [{"type": "LOG"}, {"type": "WALK"}]}`))
	f.Add([]byte(`{"$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}, "allOf": [{"$ref": "#/$defs/a"}, {"not": {"$ref": "#"}}]}`), []byte(`[[[]]]`))
	f.Add([]byte(`{"oneOf": [{"const": "a"}, {"enum": [1.0, {}]}, {"contains": {"minimum": 1e300}}], "unevaluatedItems": false}`), []byte(`[1]`))
	f.Add([]byte(`{"patternProperties": {"^a+$": {"uniqueItems": true}}, "propertyNames": {"format": "regex"}}`), []byte(`{"a": [1, 1]}`))
	f.Fuzz(func(t *testing.T, text, payload []byte) {
		foreign, err := payloadschema.CompileForeign(text)
		if err != nil {
			return
		}
		if _, err := jobspec.Decode([]byte(`{"jobType": "OWN", "payload": ` + string(payload) + `}`)); err != nil {
			return
		}
		err = foreign.Check(payload)
		if errors.Is(err, payloadschema.ErrTooCostly) {
			return
		}
		if err != nil {
			jsontest.CheckError(t, err)
		}
		own, ownErr := payloadschema.Compile(text)
		if ownErr != nil {
			t.Fatalf("only the foreign one compiles: %v", ownErr)
		}
		if again := own.Check(payload); fmt.Sprint(again) != fmt.Sprint(err) {
			t.Fatalf("foreign: %v\nown: %v", err, again)
		}
		if plain := libraryAlone(t, text, payload); (plain == nil) != (err == nil) {
			t.Fatalf("the library alone: %v\nwith us before it: %v", plain, err)
		}
	})
}

func libraryAlone(t *testing.T, text, payload []byte) error {
	read := func(text []byte) any {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("schema:///plain", read(text)); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("schema:///plain")
	if err != nil {
		t.Fatal(err)
	}
	return schema.Validate(read(payload))
}
