package jobspec_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"github.com/jobweaver/jobweaver/shared/jobspec"
)

// A simulation's schema is what people and forms read; its parser is what the gateway asks. They agree, but
// for numbers as 1.0 and 1e3, which the parser does not take for integers.
func TestSimulationsSchemaAndParserAgree(t *testing.T) {
	t.Parallel()
	schema, err := jobspec.CompileSchema(jobspec.PayloadSchema(jobspec.Simulation))
	if err != nil {
		t.Fatal(err)
	}
	acceptedBy := func(t rapid.TB, payload string) bool {
		_, parserSays := jobspec.ParseSimulation(json.RawMessage(payload))
		schemaSays := schema.Check(json.RawMessage(payload))
		if (parserSays == nil) != (schemaSays == nil) {
			t.Fatalf("%s\nparser: %v\nschema: %v", payload, parserSays, schemaSays)
		}
		return parserSays == nil
	}
	// These are the same in each run, so both sides are tried however few are drawn after them.
	accepted, payloads := 0, rapid.Custom(anyPayload)
	for seed := range 100 {
		if acceptedBy(t, payloads.Example(seed)) {
			accepted++
		}
	}
	if accepted == 0 || accepted == 100 {
		t.Errorf("%d of 100 accepted: one side is not tried", accepted)
	}
	rapid.Check(t, func(t *rapid.T) { acceptedBy(t, payloads.Draw(t, "payload")) })
}

func anyPayload(t *rapid.T) string {
	steps := `[` + strings.Join(rapid.SliceOfN(rapid.Custom(anyStep), 0, 3).Draw(t, "steps"), ",") + `]`
	return oftenFirst(t, "payload", `{"steps": `+steps+`}`, `{"steps": `+steps+`, "more": 1}`, `{}`, `[]`, `1`,
		`{"steps": {}}`, `{"steps": [`+strings.Repeat(`{"type":"FAIL"},`, 999)+`{"type":"FAIL"}]}`,
		`{"steps": [`+strings.Repeat(`{"type":"FAIL"},`, 1000)+`{"type":"FAIL"}]}`)
}

var stepFields = map[string][]string{
	"SLEEP": {"durationMs"}, "LOG": {"message"}, "COMPUTE": {"iterations"}, "HTTP_CALL": {"url", "method", "latencyMs"},
	"FAIL": {"message", "errorCode", "retryable", "failAttempts"}, "WALK": {"url"},
}

func anyStep(t *rapid.T) string {
	typ := rapid.SampledFrom([]string{"SLEEP", "LOG", "COMPUTE", "HTTP_CALL", "FAIL", "FAIL", "WALK"}).Draw(t, "type")
	members := []string{}
	if rapid.IntRange(0, 20).Draw(t, "typed") > 0 {
		members = append(members, `"type": "`+typ+`"`)
	}
	names := stepFields[typ]
	if rapid.IntRange(0, 10).Draw(t, "stray") == 0 {
		names = append(names[:len(names):len(names)], rapid.SampledFrom([]string{"x", "failAttempts", "iterations"}).Draw(t, "other"))
	}
	seen := map[string]bool{}
	for _, name := range names {
		if !seen[name] && rapid.IntRange(0, 4).Draw(t, "has "+name) > 0 {
			members = append(members, `"`+name+`": `+anyValue(t, name))
		}
		seen[name] = true
	}
	return oftenFirst(t, "step", `{`+strings.Join(members, ",")+`}`, `1`, `[]`, `null`, `{}`)
}

func anyValue(t *rapid.T, name string) string {
	switch name {
	case "durationMs", "latencyMs", "iterations", "failAttempts":
		return oftenFirst(t, name, `1`, `0`, `-0`, `-1`, `86400000`, `86400001`, `10000000000`, `10000000001`, `2147483647`,
			`2147483648`, `9223372036854775808`, `0.5`, `"1"`, `null`)
	case "url":
		return oftenFirst(t, name, `"http://x/"`, `"HTTPS://x.y:1?q#f"`, `"http://[::1]:80/a"`, `"ftp://x/"`, `"http://"`, `"http:///x"`,
			`"http://u:p@x/"`, `"http://@x/"`, `"http://x/@y"`, `"http://:80/"`, `"x"`, `""`, `1`, `"http://x/%zz"`, `"http://a b/"`,
			`"http://x/`+strings.Repeat("a", 2038)+`"`, `"http://x/`+strings.Repeat("a", 2040)+`"`, `"http://[::1/"`)
	case "method":
		return oftenFirst(t, name, `"GET"`, `"POST"`, `"get"`, `""`, `null`)
	case "message":
		return oftenFirst(t, name, `"hi"`, `""`, `"\u00fc"`, `7`, `"`+strings.Repeat("ü", 4096)+`"`, `"`+strings.Repeat("ü", 4097)+`"`)
	case "errorCode":
		return oftenFirst(t, name, `"A.b_c-1"`, `""`, `"1A"`, `"A B"`, `"A\n"`, `"`+strings.Repeat("a", 64)+`"`, `"`+strings.Repeat("a", 65)+`"`)
	case "retryable":
		return oftenFirst(t, name, `true`, `false`, `"true"`, `null`)
	default:
		return `1`
	}
}

// oftenFirst draws the first in half of the cases: or hardly anything would be right as a whole.
func oftenFirst(t *rapid.T, label string, values ...string) string {
	if rapid.Bool().Draw(t, label+" is usual") {
		return values[0]
	}
	return rapid.SampledFrom(values).Draw(t, label)
}

func FuzzSchema(f *testing.F) {
	f.Add([]byte(parcel), []byte(`{"to": ["a@b.org", "x"], "weight": 32, "nested": {"list": [{"x": 8}]}}`))
	f.Add([]byte(jobspec.PayloadSchema(jobspec.Simulation)), []byte(`{"steps": [{"type": "LOG"}, {"type": "WALK"}]}`))
	f.Add([]byte(`{"$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}, "allOf": [{"$ref": "#/$defs/a"}, {"not": {"$ref": "#"}}]}`), []byte(`[[[]]]`))
	f.Add([]byte(`{"oneOf": [{"const": "a"}, {"enum": [1.0, {}]}, {"contains": {"minimum": 1e300}}], "unevaluatedItems": false}`), []byte(`[1]`))
	f.Add([]byte(`{"patternProperties": {"^a+$": {"uniqueItems": true}}, "propertyNames": {"format": "regex"}}`), []byte(`{"a": [1, 1]}`))
	f.Fuzz(func(t *testing.T, text, payload []byte) {
		foreign, err := jobspec.CompileForeignSchema(text)
		if err != nil {
			return
		}
		if _, err := jobspec.Decode([]byte(`{"jobType": "OWN", "payload": ` + string(payload) + `}`)); err != nil {
			return
		}
		err = foreign.Check(payload)
		if errors.Is(err, jobspec.ErrTooCostly) {
			return
		}
		if err != nil {
			checkError(t, err)
		}
		own, ownErr := jobspec.CompileSchema(text)
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
