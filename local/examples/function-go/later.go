package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/cloudevents/sdk-go/v2/types"
)

// later answers 202, and calls back with what f makes of the event.
func later(f function) http.Handler {
	return receive(func(w http.ResponseWriter, r *http.Request, event cloudevents.Event) func() {
		to := r.Header
		if to.Get("X-Callback-Url") == "" {
			answer(w, http.StatusBadRequest, refusal{"FUNCTION.NO_CALLBACK", "there is no X-Callback-Url"})
			return nil
		}
		w.WriteHeader(http.StatusAccepted)
		return func() {
			callBack(to, event, 1, map[string]any{
				"status": "PROGRESS", "progress": map[string]any{"percent": 50, "message": "counting"},
			})
			callBack(to, event, 6, outcome(f(event)))
		}
	})
}

// outcome is a callback's way to say it.
func outcome(output any, err error) map[string]any {
	var refused refusal
	switch {
	case errors.As(err, &refused):
		return map[string]any{
			"status": "FAILED", "errorCode": refused.Code, "message": refused.Message, "retryable": false,
		}
	case err != nil:
		return map[string]any{
			"status": "FAILED", "errorCode": "FUNCTION.FAILED", "message": err.Error(), "retryable": true,
		}
	}
	return map[string]any{"status": "COMPLETED", "output": output}
}

// callBack says a word about an attempt, and again after 1, 2, 4 … seconds where it was not heard: a word
// that comes twice counts once.
func callBack(to http.Header, event cloudevents.Event, tries int, word map[string]any) {
	word["jobId"] = event.Subject()
	word["attempt"], _ = types.ToInteger(event.Extensions()["attempt"])
	body, err := json.Marshal(word)
	if err != nil {
		slog.Error("what the function made is no JSON", "event", event.ID(), "error", err)
		return
	}
	for pause := time.Second; ; pause *= 2 {
		if err = post(to, body); err == nil {
			return
		}
		slog.Warn("nobody heard a callback", "event", event.ID(), "error", err)
		if tries--; tries == 0 {
			return // at its deadline the attempt fails, and the job's retries are for that
		}
		time.Sleep(pause)
	}
}

// post gives an error where trying again may help.
func post(to http.Header, body []byte) error {
	request, err := http.NewRequest(http.MethodPost, to.Get("X-Callback-Url"), bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Callback-Secret", to.Get("X-Callback-Secret"))
	response, err := (&http.Client{Timeout: 30 * time.Second}).Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	said, _ := io.ReadAll(io.LimitReader(response.Body, 4096))
	if response.StatusCode >= 500 || response.StatusCode == http.StatusTooManyRequests {
		return fmt.Errorf("%s: %s", response.Status, said)
	}
	if response.StatusCode >= 300 {
		slog.Error("a callback is refused for good", "status", response.Status, "said", string(said))
	}
	return nil
}
