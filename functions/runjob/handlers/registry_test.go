package handlers_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

func TestPayloadIsCheckedBeforeTheHandlerIsCalled(t *testing.T) {
	t.Parallel()
	r, called := handlers.NewRegistry(), 0
	schema := json.RawMessage(`{"required": ["to"], "properties": {"to": {"items": {"format": "email"}}}, "additionalProperties": false}`)
	err := r.Register("LETTER", schema, func(context.Context, *handlers.Attempt) (handlers.Result, error) {
		called++
		return handlers.Result{}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for payload, want := range map[string]string{
		`{"to": ["ada@example.org"]}`: "",
		`{"to": ["ada", "bob"], "size": 1}`: "payload.size is not a known field; payload.to[0] must be an e-mail address, " +
			"as ada@example.org; payload.to[1] must be an e-mail address, as ada@example.org",
		`{}`:               "payload.to is required",
		`1e999999999`:      "payload must be a number that a double can hold, of at most 1000 characters",
		`{"to": [`:         "payload is not valid JSON",
		`{"to": "\u0000"}`: `payload.to must not contain the character \u0000`,
	} {
		called = 0
		_, err := run(r, "LETTER", payload)
		if want == "" {
			if err != nil || called != 1 {
				t.Errorf("%s: %v, called %d times", payload, err, called)
			}
			continue
		}
		var failure *handlers.Failure
		if !errors.As(err, &failure) || failure.Code != "WORKER.INVALID_PAYLOAD" || failure.Retryable || failure.Message != want {
			t.Errorf("%s: got %v\nwant %s", payload, err, want)
		}
		if called != 0 {
			t.Errorf("%s came to the handler", payload)
		}
	}
}

func TestHeartbeatsHaveABoundedSizeOfSchemas(t *testing.T) {
	t.Parallel()
	r := handlers.NewRegistry()
	for _, name := range []string{"A", "B", "C"} {
		schema := `{"description": "` + strings.Repeat("x", handlers.MaxSchemas/2-100) + `"}`
		if err := r.Register(name, json.RawMessage(schema), handlers.Typed(shout)); err != nil {
			t.Fatal(err)
		}
	}
	types := r.JobTypes()
	if types[0].Schema == nil || types[1].Schema == nil || types[2].Schema != nil {
		t.Errorf("schemas of %d, %d and %d bytes", len(types[0].Schema), len(types[1].Schema), len(types[2].Schema))
	}
}

type words struct {
	Text  string     `json:"text" jsonschema:"what to shout"`
	Times int        `json:"times,omitempty"`
	At    *time.Time `json:"at,omitempty"`
	Tags  []string   `json:"tags,omitempty"`
}

type shouted struct {
	Text string `json:"text"`
}

func shout(_ context.Context, _ *handlers.Attempt, in words) (shouted, error) {
	if in.Text == "" {
		return shouted{}, errors.New("nothing to shout")
	}
	return shouted{strings.Repeat(strings.ToUpper(in.Text), max(in.Times, 1))}, nil
}

func TestATypedHandlerUsesGoValues(t *testing.T) {
	t.Parallel()
	r := handlers.NewRegistry()
	if err := handlers.RegisterTyped(r, "SHOUT", shout); err != nil {
		t.Fatal(err)
	}
	for payload, want := range map[string]string{
		`{"text": "ho", "times": 2, "tags": ["a"], "at": "2026-11-22T08:00:00Z"}`: `{"text":"HOHO"}`,
		`{"text": ""}`:                    "nothing to shout",
		`{}`:                              "WORKER.INVALID_PAYLOAD: payload.text is required",
		`{"text": 1, "loud": true}`:       "WORKER.INVALID_PAYLOAD: payload.loud is not a known field; payload.text must be a string",
		`{"text": "a", "times": 1.5}`:     "WORKER.INVALID_PAYLOAD: payload.times must be an integer",
		`{"text": "a", "times": 1e30}`:    "WORKER.INVALID_PAYLOAD: payload: json: cannot unmarshal number 1e30 into Go struct field words.times of type int",
		`{"text": "a", "at": "tomorrow"}`: "WORKER.INVALID_PAYLOAD: payload: parsing time \"tomorrow\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"tomorrow\" as \"2006\"",
	} {
		result, err := run(r, "SHOUT", payload)
		got := string(result.Output)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", payload, got, want)
		}
	}
	if schema := string(r.JobTypes()[0].Schema); !strings.Contains(schema, "what to shout") {
		t.Errorf("schema %s", schema)
	}
	unable := func(context.Context, *handlers.Attempt, chan int) (int, error) { return 0, nil }
	if err := handlers.RegisterTyped(r, "UNABLE", unable); err == nil {
		t.Error("a type that JSON has not is registered")
	}
}

func run(r *handlers.Registry, jobType, payload string) (handlers.Result, error) {
	order := jobevent.Run{JobID: uuid.New(), Attempt: 1, JobType: jobType, Payload: json.RawMessage(payload)}
	a := handlers.NewAttempt(order, uuid.New(), func(slog.Level, string) {}, func(jobevent.Progress) {})
	return r.Find(jobType)(context.Background(), a)
}
