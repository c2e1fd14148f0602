package jobspec_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobspec"
)

// A built-in type without a schema would accept any payload.
func TestEveryBuiltinTypeHasASchema(t *testing.T) {
	t.Parallel()
	for _, jobType := range jobspec.Builtin() {
		if jobspec.PayloadSchema(jobType) == nil {
			t.Errorf("schemas/%s.json is missing: any payload of %s would be accepted", strings.ToLower(jobType), jobType)
		}
	}
}

func TestSchemasOfBuiltinTypesCompile(t *testing.T) {
	t.Parallel()
	files, err := os.ReadDir("schemas")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		jobType := strings.ToUpper(strings.TrimSuffix(file.Name(), ".json"))
		if !slices.Contains(jobspec.Builtin(), jobType) {
			t.Errorf("schemas/%s is of no built-in job type", file.Name())
			continue
		}
		text := jobspec.PayloadSchema(jobType)
		schema, err := jobspec.CompileSchema(text)
		if err != nil {
			t.Errorf("%s: %v", jobType, err)
			continue
		}
		var about struct {
			Title, Description   string
			Examples             []json.RawMessage
			AdditionalProperties *bool
		}
		if err := json.Unmarshal(text, &about); err != nil || about.Title == "" || about.Description == "" {
			t.Errorf("%s has no title or description: %v", jobType, err)
		}
		if about.AdditionalProperties == nil || *about.AdditionalProperties {
			t.Errorf("%s lets unknown fields pass", jobType)
		}
		for i, example := range about.Examples {
			if err := schema.Check(example); err != nil {
				t.Errorf("example %d of %s: %v", i, jobType, err)
			}
		}
	}
	for _, other := range []string{"", "simulation", "OWN", "../schemas/SIMULATION", "*"} {
		if jobspec.PayloadSchema(other) != nil {
			t.Errorf("%q has a schema", other)
		}
	}
}

const parcel = `{
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

func TestSchemaSaysWhatIsWrongWhere(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ schema, payload, want string }{
		{parcel, `{"to": ["a@b.org"], "weight": 1, "count": 2.0, "note": null}`, ""},
		{parcel, `{}`, "payload.to is required; payload.weight is required"},
		{parcel, `[]`, "payload must be an object"},
		{parcel, `{"to": [], "weight": 0}`, "payload.to must not be empty; payload.weight must be more than 0"},
		{parcel, `{"to": ["a@b.org", "x"], "weight": 32}`,
			"payload.to[1] must be an e-mail address, as ada@example.org; payload.weight must be at most 31.5"},
		{parcel, `{"to": ["a@b.org", "c@b.org", "a@b.org"], "weight": 1}`, "payload.to[2] is there twice"},
		{parcel, `{"to": ["a@b.org", 2, "a@b.org", "x"], "weight": 1}`, "payload.to must have at most 3 entries, not 4"},
		{`{"items": {"items": {"type": "null"}}}`, `[[null], [null, 1], 7]`, "payload[1][1] must be null"},
		{`{"prefixItems": [{"type": "null"}], "items": {"type": "string"}}`, `[1, "a"]`, "payload[0] must be null"},
		{`{"items": {"type": "string"}, "unevaluatedItems": false}`, `["a"]`, ""},
		{`{"not": {"items": {"type": "string"}}}`, `["a"]`, "payload is not allowed as it is"},
		{`{"not": {"items": {"type": "string"}}}`, `[1]`, ""},
		{parcel, `{"to": ["a@b.org"], "weight": "1", "size": 1, "": 2}`,
			`payload.weight must be a number; payload.size is not a known field; payload[""] is not a known field`},
		{parcel, `{"to": ["a@b.org"], "weight": 1, "count": 3, "speed": "warp", "label": "A"}`,
			"payload.count must be a multiple of 2; payload.label must have at least 2 characters; payload.label must match ^[a-z]+$; payload.speed must be slow or fast"},
		{parcel, `{"to": ["a@b.org"], "weight": 1, "count": 0.5, "note": 1, "label": "abcdef", "odd name": 1}`,
			`payload.count must be an integer; payload.label must have at most 5 characters; payload.note must be a string or null; payload["odd name"] must be true or false`},
		{parcel, `{"to": ["a@b.org"], "weight": 1, "pickup": "tomorrow", "track": "x"}`,
			"payload.pickup must be an RFC 3339 instant, as 2026-11-22T08:00:00Z; payload.track must be an absolute URI, as https://example.org/x"},
		{parcel, `{"to": ["a@b.org"], "weight": 1, "nested": {"list": [{"x": 7}, {"x": 8}]}}`, "payload.nested.list[1].x must be 7"},
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
			got := said(t, schema.Check(json.RawMessage(c.payload)))
			if sorted(got) != sorted(c.want) {
				t.Errorf("%s: of %s\ngot  %s\nwant %s", name, c.payload, got, c.want)
			}
		}
	}
}

var compilers = map[string]func(json.RawMessage) (*jobspec.Schema, error){
	"own": jobspec.CompileSchema, "foreign": jobspec.CompileForeignSchema,
}

// A step's form is told by its type: what is wrong is said about that form alone.
func TestSchemaOfManyFormsSpeaksOfTheOneMeant(t *testing.T) {
	t.Parallel()
	schema, err := jobspec.CompileSchema(jobspec.PayloadSchema(jobspec.Simulation))
	if err != nil {
		t.Fatal(err)
	}
	for payload, want := range map[string]string{
		`{"type": "SLEEP", "durationMs": "1"}`:         "payload.steps[0].durationMs must be an integer",
		`{"type": "SLEEP"}`:                            "payload.steps[0].durationMs is required",
		`{"type": "LOG", "message": "x", "url": "x"}`:  "payload.steps[0].url is not a known field",
		`{"type": "HTTP_CALL"}`:                        "payload.steps[0] must have url or latencyMs",
		`{"type": "HTTP_CALL", "url": "ftp://x"}`:      "payload.steps[0].url must match ^[hH][tT][tT][pP][sS]?://[^/?#@:][^/?#@]*([/?#]|$) (http or https, absolute, without credentials)",
		`{"type": "WALK"}`:                             "payload.steps[0].type must be SLEEP, LOG, COMPUTE, HTTP_CALL or FAIL",
		`{"type": "COMPUTE", "iterations": 100000000}`: "",
	} {
		got := said(t, schema.Check(json.RawMessage(`{"steps": [`+payload+`]}`)))
		if got != want {
			t.Errorf("of %s\ngot  %s\nwant %s", payload, got, want)
		}
	}
}

// Who hands in a job need not read patterns, and learns at once of a header that is not his to set.
func TestBuiltinSchemasSpeakToPeople(t *testing.T) {
	t.Parallel()
	const mail = `"subject": "x", "text": "x"`
	for _, c := range []struct{ jobType, payload, want string }{
		{jobspec.Email, `{"to": ["ada"], ` + mail + `}`,
			"payload.to[0] must be an address, as ada@example.org"},
		{jobspec.Email, `{"to": ["a@b.c"], "subject": "x\ny", "text": "x"}`,
			"payload.subject must have no line break and no other control character"},
		{jobspec.Email, `{"to": ["a@b.c"], ` + mail + `, "attachments": [{"name": "a/b", "content": "-"}]}`,
			"payload.attachments[0].content must be base64; payload.attachments[0].name must be a name without a folder"},
		{jobspec.Email, `{"to": ["a@b.c"], ` + mail + `, "headers": {"sUbject": "x", "DKIM-x": "x", "X-Y": "x", "From-A": "x"}}`,
			`payload.headers.DKIM-x is not an allowed name; payload.headers.sUbject is not an allowed name`},
		{jobspec.External, `{"url": "localhost:9001/orders"}`, "payload.url must begin with http:// or https://"},
		{jobspec.FunctionCall, `{"url": "http://a", "headers": {"A": "\u00fc"}}`,
			"payload.headers.A must be visible ASCII and blanks"},
	} {
		schema, err := jobspec.CompileSchema(jobspec.PayloadSchema(c.jobType))
		if err != nil {
			t.Fatal(err)
		}
		if got := said(t, schema.Check(json.RawMessage(c.payload))); sorted(got) != sorted(c.want) {
			t.Errorf("of %s\ngot  %s\nwant %s", c.payload, got, c.want)
		}
	}
}

func said(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	var e *apierror.Error
	if !errors.As(err, &e) || e.Code != apierror.InvalidJobRequest {
		t.Fatalf("got %v", err)
	}
	var parts []string
	for _, d := range e.Details {
		parts = append(parts, d.Path+" "+d.Message)
	}
	return strings.Join(parts, "; ")
}

func sorted(s string) string {
	parts := strings.Split(s, "; ")
	slices.Sort(parts)
	return strings.Join(parts, "; ")
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
		`{"x": "` + strings.Repeat("x", jobspec.MaxSchemaBytes) + `"}`:        "bytes",
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

// Each of these would keep the library busy for hours, or take a great deal of memory.
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
			schema, err := jobspec.CompileForeignSchema(json.RawMessage(c.schema))
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

// A client's payload is as large as a job may be, and wrong all over.
func TestLargePayloadIsJudgedSoon(t *testing.T) {
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
		schema, err := jobspec.CompileSchema(json.RawMessage(c.schema))
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		err = schema.Check(json.RawMessage(c.payload))
		took := time.Since(began)
		if took > 5*time.Second { // it is a tenth of a second on a quiet machine
			t.Errorf("%s took %v", name, took)
		}
		t.Log(name, took, len(said(t, err)))
		if e := (*apierror.Error)(nil); errors.As(err, &e) && len(e.Details) > jobspec.MaxDetails {
			t.Errorf("%s: %d details", name, len(e.Details))
		}
	}
}
