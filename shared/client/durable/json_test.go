package durable_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/client/durable"
)

type panics struct{}

func (panics) MarshalJSON() ([]byte, error) { panic("oh") }

type ring struct{ Next *ring }

// The other kits have the same list for their languages.
func TestAValueThatJSONCannotHoldIsAFailure(t *testing.T) {
	t.Parallel()
	circle := &ring{}
	circle.Next = circle
	for name, c := range map[string]struct {
		value any
		wrong string
	}{
		"not a number":       {map[string]any{"x": []float64{1, math.NaN()}}, "NaN"},
		"infinity":           {math.Inf(-1), "-Inf"},
		"a channel":          {make(chan int), "chan int"},
		"a function":         {struct{ F func() }{}, "func()"},
		"a complex number":   {1i, "complex128"},
		"a cycle":            {circle, "cycle"},
		"keys of a struct":   {map[struct{ A int }]int{{1}: 1}, "map[struct"},
		"NUL":                {map[string]string{"text": "a\x00b"}, `character \u0000`},
		"NUL in a key":       {map[string]int{"a\x00": 1}, `character \u0000`},
		"no UTF-8":           {[]any{struct{ Text *string }{new("cut \xf0\x9f")}}, "not UTF-8"},
		"no UTF-8 in a key":  {map[string]int{"\xff": 1}, "not UTF-8"},
		"broken JSON":        {json.RawMessage(`{"a":`), "unexpected end"},
		"MarshalJSON panics": {panics{}, "panic: oh"},
		"a year of 5 digits": {time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC), "year outside of range"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s store
			c2 := s.attempt()
			_, ofJSON := durable.JSON("the output", c.value)
			_, ofStep := durable.Step(t.Context(), c2, "b", func(context.Context) (any, error) { return c.value, nil })
			for _, err := range []error{ofJSON, c2.Save(c.value), ofStep} {
				var wrong *durable.Failure
				if !errors.As(err, &wrong) || wrong.Code != durable.NotJSON || !strings.Contains(wrong.Message, c.wrong) ||
					!strings.Contains(wrong.Message, " has no JSON form: ") {
					t.Errorf("%v", err)
				}
			}
		})
	}
}

func TestOtherValuesAreWrittenWhole(t *testing.T) {
	t.Parallel()
	for want, value := range map[string]any{
		`"<\ufffd>"`:            json.RawMessage(`"<\ufffd>"`),
		`{"a":"�","b":"AQI="}`:  map[string]any{"a": "�", "b": []byte{1, 2}},
		`"\\u0000 and \\ufffd"`: `\u0000 and \ufffd`,
		`1970670598291982290`:   int64(1970670598291982290),
		`1.10`:                  json.Number("1.10"),
	} {
		if got, err := durable.JSON("the output", value); err != nil || string(got) != want {
			t.Errorf("%s, %v, not %s", got, err, want)
		}
	}
}
