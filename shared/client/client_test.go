package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/jobweaver/jobweaver/shared/client"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// busy answers with a status this many times, and then accepts.
func busy(t *testing.T, status, times int, retryAfter string, seen func()) (*client.Client, *atomic.Int32) {
	t.Helper()
	asked := new(atomic.Int32)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); string(body) != "{}" {
			t.Errorf("asked with %q", body)
		}
		defer seen()
		if int(asked.Add(1)) <= times {
			if retryAfter != "" {
				w.Header().Set("Retry-After", retryAfter)
			}
			w.WriteHeader(status)
			return
		}
		_, _ = io.WriteString(w, `{"jobId": "a"}`)
	}))
	t.Cleanup(server.Close)
	return client.New(server.URL, ""), asked
}

func TestTheClientRetriesWhenTheGatewayAsksForIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status, times int
		retryAfter    string
		asked         int
		good          bool
	}{
		"once":                          {http.StatusTooManyRequests, 1, "0", 2, true},
		"again and again":               {http.StatusTooManyRequests, 1000, "0", 10, false},
		"in an hour":                    {http.StatusTooManyRequests, 1, "3600", 1, false},
		"in longer than there are days": {http.StatusTooManyRequests, 1, "9223372036854775807", 1, false},
		"at no time":                    {http.StatusTooManyRequests, 1, "", 1, false},
		"in nonsense":                   {http.StatusTooManyRequests, 1, "soon", 1, false},
		"in the past":                   {http.StatusTooManyRequests, 1, "-1", 1, false},
		"from one that may have acted":  {http.StatusServiceUnavailable, 1, "0", 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gateway, asked := busy(t, c.status, c.times, c.retryAfter, func() {})
			accepted, err := gateway.SubmitJSON(t.Context(), []byte("{}"))
			if (err == nil) != c.good || c.good != (accepted.JobID == "a") || int(asked.Load()) != c.asked {
				t.Errorf("got %+v, %v after %d tries", accepted, err, asked.Load())
			}
			if refused := (*client.Error)(nil); err != nil && (!errors.As(err, &refused) || refused.Status != c.status) {
				t.Errorf("got %v, want status %s", err, strconv.Itoa(c.status))
			}
		})
	}
}

func TestAStoppedCallerDoesNotWaitForTheGateway(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	gateway, _ := busy(t, http.StatusTooManyRequests, 1, "25", cancel)
	if _, err := gateway.SubmitJSON(ctx, []byte("{}")); err == nil {
		t.Error("it was accepted")
	}
}

// When a redirect leads to another host, net/http removes the header Authorization but no other header.
func TestTheClientFollowsNoRedirect(t *testing.T) {
	t.Parallel()
	for _, status := range []int{
		http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect,
	} {
		stranger := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			t.Errorf("after %d: another host has %v", status, r.Header)
		}))
		t.Cleanup(stranger.Close)
		gateway := httptest.NewServer(http.RedirectHandler(stranger.URL+"/taken", status))
		t.Cleanup(gateway.Close)
		_, err := client.New(gateway.URL, "the key").Do(t.Context(), http.MethodPost, "/api/jobs/callback",
			"application/json", []byte("{}"), nil, "X-Callback-Secret", "the secret")
		refused := (*client.Error)(nil)
		if !errors.As(err, &refused) || refused.Status != status || !strings.Contains(err.Error(), stranger.URL) {
			t.Errorf("after %d: %v", status, err)
		}
	}
}

func TestAnErrorNamesAFieldOnce(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"status":400,"errorCode":"A","message":"invalid job request: payload.n is not a known field",
			"details":[{"path":"payload.n","message":"is not a known field"}]}`: "400 A: invalid job request: payload.n is not a known field",
		`{"status":400,"errorCode":"A","message":"invalid job request",
			"details":[{"path":"a","message":"is wrong"},{"path":"","message":"is not valid JSON"}]}`: "400 A: invalid job request\n  a: is wrong\n  is not valid JSON",
	} {
		var e client.Error
		if err := json.Unmarshal([]byte(body), &e); err != nil || e.Error() != want {
			t.Errorf("%q, %v", e.Error(), err)
		}
	}
}
