package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// function makes an output of an event. A refusal means that the event is invalid and the attempt is not retried; after
// any other error the event is sent again.
type function func(event cloudevents.Event) (output any, err error)

type refusal struct {
	Code    string `json:"errorCode"`
	Message string `json:"message"`
}

func (r refusal) Error() string { return r.Code + ": " + r.Message }

// places limits how many events are handled at once. Further ones are answered with 503 and Retry-After.
var places = make(chan struct{}, number(os.Getenv("AT_ONCE"), 8))

// now answers an event with the result of f.
func now(f function) http.Handler {
	return receive(func(w http.ResponseWriter, _ *http.Request, event cloudevents.Event) func() {
		output, err := f(event)
		var refused refusal
		switch {
		case errors.As(err, &refused):
			answer(w, http.StatusBadRequest, refused)
		case err != nil:
			answer(w, http.StatusInternalServerError, refusal{"FUNCTION.FAILED", err.Error()})
		default:
			answer(w, http.StatusOK, output)
		}
		return nil
	})
}

// receive passes the event of a request to take. After the response it runs the function that take returned, if any.
func receive(take func(http.ResponseWriter, *http.Request, cloudevents.Event) (after func())) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case places <- struct{}{}:
		default:
			w.Header().Set("Retry-After", "1")
			answer(w, http.StatusServiceUnavailable, refusal{"FUNCTION.BUSY", "all places are taken"})
			return
		}
		var after func()
		defer func() {
			if after == nil {
				<-places
				return
			}
			go func() {
				defer func() { <-places }()
				after()
			}()
		}()
		event, status, err := read(w, r)
		if err != nil {
			answer(w, status, refusal{"FUNCTION.BAD_REQUEST", err.Error()})
			return
		}
		after = take(w, r, *event)
	})
}

// read returns the event of a request, or an error and its status.
func read(w http.ResponseWriter, r *http.Request) (event *cloudevents.Event, status int, err error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		return nil, http.StatusRequestEntityTooLarge, err
	}
	if err := verify(r.Header, body); err != nil {
		return nil, http.StatusUnauthorized, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if event, err = cloudevents.NewEventFromHTTPRequest(r); err == nil {
		err = event.Validate()
	}
	return event, http.StatusBadRequest, err
}

// verify checks the signature with WEBHOOK_SECRET, if that is set.
func verify(header http.Header, body []byte) error {
	secret := os.Getenv("WEBHOOK_SECRET")
	if secret == "" {
		return nil
	}
	hook, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		return err
	}
	return hook.Verify(body, header)
}

func answer(w http.ResponseWriter, status int, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text) // the client may have disconnected
}

// serve listens until a signal, and then finishes the events that it has begun.
func serve() {
	server := &http.Server{Addr: net.JoinHostPort(os.Getenv("HOST"), cmp.Or(os.Getenv("PORT"), "8080"))}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		stop := make(chan os.Signal, 1)
		signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
		<-stop
		_ = server.Shutdown(context.Background()) // waits for open requests
	}()
	slog.Info("listening", "address", server.Addr)
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		slog.Error("cannot listen", "error", err)
		os.Exit(1)
	}
	<-stopped
	for range cap(places) { // waits for callbacks
		places <- struct{}{}
	}
}

func number(text string, otherwise int) int {
	if n, err := strconv.Atoi(text); err == nil && n > 0 {
		return n
	}
	return otherwise
}
