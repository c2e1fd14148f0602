package jobspec_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/payloadschema"
	"github.com/jobweaver/jobweaver/shared/strictjson/jsontest"
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
		schema, err := payloadschema.Compile(text)
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

// The type of a step selects its form: the problems are those of that form alone.
func TestSchemaOfManyFormsSpeaksOfTheOneMeant(t *testing.T) {
	t.Parallel()
	schema, err := payloadschema.Compile(jobspec.PayloadSchema(jobspec.Simulation))
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
		got := jsontest.Problems(t, schema.Check(json.RawMessage(`{"steps": [`+payload+`]}`)))
		if got != want {
			t.Errorf("of %s\ngot  %s\nwant %s", payload, got, want)
		}
	}
}

// A client that submits a job need not read patterns, and learns at once of a header that it cannot set.
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
		schema, err := payloadschema.Compile(jobspec.PayloadSchema(c.jobType))
		if err != nil {
			t.Fatal(err)
		}
		if got := jsontest.Problems(t, schema.Check(json.RawMessage(c.payload))); got != c.want {
			t.Errorf("of %s\ngot  %s\nwant %s", c.payload, got, c.want)
		}
	}
}
