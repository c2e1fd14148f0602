package payloadschema_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/payloadschema"
)

// A worker's schema is short and requires something that is costly to check, and the payload contains as much of it as
// possible.
func TestPatternsAndLongTextsInAPayloadArePaidFor(t *testing.T) {
	t.Parallel()
	list := func(text string, n int) string {
		return `["` + strings.TrimSuffix(strings.Repeat(text+`","`, n), `","`) + `"]`
	}
	for name, c := range map[string]struct{ schema, payload string }{
		"many patterns": {`{"items": {"format": "regex"}}`, list(`(?:a{1000}){1}`, 20_000)},
		"long patterns": {`{"items": {"format": "regex"}}`, list(strings.Repeat(`a{1000}`, 70), 900)},
		"a long text": {
			`{"allOf": [` + strings.TrimSuffix(strings.Repeat(`{"minLength": 600000},`, 1500), ",") + `]}`,
			`"` + strings.Repeat("a", 500_000) + `"`,
		},
	} {
		schema, err := payloadschema.CompileForeign(json.RawMessage(c.schema))
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		err = schema.Check(json.RawMessage(c.payload))
		if took := time.Since(began); !errors.Is(err, payloadschema.ErrTooCostly) || took > 5*time.Second && !testing.Short() {
			t.Errorf("%s: %.100v after %v", name, err, took)
		}
	}
	schema, err := payloadschema.CompileForeign(json.RawMessage(`{"items": {"format": "regex", "maxLength": 50}}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Check(json.RawMessage(list(`^[a-z]{2,20}$`, 100))); err != nil {
		t.Errorf("some patterns: %v", err)
	}
}
