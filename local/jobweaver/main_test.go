package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
)

// gateway answers like a gateway, and records the requests.
type gateway struct {
	*httptest.Server
	asked []string
	body  []byte
}

func newGateway(t *testing.T, answers map[string]string) *gateway {
	t.Helper()
	g := &gateway{}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.asked = append(g.asked, r.Method+" "+r.URL.RequestURI())
		g.body, _ = io.ReadAll(r.Body)
		answer, ok := answers[r.Method+" "+r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			answer = `{"status":404,"errorCode":"API.JOB_NOT_FOUND","message":"there is no such job"}`
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(g.Close)
	t.Setenv("JOBWEAVER_URL", g.URL)
	return g
}

func run(t *testing.T, stdin string, args ...string) (out string, err error) {
	t.Helper()
	root := newRoot()
	var printed bytes.Buffer
	root.SetOut(&printed)
	root.SetErr(&printed)
	root.SetIn(strings.NewReader(stdin))
	root.SetArgs(args)
	err = cli.Execute(t.Context(), root)
	return printed.String(), err
}

const ended = `{"jobId":"j1","jobType":"T","queue":"default","status":"%s","attempt":1,"createdAt":"2026-01-02T03:04:05Z",
	"updatedAt":"2026-01-02T03:04:05Z","lastError":{"errorCode":"X","message":"bad \u001b[31mred"}}`

func TestWatchExitCodeShowsTheEndOfTheJob(t *testing.T) {
	for status, code := range map[string]int{"COMPLETED": 0, "FAILED": 1, "CANCELLED": 2} {
		newGateway(t, map[string]string{"GET /api/jobs/j1": strings.Replace(ended, "%s", status, 1)})
		out, err := run(t, "", "watch", "j1")
		var got cli.ExitCode
		errors.As(err, &got)
		if int(got) != code || (err == nil) != (code == 0) {
			t.Errorf("%s: %v", status, err)
		}
		if !strings.Contains(out, status) || strings.Contains(out, "\x1b") {
			t.Errorf("%s: printed %q", status, out)
		}
	}
}

func TestSubmitTakesAFileStandardInputOrFlags(t *testing.T) {
	g := newGateway(t, map[string]string{"POST /api/jobs": `{"jobId":"j1","traceId":"t","status":"PENDING"}`})
	file := filepath.Join(t.TempDir(), "job.json")
	if err := os.WriteFile(file, []byte(`{"jobType":"A"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		stdin string
		args  []string
		want  string
	}{
		"file":  {"", []string{"submit", file}, `{"jobType":"A"}`},
		"stdin": {`{"jobType":"B"}`, []string{"submit", "-"}, `{"jobType":"B"}`},
		"flags": {
			"", []string{"submit", "--type", "C", "--payload", `{"x":1}`, "--delay", "2s", "--tag", "a", "--tag", "b", "--key", "k"},
			`{"delayMs":2000,"idempotencyKey":"k","jobType":"C","maxRetryCount":3,"payload":{"x":1},"priority":0,"tags":["a","b"]}`,
		},
	} {
		out, err := run(t, c.stdin, c.args...)
		if err != nil || out != "j1\n" || string(g.body) != c.want {
			t.Errorf("%s: printed %q, %v; sent %s", name, out, err, g.body)
		}
	}
	payload := filepath.Join(t.TempDir(), "payload.json")
	if err := os.WriteFile(payload, []byte(`{"x":1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, from := range []string{"@" + payload, "@-", "-"} {
		_, err := run(t, `{"x":1}`, "submit", "--type", "C", "--payload", from)
		if want := `{"jobType":"C","maxRetryCount":3,"payload":{"x":1},"priority":0}`; err != nil || string(g.body) != want {
			t.Errorf("--payload %s: %v; sent %s", from, err, g.body)
		}
	}
	for name, args := range map[string][]string{
		"nothing": {"submit"}, "both": {"submit", "--type", "C", file}, "bad payload": {"submit", "--type", "C", "--payload", "{"},
		"no file": {"submit", file + "x"},
	} {
		if _, err := run(t, "", args...); err == nil {
			t.Errorf("%s was submitted", name)
		}
	}
}

func TestBatchPrintsTheRefusedJobs(t *testing.T) {
	newGateway(t, map[string]string{"POST /api/jobs/batch": `{"results":[{"status":202,"jobId":"j1"},
		{"status":400,"error":{"status":400,"errorCode":"API.INVALID_JOB_REQUEST","message":"no"}}]}`})
	out, err := run(t, `{"jobs":[{},{}]}`, "submit", "-")
	if out != "job 1 refused: 400 API.INVALID_JOB_REQUEST: no\nj1\n1 of 2 jobs refused\n" || cli.CodeOf(err) != cli.ExitRefused {
		t.Errorf("got %q, %v", out, err)
	}
}

func TestListFiltersAndPrintsTheNextPage(t *testing.T) {
	g := newGateway(t, map[string]string{
		"GET /api/jobs": `{"jobs":[` + strings.Replace(ended, "%s", "FAILED", 1) + `],"nextCursor":"abc"}`,
	})
	out, err := run(t, "", "list", "--status", "FAILED", "--limit", "1")
	if err != nil || !strings.Contains(out, "j1") || !strings.Contains(out, "--cursor abc") {
		t.Errorf("got %q, %v", out, err)
	}
	if g.asked[0] != "GET /api/jobs?limit=1&status=FAILED" {
		t.Errorf("asked %q", g.asked)
	}
}

func TestOutputIsJSONIfRequested(t *testing.T) {
	newGateway(t, map[string]string{"GET /api/jobs/j1": strings.Replace(ended, "%s", "FAILED", 1)})
	out, err := run(t, "", "get", "j1", "-o", "json")
	if err != nil || !json.Valid([]byte(out)) {
		t.Errorf("got %q, %v", out, err)
	}
	out, err = run(t, "", "get", "j1", "-o", "yaml")
	if err != nil || !strings.Contains(out, "\nstatus: FAILED\n") {
		t.Errorf("got %q, %v", out, err)
	}
}

func TestErrorOfTheAPIIsPrintedCompletely(t *testing.T) {
	newGateway(t, nil)
	for _, command := range []string{"get", "cancel", "retry", "watch"} {
		_, err := run(t, "", command, "nobody")
		if err == nil || !strings.Contains(err.Error(), "404 API.JOB_NOT_FOUND: there is no such job") {
			t.Errorf("%s: %v", command, err)
		}
	}
}
