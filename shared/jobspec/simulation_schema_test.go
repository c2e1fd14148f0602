package jobspec_test

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/payloadschema"
)

// People and forms read the schema of a simulation; the gateway uses its parser. Both agree, except on numbers such as
// 1.0 and 1e3, which the parser does not take for integers.
func TestSimulationsSchemaAndParserAgree(t *testing.T) {
	t.Parallel()
	schema, err := payloadschema.Compile(jobspec.PayloadSchema(jobspec.Simulation))
	if err != nil {
		t.Fatal(err)
	}
	acceptedBy := func(t rapid.TB, payload string) bool {
		_, byParser := jobspec.ParseSimulation(json.RawMessage(payload))
		bySchema := schema.Check(json.RawMessage(payload))
		if (byParser == nil) != (bySchema == nil) {
			t.Fatalf("%s\nparser: %v\nschema: %v", payload, byParser, bySchema)
		}
		return byParser == nil
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

// oftenFirst draws the first in half of the cases: otherwise hardly any payload would be right as a whole.
func oftenFirst(t *rapid.T, label string, values ...string) string {
	if rapid.Bool().Draw(t, label+" is usual") {
		return values[0]
	}
	return rapid.SampledFrom(values).Draw(t, label)
}
