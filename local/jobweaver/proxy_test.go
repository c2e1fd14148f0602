package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
)

// A load balancer in front of the gateway may wait for less time than the gateway holds an answer.
func TestACommandThatWaitsGoesOnAfterTheTimeoutOfAProxy(t *testing.T) {
	held := 0
	const batch = `{"batchId":"b1","flowId":"f1","status":"%","counts":{},"jobs":{},"finishedAt":$}`
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if wait := r.FormValue("wait"); wait != "" && wait != "0s" && wait != "0ms" {
			held++
			w.WriteHeader(http.StatusGatewayTimeout)
			_, _ = io.WriteString(w, "<html>504 Gateway Time-out</html>")
			return
		}
		status, at := "RUNNING", "null"
		if held > 1 {
			status, at = "COMPLETED", `"2026-01-02T03:04:05Z"`
		}
		answer := strings.NewReplacer("%", status, "$", at).Replace(batch)
		if strings.HasPrefix(r.URL.Path, "/api/jobs/") {
			answer = strings.Replace(ended, "%s", status, 1)
		}
		_, _ = io.WriteString(w, answer)
	}))
	defer gateway.Close()
	t.Setenv("JOBWEAVER_URL", gateway.URL)
	for _, args := range []string{"get j1 --wait 1m", "batch get b1 --wait", "flow get f1 --wait"} {
		held = 0
		if out, err := run(t, "", strings.Fields(args)...); cli.CodeOf(err) != 0 || held != 2 {
			t.Errorf("%s: %v after %d held requests\n%s", args, err, held, out)
		}
	}
}
