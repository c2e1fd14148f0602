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

// later answers 202, and calls back with the result of f.
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

// outcome makes the body of a callback from the result of a function.
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

// callBack sends a callback about an attempt. If that fails, it repeats the callback after 1, 2, 4 … seconds: a
// callback that arrives twice counts once.
func callBack(to http.Header, event cloudevents.Event, tries int, callback map[string]any) {
	callback["jobId"] = event.Subject()
	callback["attempt"], _ = types.ToInteger(event.Extensions()["attempt"])
	body, err := json.Marshal(callback)
	if err != nil {
		slog.Error("the output of the function cannot be encoded", "event", event.ID(), "error", err)
		return
	}
	for pause := time.Second; ; pause *= 2 {
		if err = post(to, body); err == nil {
			return
		}
		slog.Warn("callback failed", "event", event.ID(), "error", err)
		if tries--; tries == 0 {
			return // the attempt fails at its deadline, and the job is retried
		}
		time.Sleep(pause)
	}
}

// post returns an error if another try may help.
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
	reason, _ := io.ReadAll(io.LimitReader(response.Body, 4096))
	if response.StatusCode >= 500 || response.StatusCode == http.StatusTooManyRequests {
		return fmt.Errorf("%s: %s", response.Status, reason)
	}
	if response.StatusCode >= 300 {
		slog.Error("callback refused", "status", response.Status, "reason", string(reason))
	}
	return nil
}
