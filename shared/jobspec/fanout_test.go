package jobspec_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// template is a random payload with references to an element, and what it has to become.
func template(t *rapid.T, element any, index, deep int) (payload, want any) {
	kind := rapid.IntRange(0, 5).Draw(t, "kind")
	switch {
	case kind == 0:
		return map[string]any{"$item": "value"}, element
	case kind == 1:
		return map[string]any{"$item": "index"}, index
	case kind == 2:
		ref := map[string]any{"$item": "value", "path": "$.a", "default": "none"}
		if object, is := element.(map[string]any); is {
			if value, has := object["a"]; has {
				return ref, value
			}
		}
		return ref, "none"
	case kind == 3 && deep > 0:
		object, filled := map[string]any{}, map[string]any{}
		for i := range rapid.IntRange(0, 3).Draw(t, "members") {
			object[fmt.Sprint(i)], filled[fmt.Sprint(i)] = template(t, element, index, deep-1)
		}
		return object, filled
	case kind == 4 && deep > 0:
		list, filled := []any{}, []any{}
		for range rapid.IntRange(0, 3).Draw(t, "elements") {
			one, two := template(t, element, index, deep-1)
			list, filled = append(list, one), append(filled, two)
		}
		return list, filled
	}
	plain := anyJSON(t, 1)
	return plain, plain
}

func TestEachElementGoesIntoThePayload(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		element, index := anyJSON(t, 2), rapid.IntRange(0, 9999).Draw(t, "index")
		payload, want := template(t, element, index, 3)
		filled, err := jobspec.FillInItem(encode(t, payload), encode(t, element), index)
		if err != nil || !bytes.Equal(filled, encode(t, want)) {
			t.Fatalf("%s with %s became %s, %v, want %s", encode(t, payload), encode(t, element), filled, err, encode(t, want))
		}
	})
}

func encode(t *rapid.T, value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestReferencesToOutputsStayInThePayloadOfAnElement(t *testing.T) {
	t.Parallel()
	const payload = `{"x": {"$output": "a", "path": "$.b"}, "y": {"$item": "value"}}`
	if got, err := jobspec.FillInItem([]byte(payload), []byte(`1`), 0); err != nil || string(got) != `{"x":{"$output": "a", "path": "$.b"},"y":1}` {
		t.Errorf("%s, %v", got, err)
	}
	for element, payload := range map[string]string{
		`{"$output": "a"}`: payload,
		`{"b": 1}`:         `{"$item": "value", "path": "$.a"}`,
	} {
		_, err := jobspec.FillInItem([]byte(payload), []byte(element), 7)
		if wrong := (*jobspec.OutputError)(nil); !errors.As(err, &wrong) || wrong.Code != apierror.InvalidFanOut || !strings.Contains(err.Error(), "element 7") {
			t.Errorf("%s: %v", element, err)
		}
	}
}

func TestAFanOutNeedsAnArray(t *testing.T) {
	t.Parallel()
	each := jobspec.ForEach{Name: "list", Path: "$.items"}
	if got, err := each.Elements([]byte(`{"items": [1, {"a": 2}, []]}`)); err != nil || len(got) != 3 || string(got[1]) != `{"a": 2}` {
		t.Errorf("%s, %v", got, err)
	}
	if got, err := each.Elements([]byte(`{"items": []}`)); err != nil || len(got) != 0 {
		t.Errorf("%s, %v", got, err)
	}
	for _, output := range []string{"", "{}", "[]", `{"items": {}}`, `{"items": null}`, `{"items": [` + strings.Repeat("0,", 10_000) + `0]}`} {
		got, err := each.Elements([]byte(output))
		if wrong := (*jobspec.OutputError)(nil); !errors.As(err, &wrong) || wrong.Code != apierror.InvalidFanOut {
			t.Errorf("%.30s: %d, %v", output, len(got), err)
		}
	}
	each.Path = "$"
	if _, err := each.Elements(jobspec.TooLarge(1 << 20)); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Error(err)
	}
	if _, err := fill(`{"x": {"$output": "a", "path": "$[0]", "default": 1}}`, string(jobspec.TooLarge(1<<20))); err == nil || err.(*jobspec.OutputError).Code != apierror.InputTooLarge { //nolint:errorlint // it is not wrapped
		t.Error(err)
	}
}

// What the jobs of the elements have, the fan-out does not, except for a place in the order of their key.
func TestAFanOutPutsAsideWhatItsElementsHave(t *testing.T) {
	t.Parallel()
	list, other := uuid.Must(uuid.NewV7()), uuid.Must(uuid.NewV7())
	req, err := jobspec.DecodeNamed([]byte(`{"jobType": "SIMULATION", "payload": {"steps": {"$item": "value"}, "x": {"$output": "other"}},
		"after": ["list", {"name": "other", "on": "ended"}], "forEach": {"$output": "list"}, "orderingKey": "k", "throttle": {"key": "t", "perMs": 5},
		"callbackUrl": "https://example.org/x", "priority": 3}`), map[string]uuid.UUID{"list": list, "other": other})
	if err != nil {
		t.Fatal(err)
	}
	f := req.FanOut()
	if f.OrderingKey != "k" || f.Throttle != nil || f.CallbackURL != "" || f.ForEach.JobID != list || f.Priority != 3 {
		t.Errorf("the fan-out is %+v", f)
	}
	text, err := json.Marshal(f.ForEach)
	if err != nil {
		t.Fatal(err)
	}
	f.ForEach = nil
	if err := json.Unmarshal(text, &f.ForEach); err != nil {
		t.Fatal(err)
	}
	e := f.OfElement(jobspec.Element{FanOut: list, Index: 4})
	if e.OrderingKey != "k" || e.Throttle == nil || e.CallbackURL == "" || e.ForEach != nil || e.Element.Index != 4 || e.Priority != 3 ||
		!slices.Equal(e.After, []uuid.UUID{other}) || !slices.Equal(e.Conditions, []jobstate.Condition{jobstate.WhenEnded}) {
		t.Errorf("the job of an element is %+v", e)
	}
}
