package jobspec_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/jobweaver/jobweaver/shared/jobspec"
)

func fill(payload, output string) (string, error) {
	filled, err := jobspec.FillInOutputs([]byte(payload), func(name string) (jsontext.Value, bool) {
		return jsontext.Value(output), name == "a"
	})
	return string(filled), err
}

func TestPathsLeadToOneValue(t *testing.T) {
	t.Parallel()
	const output = `{"a":{"b":[10,{"c d":1,"é":2}]},"":3,"q'\"":4,"$output":5}`
	for path, want := range map[string]string{
		"$": output, "$.a.b[0]": "10", `$.a["b"][1]['c d']`: "1", "$.a.b[1].é": "2", "$['']": "3", `$['q\'"']`: "4", `$["q'\""]`: "4",
		"$['$output']": "5", "$.a.b[1]": `{"c d":1,"é":2}`,
		"$.b": "", "$.a[0]": "", "$.a.b[2]": "", "$.a.b.c": "", "$.a.b[0].x": "",
	} {
		payload, _ := json.Marshal(map[string]any{"$output": "a", "path": path})
		got, err := fill(`{"x":`+string(payload)+`}`, output)
		if want == "" {
			if wrong := (*jobspec.OutputError)(nil); !errors.As(err, &wrong) || wrong.Code != "WORKER.OUTPUT_MISSING" {
				t.Errorf("%s: %s, %v", path, got, err)
			}
			continue
		}
		if err != nil || got != `{"x":`+want+`}` {
			t.Errorf("%s: %s, %v", path, got, err)
		}
	}
}

func TestBadReferencesAreRefused(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"", "a", "$a", "$.", "$..a", "$.*", "$[*]", "$[-1]", "$[01]", "$[1", "$['a", "$['a'", "$[a]", "$.1a", "$.a ", "$[?@.x]", "$[99999999999]", `$["\x"]`} {
		payload, _ := json.Marshal(map[string]any{"$output": "a", "path": path})
		if names, p := jobspec.Outputs(payload); len(p) != 1 || p[0].Path != "payload.path" {
			t.Errorf("%q: %v, %v", path, names, p)
		}
	}
	names, p := jobspec.Outputs([]byte(`[{"$output":"a"},{"b":{"$output":"b","path":"$.x"}},{"$output":"a","default":{"$output":"c"}}]`))
	if strings.Join(names, " ") != "a b" || p != nil {
		t.Errorf("%v, %v", names, p)
	}
}

// A payload without references stays as it is, whatever its members are called.
func TestAPayloadWithoutReferencesStaysAsItIs(t *testing.T) {
	t.Parallel()
	value := rapid.Custom(func(t *rapid.T) any { return anyJSON(t, 3) })
	rapid.Check(t, func(t *rapid.T) {
		payload, err := json.Marshal(value.Draw(t, "payload"))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := fill(string(payload), "1"); err != nil || got != string(payload) {
			t.Fatalf("%s became %s, %v", payload, got, err)
		}
	})
}

func anyJSON(t *rapid.T, deep int) any {
	switch n := rapid.IntRange(0, 4).Draw(t, "kind"); {
	case n == 0 && deep > 0:
		object := map[string]any{}
		for range rapid.IntRange(0, 3).Draw(t, "members") {
			object[rapid.SampledFrom([]string{"a", "path", "default", "$", "é\"\\"}).Draw(t, "name")] = anyJSON(t, deep-1)
		}
		return object
	case n == 1 && deep > 0:
		list := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "elements") {
			list = append(list, anyJSON(t, deep-1))
		}
		return list
	case n == 2:
		return rapid.String().Draw(t, "text")
	case n == 3:
		return rapid.Int64().Draw(t, "number")
	}
	return nil
}

func TestAJobThatRunsAgainKeepsItsReferences(t *testing.T) {
	t.Parallel()
	id := uuid.Must(uuid.NewV7())
	old, err := jobspec.DecodeNamed([]byte(`{"jobType": "SIMULATION", "payload": {"steps": [{"type": "LOG", "message": {"$output": "a"}}]}, "after": ["a"]}`),
		map[string]uuid.UUID{"a": id})
	if err != nil || len(old.Inputs) != 1 || old.Inputs[0].JobID != id {
		t.Fatalf("%+v, %v", old, err)
	}
	patch, err := jobspec.DecodePatch([]byte(`{"priority": 1}`))
	if err != nil {
		t.Fatal(err)
	}
	again, err := patch.Apply(old.Again())
	if err != nil || len(again.After) != 0 || len(again.Inputs) != 1 {
		t.Fatalf("%+v, %v", again, err)
	}
	if _, err := jobspec.Canonical(again); err != nil {
		t.Error(err)
	}
	for body, ok := range map[string]bool{`{"payload": {"steps": [{"type": "LOG", "message": "x"}]}}`: true, `{"payload": {"steps": []}}`: false,
		`{"payload": {"steps": [{"type": "LOG", "message": {"$output": "b"}}]}}`: false} {
		patch, err := jobspec.DecodePatch([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := patch.Apply(old.Again()); (err == nil) != ok {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// A payload of many summaries is not filled in to its end.
func TestSummariesAreFilledInUpToTheLimit(t *testing.T) {
	t.Parallel()
	summary := map[string]string{"name": strings.Repeat("x", 500)}
	payload := func(n int) json.RawMessage {
		return json.RawMessage(`{"z": 1.50, "a": [` + strings.Repeat(`{"$batch": "summary"}, `, n) + `"<"]}`)
	}
	filled, wrong := jobspec.FillInSummary(payload(2), summary)
	want := `{"name":"` + strings.Repeat("x", 500) + `"},`
	if len(wrong) > 0 || string(filled) != `{"z":1.50,"a":[`+want+want+`"<"]}` {
		t.Errorf("it becomes %s, %v", filled, wrong)
	}
	filled, wrong = jobspec.FillInSummary(payload(20_000), summary)
	if len(wrong) != 1 || wrong[0].Path != "payload" || !strings.Contains(wrong[0].Message, "more than 524288 bytes") {
		t.Errorf("it becomes %d bytes, %v", len(filled), wrong)
	}
}
