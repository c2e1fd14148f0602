package gateway_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/uuid"
)

// samples are requests that together name each member of the contract, each at least once with a value that is not its
// default. $job is a job sample, or the id of a job where a job has an id; the dashboard's tests read the same file.
type samples struct {
	Jobs, Batches, Flows, Schedules, Alerts, Controls, Queues []map[string]any
}

func loadSamples(t *testing.T) (s samples) {
	t.Helper()
	body, err := os.ReadFile("testdata/members.json")
	if err != nil {
		t.Fatal(err)
	}
	decodeNumbers(t, body, &s)
	return s
}

// decodeNumbers reads JSON with its numbers as they were written.
func decodeNumbers(t *testing.T, body []byte, into any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
}

// jobSchemas are those whose samples are the jobs: requests that contain a job do not have samples of its members.
var jobSchemas = []string{"JobRequest", "FlowJobRequest", "FollowUp", "ScheduledJob"}

func isJob(schema *openapi3.SchemaRef) bool {
	return slices.Contains(jobSchemas, strings.TrimPrefix(schema.Ref, "#/components/schemas/"))
}

// partsOf returns the schemas of the members of a schema, of its items under [] and of any other member under *.
func partsOf(schema *openapi3.SchemaRef) map[string]openapi3.SchemaRefs {
	parts := map[string]openapi3.SchemaRefs{}
	for name, of := range schema.Value.Properties {
		parts[name] = append(parts[name], of)
	}
	if items := schema.Value.Items; items != nil {
		parts["[]"] = append(parts["[]"], items)
	}
	if any := schema.Value.AdditionalProperties.Schema; any != nil {
		parts["*"] = append(parts["*"], any)
	}
	for _, of := range slices.Concat(schema.Value.AllOf, schema.Value.OneOf, schema.Value.AnyOf) {
		for name, more := range partsOf(of) {
			parts[name] = append(parts[name], more...)
		}
	}
	return parts
}

// membersAt adds the paths of all members of a schema.
func membersAt(schema *openapi3.SchemaRef, at string, to map[string]bool) {
	for name, parts := range partsOf(schema) {
		path := at + "." + name
		if name != "[]" && name != "*" {
			to[path] = true
		}
		for _, part := range parts {
			if !isJob(part) {
				membersAt(part, path, to)
			}
		}
	}
}

// namedAt adds the paths of the members that a value names, with another value than the default.
func namedAt(schema *openapi3.SchemaRef, value any, at string, to map[string]bool) {
	parts := partsOf(schema)
	below := func(name string, value any) {
		for _, part := range parts[name] {
			if byDefault, err := json.Marshal(part.Value.Default); err == nil && part.Value.Default != nil && sameJSON(byDefault, value) {
				continue
			}
			to[at+"."+name] = true
			if !isJob(part) {
				namedAt(part, value, at+"."+name, to)
			}
		}
	}
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			below("[]", item)
		}
	case map[string]any:
		for name, of := range value {
			if parts[name] == nil {
				name = "*"
			}
			below(name, of)
		}
	}
}

func sameJSON(a []byte, b any) bool {
	text, err := json.Marshal(b)
	return err == nil && bytes.Equal(a, text)
}

// without returns a job sample as a job of another schema: without the members that it has not, or refuses.
func without(schema *openapi3.SchemaRef, job map[string]any, more ...string) map[string]any {
	known, refused := partsOf(schema), slices.Clone(more)
	for _, part := range append(slices.Clone(schema.Value.AllOf), schema) {
		if part.Value.Not == nil {
			continue
		}
		for _, not := range part.Value.Not.Value.AnyOf {
			if len(not.Value.Required) == 1 {
				refused = append(refused, not.Value.Required...)
			}
		}
	}
	job = maps.Clone(job)
	maps.DeleteFunc(job, func(name string, _ any) bool { return known[name] == nil || slices.Contains(refused, name) })
	return job
}

// replaced returns a sample with its placeholders replaced.
func replaced(value any, by map[string]any) any {
	switch value := value.(type) {
	case string:
		if of, ok := by[value]; ok {
			return of
		}
	case []any:
		made := make([]any, len(value))
		for i, item := range value {
			made[i] = replaced(item, by)
		}
		return made
	case map[string]any:
		made := map[string]any{}
		for name, of := range value {
			made[name] = replaced(of, by)
		}
		return made
	}
	return value
}

// fill replaces the placeholders of a job sample by a job and a batch of the same owner.
func (h *fixture) fill(job map[string]any) map[string]any {
	h.t.Helper()
	var batch struct{ BatchID uuid.UUID }
	h.post("/api/batches", `{"ownerId": "acme"}`).want(http.StatusCreated).into(&batch)
	by := map[string]any{
		"$job": h.submit(with(`"ownerId": "acme"`)).String(), "$batch": batch.BatchID.String(), "$new": uuid.Must(uuid.NewV7()).String(),
	}
	return replaced(job, by).(map[string]any)
}

func (h *fixture) postJSON(path string, body any) *response {
	h.t.Helper()
	return h.post(path, string(text(h.t, body)))
}

func text(t *testing.T, value any) []byte {
	t.Helper()
	body, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// read gets an object of the API.
func (h *fixture) read(path string) (object map[string]any) {
	h.t.Helper()
	decodeNumbers(h.t, h.get(path).want(http.StatusOK).body, &object)
	return object
}

// forms are the members that a job shows in another form than its request, with the sentence of the contract about it.
var forms = map[string]struct {
	sentence string
	shows    func(sent any, job map[string]any) (wrong bool)
}{
	"delayMs": {"As requested, also by delayMs;", func(sent any, job map[string]any) bool {
		ms, err := sent.(json.Number).Int64()
		return err != nil || instantOf(job["runAt"]).Sub(instantOf(job["createdAt"])) != time.Duration(ms)*time.Millisecond
	}},
	"jobId": {"As requested; the jobId, if the client has given that.", func(sent any, job map[string]any) bool {
		return job["jobId"] != sent || job["idempotencyKey"] != sent
	}},
	"after": {"How jobs in after have to end, by their ids", func(sent any, job map[string]any) bool {
		shown, _ := job["after"].([]any)
		conditions, _ := job["conditions"].(map[string]any)
		for i, of := range sent.([]any) {
			if named, is := of.(map[string]any); is {
				of = named["jobId"]
				if conditions[of.(string)] != named["on"] {
					return true
				}
			}
			if i >= len(shown) || shown[i] != of {
				return true
			}
		}
		return len(shown) != len(sent.([]any))
	}},
	"retryPolicy": {"As requested, with all members of its type;", func(sent any, job map[string]any) bool {
		shown, _ := job["retryPolicy"].(map[string]any)
		for name, of := range sent.(map[string]any) {
			if !same(of, shown[name]) {
				return true
			}
		}
		return len(shown) == 0
	}},
}

func instantOf(value any) time.Time {
	text, _ := value.(string)
	at, _ := time.Parse(time.RFC3339Nano, text)
	return at
}

// same reports whether two values of JSON are equal: instants and numbers by what they mean, numbers of payloads as
// they were written, too.
func same(a, b any) bool {
	switch x := a.(type) {
	case string:
		y, is := b.(string)
		return is && (x == y || !instantOf(x).IsZero() && instantOf(x).Equal(instantOf(y)))
	case json.Number:
		y, is := b.(json.Number)
		return is && (x == y || x.String() == strings.TrimSuffix(y.String(), ".0"))
	case map[string]any:
		y, is := b.(map[string]any)
		return is && len(x) == len(y) && !slices.ContainsFunc(slices.Collect(maps.Keys(x)), func(name string) bool { return !same(x[name], y[name]) })
	case []any:
		y, is := b.([]any)
		return is && slices.EqualFunc(x, y, same)
	}
	return reflect.DeepEqual(a, b)
}

// shows checks that a job shows what its request asked for, except for some members.
func (h *fixture) shows(what string, sent, job map[string]any, except ...string) {
	h.t.Helper()
	for _, name := range slices.Sorted(maps.Keys(sent)) {
		if slices.Contains(except, name) {
			continue
		}
		var wrong bool
		if form, has := forms[name]; has {
			wrong = form.shows(sent[name], job)
		} else {
			wrong = !same(sent[name], job[name])
		}
		if wrong {
			h.t.Errorf("%s: %s is %s, and was sent as %s", what, name, text(h.t, job[name]), text(h.t, sent[name]))
		}
	}
}
