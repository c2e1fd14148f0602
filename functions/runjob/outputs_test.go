package runjob

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/sealing"
)

// echo returns its payload as its output.
func echo(_ context.Context, a *handlers.Attempt) (handlers.Result, error) {
	return handlers.Result{Output: a.Payload}, nil
}

func parentsOf(t *testing.T, parents ...jobevent.Parent) json.RawMessage {
	t.Helper()
	b, err := json.Marshal(parents)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestAPayloadGetsTheOutputsToWhichItRefers(t *testing.T) {
	h := newFixture(t)
	cfg, sealer := seals(t)
	h.more = map[string]handlers.Handler{"ECHO": echo}
	h.start(func(c *Config, _ *timing) { c.Sealing = cfg })
	from := jobevent.Parent{Input: jobevent.Input{Name: "a", JobID: uuid.New()}, Attempt: 3}
	place := sealing.OfAttempt(from.JobID, 3, sealing.Output)
	from.Output = sealer.Seal(place, json.RawMessage(`{"n": [1, {"b c": 12345678901234567890}], "s": "x"}`))
	none := jobevent.Parent{Input: jobevent.Input{Name: "failed", JobID: uuid.New()}}
	empty := jobevent.Parent{Input: jobevent.Input{Name: "empty", JobID: uuid.New()}, Attempt: 1}
	parents := parentsOf(t, from, none, empty)
	for payload, want := range map[string]string{
		`{"z":{"$output":"a","path":"$.n[1]['b c']"},"a":[true,{"$output":"a","path":"$.s"}]}`: `{"z":12345678901234567890,"a":[true,"x"]}`,
		`{"$output":"a","path":"$['n'][0]"}`:                                                   `1`,
		`[{"$output":"failed","default":[1]}]`:                                                 `[[1]]`,
		`[{"$output":"empty"},{"$output":"empty","default":1}]`:                                `[null,null]`,
		`{"$output":"a","path":"$.none","default":null}`:                                       `null`,
		`{"$output":"a","path":"$.none"}`:                                                      "WORKER.OUTPUT_MISSING",
		`{"$output":"a","path":"$.n[2]"}`:                                                      "WORKER.OUTPUT_MISSING",
		`{"$output":"a","path":"$.s.x"}`:                                                       "WORKER.OUTPUT_MISSING",
		`{"$output":"failed"}`:                                                                 "WORKER.OUTPUT_MISSING",
		`{"$output":"other"}`:                                                                  "WORKER.OUTPUT_MISSING",
	} {
		run := h.run("ECHO", payload)
		run.Payload = sealer.Seal(sealing.OfJob(run.JobID, sealing.Payload), run.Payload)
		run.Parents = parents
		h.order(run)
		if want[0] == 'W' {
			if failed := h.failed(run); failed.ErrorCode != want || failed.Retryable {
				t.Errorf("%s ends as %+v", payload, failed)
			}
			continue
		}
		done, err := jobevent.DecodeAs[jobevent.Completed](h.outcome(run), jobevent.TypeCompleted)
		if err != nil {
			t.Fatal(payload, err)
		}
		if got, err := sealer.Open(sealing.OfAttempt(run.JobID, 1, sealing.Output), done.Output); err != nil || string(got) != want {
			t.Errorf("%s became %s, %v", payload, got, err)
		}
	}
	from.Output = sealer.Seal(sealing.OfAttempt(from.JobID, 2, sealing.Output), json.RawMessage(`1`)) // moved from another attempt
	moved := h.run("ECHO", `{"$output":"a"}`)
	moved.Parents = parentsOf(t, from)
	h.order(moved)
	if failed := h.failed(moved); failed.ErrorCode != "WORKER.PAYLOAD_SEALED" || !failed.Retryable {
		t.Errorf("a moved output: %+v", failed)
	}
}

func TestATooLargeInputFailsTheAttempt(t *testing.T) {
	h := newFixture(t)
	h.more = map[string]handlers.Handler{"ECHO": echo}
	h.start(nil)
	large := jobevent.Parent{Input: jobevent.Input{Name: "a", JobID: uuid.New()}, Attempt: 1, OutputBytes: jobevent.MaxParentBytes + 1}
	handedOver := h.run("ECHO", `{"$output":"a"}`)
	handedOver.Parents = parentsOf(t, large)
	large.OutputBytes, large.Output = 200<<10, json.RawMessage(`"`+string(make200K())+`"`)
	thrice := h.run("ECHO", `[{"$output":"a"},{"$output":"a"},{"$output":"a"}]`)
	thrice.Parents = parentsOf(t, large)
	h.order(handedOver, thrice)
	for _, run := range []jobevent.Run{handedOver, thrice} {
		if failed := h.failed(run); failed.ErrorCode != "WORKER.INPUT_TOO_LARGE" || failed.Retryable || h.startsOf(run) != 0 {
			t.Errorf("it ends as %+v", failed)
		}
	}
}

func make200K() []byte {
	text := make([]byte, 200<<10)
	for i := range text {
		text[i] = 'x'
	}
	return text
}

func TestAPayloadIsCheckedWithTheOutputs(t *testing.T) {
	h := newFixture(t)
	h.start(nil)
	parent := jobevent.Parent{Input: jobevent.Input{Name: "a", JobID: uuid.New()}, Attempt: 1, Output: json.RawMessage(`{"ms": 1, "text": "x"}`)}
	good := h.run("SIMULATION", `{"steps":[{"type":"SLEEP","durationMs":{"$output":"a","path":"$.ms"}}]}`)
	bad := h.run("SIMULATION", `{"steps":[{"type":"SLEEP","durationMs":{"$output":"a","path":"$.text"}}]}`)
	good.Parents = parentsOf(t, parent)
	bad.Parents = good.Parents
	h.order(good, bad)
	if e := h.outcome(good); e.Type() != jobevent.TypeCompleted {
		t.Errorf("it ends as %s", e.Data())
	}
	if failed := h.failed(bad); failed.ErrorCode != "WORKER.INVALID_PAYLOAD" || failed.Retryable {
		t.Errorf("it ends as %+v", failed)
	}
}

func TestAHandlerHasTheEventOfItsJob(t *testing.T) {
	h := newFixture(t)
	h.more = map[string]handlers.Handler{"EVENT": func(_ context.Context, a *handlers.Attempt) (handlers.Result, error) {
		return handlers.Result{Output: a.Event}, nil
	}}
	h.start(nil)
	run := h.run("EVENT", `{}`)
	run.Event = json.RawMessage(`{"id":"1","source":"/shop"}`)
	h.order(run)
	if done, err := jobevent.DecodeAs[jobevent.Completed](h.outcome(run), jobevent.TypeCompleted); err != nil ||
		string(done.Output) != string(run.Event) {
		t.Errorf("it has the event %s, %v", done.Output, err)
	}
}
