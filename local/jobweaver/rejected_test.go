package main

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
)

const oneRejected = `{"id":"r1","function":"ingest","topic":"job-created","partition":1,"offset":7,"reason":"undecodable: no \u001b[31mevent",
	"bytes":9,"truncated":false,"traceId":null,"recordedAt":"2026-11-23T08:00:00Z","rejectedAt":"2026-11-23T08:00:01Z",
	"redriveRefusal":null,"redrivenAt":null,"redrivenBy":null,"key":{"encoding":"text","data":"k"},
	"headers":[{"name":"who","value":{"encoding":"text","data":"stranger"}},{"name":"empty","value":null}],
	"value":{"encoding":"base64","data":"/yBnYXJiYWdl"}}`

func someRejected() map[string]string {
	return map[string]string{
		"GET /api/rejected": `{"rejected":[` + oneRejected + `,{"id":"r2","function":"ingest","topic":"job-status","reason":"x",
			"rejectedAt":"2026-11-23T08:00:01Z","redriveRefusal":"it would take the place of another"}],"nextCursor":null}`,
		"GET /api/rejected/r1": oneRejected, "DELETE /api/rejected/r1": oneRejected, "DELETE /api/rejected/r2": oneRejected,
		"POST /api/rejected/r1/redrive": oneRejected,
	}
}

func TestRejectedRecordsAreListedShownRedrivenAndDeleted(t *testing.T) {
	for args, c := range map[string]struct{ asked, printed string }{
		"rejected list --topic job-created --function ingest --redriven false --limit 2": {
			"GET /api/rejected?function=ingest&limit=2&redriven=false&topic=job-created", "job-created/1@7",
		},
		"rejected list --since 2026-11-23T08:00:00Z": {"GET /api/rejected?since=2026-11-23T08%3A00%3A00Z", "cannot be"},
		"rejected list -o name":                      {"GET /api/rejected?", "r1\nr2\n"},
		"rejected show r1":                           {"GET /api/rejected/r1", "header who"},
		"rejected show r1 -o json":                   {"GET /api/rejected/r1", `"data": "/yBnYXJiYWdl"`},
		"rejected redrive r1":                        {"POST /api/rejected/r1/redrive", "job-created/1@7 is redriven\n"},
		"rejected redrive r1 -o name":                {"POST /api/rejected/r1/redrive", "r1\n"},
		"rejected delete r1":                         {"DELETE /api/rejected/r1", "job-created/1@7 is deleted\n"},
		"rejected delete r1 r2":                      {"DELETE /api/rejected/r2", "2 rejected records deleted\n"},
		"rejected delete --topic job-created --yes":  {"DELETE /api/rejected/r2", "2 rejected records deleted\n"},
		"rejected delete --all --yes -o name":        {"DELETE /api/rejected/r2", "r1\nr2\n"},
		"rejected delete --all --dry-run":            {"GET /api/rejected?limit=200", "2 rejected records would be deleted; nothing was done\n"},
		"rejected redrive --topic x --dry-run":       {"GET /api/rejected?limit=200&redriven=false&topic=x", "1 rejected record would be redriven"},
		"rejected redrive --all --dry-run -o name":   {"GET /api/rejected?limit=200&redriven=false", "r1\n"},
	} {
		g := newGateway(t, someRejected())
		out, err := run(t, "", strings.Fields(args)...)
		if last := g.asked[len(g.asked)-1]; err != nil || last != c.asked || !strings.Contains(out, c.printed) || strings.Contains(out, "\x1b") {
			t.Errorf("%s: asked %s, printed %q, %v", args, last, out, err)
		}
	}
	g := newGateway(t, someRejected())
	out, _ := run(t, "", "rejected", "show", "r1")
	for _, want := range []string{"/yBnYXJiYWdl (base64)", "stranger", "header empty     -", "key              k"} {
		if !strings.Contains(out, want) {
			t.Errorf("printed %q, asked %v", out, g.asked)
		}
	}
}

func TestRefusedRecordDoesNotStopTheOthers(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path)
		switch {
		case r.Method == http.MethodGet:
			_, _ = w.Write([]byte(`{"rejected":[{"id":"a"},{"id":"b"},{"id":"c"},{"id":"d"}],"nextCursor":null}`))
		case strings.Contains(r.URL.Path, "/d/"):
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`{"status":403,"errorCode":"API.FORBIDDEN","message":"no more"}`))
		case strings.Contains(r.URL.Path, "/b/"):
			_, _ = w.Write([]byte(oneRejected))
		default:
			w.WriteHeader(http.StatusConflict)
			_, _ = w.Write([]byte(`{"status":409,"errorCode":"API.INVALID_STATE_TRANSITION","message":"the record is not redriven: it was too large"}`))
		}
	}))
	t.Cleanup(server.Close)
	t.Setenv("JOBWEAVER_URL", server.URL)
	out, err := run(t, "", "rejected", "redrive", "a", "b", "c")
	if cli.CodeOf(err) != cli.ExitRefused || out != "1 rejected record redriven\n  2 refused: it was too large\n" || len(asked) != 3 {
		t.Errorf("%v, printed %q, asked %v", err, out, asked)
	}
	out, err = run(t, "", "rejected", "redrive", "--topic", "job-created")
	if cli.CodeOf(err) != cli.ExitRefused || err == nil || !strings.Contains(err.Error(), "no more") || !strings.HasPrefix(out, "1 rejected record redriven\n") {
		t.Errorf("%v, printed %q", err, out)
	}
}

func TestCommandForRejectedRecordsAsksOnATerminal(t *testing.T) {
	for _, c := range []struct {
		args, prompt, typed string
		code                int
		done                bool
	}{
		{"rejected delete --all", "delete 2 rejected records? [y/N] ", "y\n", 0, true},
		{"rejected delete --topic x", "delete 2 rejected records? [y/N] ", "n\n", cli.ExitInterrupted, false},
		{"rejected redrive --all", "redrive 2 rejected records? [y/N] ", "\n", cli.ExitInterrupted, false},
		{"rejected redrive --all", "redrive 2 rejected records? [y/N] ", "^C", cli.ExitInterrupted, false},
		{"rejected delete --all --yes", "", "", 0, true},
	} {
		g := newGateway(t, someRejected())
		out, err := terminal(t, c.prompt, c.typed, strings.Fields(c.args)...)
		if cli.CodeOf(err) != c.code || !strings.Contains(out, c.prompt) || (len(g.asked) > 1) != c.done {
			t.Errorf("%s: %v, printed %q, asked %v", c.args, err, out, g.asked)
		}
	}
}

func TestScriptNeedsYesForManyRejectedRecords(t *testing.T) {
	for args, want := range map[string]string{
		"rejected delete --topic x": "--yes", "rejected redrive --all": "--yes", "rejected redrive": "--topic", "rejected delete": "--all",
		"rejected delete r1 --all": "either", "rejected delete --all --topic x --yes": "without another", "rejected redrive r1 --dry-run": "either",
		"rejected show": "arguments", "rejected list x": "arguments",
	} {
		g := newGateway(t, someRejected())
		_, err := run(t, "", strings.Fields(args)...)
		if cli.CodeOf(err) != cli.ExitUsage || !strings.Contains(err.Error(), want) || len(g.asked) > 0 {
			t.Errorf("%s: %v, asked %v", args, err, g.asked)
		}
	}
	g := newGateway(t, someRejected())
	if _, err := run(t, "", "rejected", "redrive", "--topic", "job-created"); cli.CodeOf(err) != cli.ExitRefused ||
		!slices.Contains(g.asked, "POST /api/rejected/r1/redrive") { // r2 does not exist
		t.Errorf("%v, asked %v", err, g.asked)
	}
}
