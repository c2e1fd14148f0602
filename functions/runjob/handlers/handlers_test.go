package handlers_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestARegistryHasItsTypes(t *testing.T) {
	t.Parallel()
	r, err := handlers.Builtin(handlers.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	run := func(context.Context, *handlers.Attempt) (handlers.Result, error) { return handlers.Result{}, nil }
	for _, c := range []struct {
		name, schema string
		h            handlers.Handler
		ok           bool
	}{
		{"RESIZE", `{"type": "object"}`, run, true},
		{"RESIZE", "", run, false},
		{"SIMULATION", "", run, false},
		{"", "", run, false},
		{"NONE", "", nil, false},
		{"BAD", "{", run, false},
		{"BAD", `{"type": "thing"}`, run, false},
		{"BAD", `{"$ref": "https://example.org/schema.json"}`, run, false},
	} {
		var schema json.RawMessage
		if c.schema != "" {
			schema = json.RawMessage(c.schema)
		}
		if err := r.Register(c.name, schema, c.h); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if r.Find("RESIZE") == nil || r.Find("NONE") != nil {
		t.Error("found what is not there, or not what is")
	}
	types := r.JobTypes()
	own := slices.IndexFunc(types, func(j jobevent.JobType) bool { return j.Name == "RESIZE" })
	if own < 0 || string(types[own].Schema) != `{"type":"object"}` ||
		!slices.IsSortedFunc(types, func(a, b jobevent.JobType) int { return strings.Compare(a.Name, b.Name) }) {
		t.Errorf("types %+v", types)
	}
}
