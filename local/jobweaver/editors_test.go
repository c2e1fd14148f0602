package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// Someone else changes each resource between its GET and its PUT.
func TestACommandOverwritesNoChangeThatItHasNotSeen(t *testing.T) {
	var version, refused atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		now := fmt.Sprintf(`W/"%d"`, version.Load())
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("ETag", now)
		switch {
		case r.Method == http.MethodGet:
			_, _ = io.WriteString(w, `{"name":"s","kind":"type","cron":"@daily","overlap":"allow","missed":"one","job":{"jobType":"A"}}`)
			version.Add(1)
		case r.Header.Get("If-Match") == now:
			_, _ = io.WriteString(w, `{}`)
		default:
			refused.Add(1)
			w.WriteHeader(http.StatusPreconditionFailed)
			_, _ = io.WriteString(w, `{"status":412,"errorCode":"API.PRECONDITION_FAILED","message":"it has changed"}`)
		}
	}))
	defer server.Close()
	t.Setenv("JOBWEAVER_URL", server.URL)
	for i, args := range []string{
		"limit type A --max-running 5", "limit type A --none", "limit fairnessKey k --weight 3", "schedules change s --cron @hourly",
	} {
		_, err := run(t, "", strings.Fields(args)...)
		if err == nil || !strings.Contains(err.Error(), "it has changed") || refused.Load() != int64(i+1) {
			t.Errorf("%s: %v, after %d refusals", args, err, refused.Load())
		}
	}
}
