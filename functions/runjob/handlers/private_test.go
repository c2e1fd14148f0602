package handlers_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// A failure's message is stored with its job, for the job's readers. The worker's own log has other readers, so it must
// not quote payloads or answers.
func TestFailuresThatQuoteAPayloadAreNotLogged(t *testing.T) {
	t.Parallel()
	refuses := newReceiver(t, answerWith(404, "text/plain", "no"))
	cfg := callConfig()
	cfg.Email = handlers.EmailConfig{Host: "127.0.0.1", From: "a@b.example"}
	cfg.Report = handlers.ReportConfig{Bucket: "file://" + t.TempDir()}
	registry, err := handlers.Builtin(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(registry.Close)
	for jobType, payload := range map[string]string{
		"SIMULATION": `{"steps": [{"type": "HTTP_CALL", "url": "` + refuses.URL + `/?token=confidential"}]}`,
		"EMAIL":      `{"to": ["ada@example.org, confidential@example.org"], "subject": "s", "text": "t"}`,
		"REPORT":     `{"title": "T", "format": "csv", "columns": [{"name": "a", "total": "sum"}], "rows": [["confidential"]]}`,
		"FUNCTION":   `{"url": "` + refuses.URL + `/confidential"}`,
	} {
		run := jobevent.Run{JobID: uuid.New(), Attempt: 1, JobType: jobType, Payload: json.RawMessage(payload)}
		a := handlers.NewAttempt(run, uuid.New(), func(slog.Level, string) {}, func(jobevent.Progress) {})
		result, err := registry.Find(jobType)(t.Context(), a)
		failure := asFailure(t, result, err)
		if !failure.Private || !strings.Contains(failure.Message, "confidential") {
			t.Errorf("%s: %+v", jobType, failure)
		}
	}
}

// The gateway checks payloads first, so this happens only with a payload that the gateway did not check.
func TestADecodersErrorIsNotLogged(t *testing.T) {
	t.Parallel()
	registry, err := handlers.Builtin(callConfig())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(registry.Close)
	typed := handlers.Typed(func(context.Context, *handlers.Attempt, struct{ A int }) (any, error) { return nil, nil })
	for _, c := range []struct {
		run     handlers.Handler
		payload string
	}{
		{registry.Find("FUNCTION"), `{"url": "https://a.example/", "callbackTimeoutMs": 1, "confidential": 1}`},
		{registry.Find("EXTERNAL"), `{"url": "https://a.example/", "headers": {"confidential name": "x"}}`},
		{registry.Find("SIMULATION"), `{"steps": [], "confidential": 1}`},
		{typed, `{"confidential": 1}`},
	} {
		run := jobevent.Run{JobID: uuid.New(), Attempt: 1, Payload: json.RawMessage(c.payload)}
		result, err := c.run(t.Context(), handlers.NewAttempt(run, uuid.New(), nil, nil))
		failure := asFailure(t, result, err)
		if !failure.Private || !strings.Contains(failure.Message, "confidential") {
			t.Errorf("%s: %+v", c.payload, failure)
		}
	}
}
