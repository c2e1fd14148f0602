package handlers_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/shared/client/durable"
)

// savingAttempt returns an attempt, and a function that returns what its job has saved.
func savingAttempt(payload, saved string, refused error) (*handlers.Attempt, func() string) {
	a := newAttempt(2, payload)
	a.Checkpoint = durable.New(json.RawMessage(saved), func(_ int64, data json.RawMessage) error {
		if refused == nil {
			saved = string(data)
		}
		return refused
	})
	return a, func() string { return saved }
}

func TestAFunctionContinuesWhereItsLastAttemptEnded(t *testing.T) {
	t.Parallel()
	c := newCalls(t, "FUNCTION", callConfig())
	for name, w := range map[string]struct {
		status  int
		headers []string
		saved   string // afterwards; empty: nothing new
		code    string // of the failure
		snooze  time.Duration
		waits   bool
	}{
		"a failure":           {500, []string{"X-Checkpoint", `{"page": 8}`}, `{"page":8}`, "WORKER.CALL_FAILED", 0, false},
		"a final failure":     {400, []string{"X-Checkpoint", `8`}, `8`, "WORKER.CALL_FAILED", 0, false},
		"null":                {500, []string{"X-Checkpoint", `null`}, `null`, "WORKER.CALL_FAILED", 0, false},
		"a snooze":            {200, []string{"X-Checkpoint", `"ü😀"`, "X-Snooze-Ms", "1500"}, `"\u00fc\ud83d\ude00"`, "", 1500 * time.Millisecond, false},
		"a snooze only":       {204, []string{"X-Snooze-Ms", "1"}, ``, "", time.Millisecond, false},
		"202":                 {202, []string{"X-Checkpoint", `[]`}, `[]`, "", 0, true},
		"a snooze with 202":   {202, []string{"X-Snooze-Ms", "1"}, ``, "", time.Millisecond, false},
		"a failure's snooze":  {500, []string{"X-Snooze-Ms", "1"}, ``, "WORKER.CALL_FAILED", 0, false},
		"a completed attempt": {200, []string{"X-Checkpoint", `9`}, ``, "", 0, false},
		"not JSON":            {200, []string{"X-Checkpoint", `{`, "X-Snooze-Ms", "1"}, ``, "WORKER.INVALID_OUTPUT", 0, false},
		"not UTF-8":           {202, []string{"X-Checkpoint", "\"\xff\""}, ``, "WORKER.INVALID_OUTPUT", 0, false},
		"not JSON, failed":    {503, []string{"X-Checkpoint", `{`}, ``, "WORKER.CALL_FAILED", 0, false},
		"no time":             {200, []string{"X-Checkpoint", `9`, "X-Snooze-Ms", "soon"}, ``, "WORKER.INVALID_OUTPUT", 0, false},
		"a negative time":     {200, []string{"X-Snooze-Ms", "-1"}, ``, "WORKER.INVALID_OUTPUT", 0, false},
		"too long":            {200, []string{"X-Snooze-Ms", "2592000001"}, ``, "WORKER.INVALID_OUTPUT", 0, false},
		"large": {
			202, []string{"X-Checkpoint", `"` + strings.Repeat("x", 4094) + `"`}, `"` + strings.Repeat("x", 4094) + `"`, "", 0, true,
		},
		"too large":       {202, []string{"X-Checkpoint", `"` + strings.Repeat("x", 4095) + `"`}, ``, "WORKER.CHECKPOINT_TOO_LARGE", 0, false},
		"too large, then": {202, []string{"X-Checkpoint", `"` + strings.Repeat("ü", 700) + `"`}, ``, "WORKER.CHECKPOINT_TOO_LARGE", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := newReceiver(t, answerWith(w.status, "", "", w.headers...))
			a, saved := savingAttempt(`{"url": "`+server.URL+`"}`, `{"page": "7ü"}`, nil)
			result, err := c.handler(t.Context(), a)
			if got := server.only(t).Header.Get("X-Checkpoint"); got != `{"page":"7\u00fc"}` {
				t.Errorf("sent %q", got)
			}
			if w.saved == "" {
				w.saved = `{"page": "7ü"}`
			}
			if got := saved(); got != w.saved {
				t.Errorf("saved %s, want %s", got, w.saved)
			}
			if w.code != "" {
				if f := asFailure(t, result, err); f.Code != w.code {
					t.Errorf("failed with %+v, want %s", f, w.code)
				}
			} else if err != nil || result.Snooze != w.snooze || result.WaitFor > 0 != w.waits {
				t.Errorf("%+v, %v", result, err)
			}
		})
	}
}

func TestAFunctionWithoutACheckpointGetsNone(t *testing.T) {
	t.Parallel()
	server := newReceiver(t, answerWith(204, "", ""))
	c := newCalls(t, "FUNCTION", callConfig())
	for _, saved := range []string{"", "null"} {
		a, _ := savingAttempt(`{"url": "`+server.URL+`"}`, saved, nil)
		if _, err := c.handler(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	for _, got := range server.calls {
		if _, is := got.Header["X-Checkpoint"]; is {
			t.Errorf("sent %v", got.Header)
		}
	}
	if f := c.failure(`{"url": "` + server.URL + `", "headers": {"x_checkpoint": "1"}}`); f.Code != "WORKER.INVALID_PAYLOAD" {
		t.Errorf("a payload sends a checkpoint: %+v", f)
	}
}

func TestAFailureCountsThoughItsCheckpointCannotBeSaved(t *testing.T) {
	t.Parallel()
	c := newCalls(t, "FUNCTION", callConfig())
	for status, code := range map[int]string{http.StatusGone: "WORKER.CALL_FAILED", http.StatusAccepted: ""} {
		server := newReceiver(t, answerWith(status, "", "", "X-Checkpoint", "8"))
		a, _ := savingAttempt(`{"url": "`+server.URL+`"}`, "7", durable.ErrOver)
		result, err := c.handler(t.Context(), a)
		switch {
		case code == "" && err != durable.ErrOver: //nolint:errorlint // it is not wrapped
			t.Errorf("%+v, %v", result, err)
		case code != "" && asFailure(t, result, err).Code != code:
			t.Errorf("%+v, %v", result, err)
		}
	}
}
