package handlers_test

import (
	"context"
	"encoding/json"
	"testing"

	"go.uber.org/goleak"

	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestARegistryKnowsItsTypes(t *testing.T) {
	t.Parallel()
	r, err := handlers.Builtin(handlers.Config{})
	if err != nil {
		t.Fatal(err)
	}
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
	if len(types) != 2 || types[0].Name != "RESIZE" || string(types[0].Schema) != `{"type": "object"}` || types[1].Name != "SIMULATION" {
		t.Errorf("types %+v", types)
	}
}
