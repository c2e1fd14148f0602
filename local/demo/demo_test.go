package demo_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/jobweaver/jobweaver/local/demo"
	"github.com/jobweaver/jobweaver/shared/client"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// In a folder whose queue is paused, the demo once printed PENDING and nothing more, without end.
func TestDemoGivesUpOnJobsThatNeverStart(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/webhook-secrets", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{}`) })
	accept := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"jobId":"j1"}`) }
	mux.HandleFunc("POST /api/jobs", accept)
	mux.HandleFunc("POST /events", accept)
	mux.HandleFunc("PUT /api/alerts/demo", accept)
	mux.HandleFunc("POST /api/alerts/demo/test", accept)
	mux.HandleFunc("GET /api/jobs/j1", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"jobId":"j1","status":"PENDING","blockedBy":[{"kind":"pause","id":"queue:default"}]}`)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	var out strings.Builder
	err := demo.Run(t.Context(), client.New(server.URL, ""), demo.Installation{Patience: 300 * time.Millisecond}, &out)
	if !errors.Is(err, demo.ErrUnexpected) {
		t.Errorf("it ended with %v", err)
	}
	for _, want := range []string{
		"PENDING    attempt 0 waits for queue default, which is paused",
		"WRONG: gave up: nothing happened for too long (300ms); it waits for queue default, which is paused",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it did not print %q:\n%s", want, out.String())
		}
	}
}
