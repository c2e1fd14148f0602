package handlers_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
)

func TestRetryAfterSetsTheDelay(t *testing.T) {
	t.Parallel()
	const year = 365 * 24 * time.Hour
	date := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC) // its clock may differ from this process's
	in := func(d time.Duration) string { return date.Add(d).Format(http.TimeFormat) }
	for i, c := range []struct {
		status    int
		after     string
		retryable bool
		want      time.Duration
	}{
		{503, "17", true, 17 * time.Second},
		{429, "17", true, 17 * time.Second},
		{503, "0", true, 0},
		{503, "", true, 0},
		{503, "soon", true, 0},
		{503, "-5", true, 0},
		{503, "1.5", true, 0},
		{429, "99999999999999999999", true, year},
		{429, "18446744073709551615", true, year},
		{429, "31536001", true, year},
		{503, in(90 * time.Second), true, 90 * time.Second},
		{503, in(-90 * time.Second), true, 0},
		{503, in(20 * year), true, year},
		{500, "17", true, 0},
		{404, "17", true, 0},
		{408, "", true, 0},
		{409, "", true, 0},
		{400, "17", false, 0},
		{401, "", false, 0},
		{403, "", false, 0},
		{410, "", false, 0},
		{422, "", false, 0},
	} {
		t.Run(fmt.Sprint(i, " ", c.status, " ", c.after), func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Date", date.Format(http.TimeFormat))
				if c.after != "" {
					w.Header().Set("Retry-After", c.after)
				}
				w.WriteHeader(c.status)
			}))
			t.Cleanup(server.Close)
			_, err := simulation(t, "127.0.0.0/8").Run(t.Context(),
				new(witness).attempt(1, fmt.Sprintf(`{"type": "HTTP_CALL", "url": %q}`, server.URL)))
			var failure *handlers.Failure
			if !errors.As(err, &failure) || failure.Retryable != c.retryable || failure.RetryAfter != c.want {
				t.Errorf("failed with %+v", failure)
			}
		})
	}
}

func TestRetryAfterWithoutADateUsesTheWorkersClock(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Date"] = nil // otherwise the server would add one
		w.Header().Set("Retry-After", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(server.Close)
	_, err := simulation(t, "127.0.0.0/8").Run(t.Context(),
		new(witness).attempt(1, fmt.Sprintf(`{"type": "HTTP_CALL", "url": %q}`, server.URL)))
	var failure *handlers.Failure
	if !errors.As(err, &failure) || failure.RetryAfter < 59*time.Minute || failure.RetryAfter > time.Hour {
		t.Errorf("failed with %+v", failure)
	}
}
