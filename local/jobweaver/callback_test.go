package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// A callback carries the secret of its attempt. It must not carry the API key, which would give its owner's rights to
// the server at that URL.
func TestCallbackIsSentWithoutTheAPIKey(t *testing.T) {
	asked := make(chan http.Header, 1)
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Header
		_, _ = w.Write([]byte("{}"))
	}))
	t.Cleanup(gateway.Close)
	t.Setenv("JOBWEAVER_URL", gateway.URL)
	t.Setenv("JOBWEAVER_API_KEY", "jw_key")
	t.Setenv("JOBWEAVER_API_KEY_FILE", "/there/is/none")
	t.Setenv("JOBWEAVER_CALLBACK_SECRET", "the secret")
	if _, err := run(t, "", "callback", "j1", "1", "completed"); err != nil {
		t.Fatal(err)
	}
	h := <-asked
	if h.Get("Authorization") != "" || h.Get("X-Api-Key") != "" || h.Get("X-Callback-Secret") != "the secret" {
		t.Errorf("it sent %v", h)
	}
}
