package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// growing is a gateway with an operation that has ended at its fifth read.
func growing(t *testing.T) *httptest.Server {
	t.Helper()
	var looks atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, finished := int64(0), "null"
		if r.Method == http.MethodGet {
			if n = looks.Add(1); n == 5 {
				finished = `"2026-01-02T03:04:06Z"`
			}
		}
		fmt.Fprintf(w, `{"operationId":"o1","command":"retry","status":"RUNNING","createdAt":"2026-01-02T03:04:05Z","finishedAt":%s,
			"progress":{"matched":%d,"asked":%d,"applied":%d,"refused":0,"skipped":0}}`, finished, 100*n, 30*n, 20*n)
	}))
	t.Cleanup(server.Close)
	return server
}

// A redrive of 11,640 jobs once printed two lines in 86 s.
func TestOperationShowsItsProgress(t *testing.T) {
	t.Setenv("JOBWEAVER_URL", growing(t).URL)
	out, err := run(t, "", "retry", "--type", "A", "--wait")
	if err != nil || !strings.Contains(out, "retry: 80 of 400 jobs done, 120 asked\n") || strings.ContainsAny(out, "\r%") {
		t.Errorf("in a pipe: %v, printed %q", err, out)
	}
	t.Setenv("JOBWEAVER_URL", growing(t).URL)
	out, err = terminal(t, "", "", "retry", "--type", "A", "--wait")
	if err != nil || !strings.Contains(out, "/401, ") || !strings.Contains(out, "19%") || !strings.Contains(out, "OPERATION") {
		t.Errorf("on a terminal: %v, printed %q", err, out)
	}
}
