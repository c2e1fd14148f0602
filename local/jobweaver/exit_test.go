package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
)

// Every error but a usage error once had exit code 1, as if the job had failed.
func TestExitCodeDistinguishesAFailedJobFromOtherErrors(t *testing.T) {
	answers := map[string]string{"POST /api/jobs": `{"jobId":"failed"}`}
	for id, status := range map[string]string{"completed": "COMPLETED", "failed": "FAILED", "cancelled": "CANCELLED"} {
		answers["GET /api/jobs/"+id] = `{"jobId":"` + id + `","status":"` + status + `"}`
	}
	newGateway(t, answers)
	away := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
	t.Cleanup(away.Close)
	for args, want := range map[string]int{
		"watch completed": 0, "watch failed": cli.ExitFailed, "watch cancelled": cli.ExitCancelled, "submit - --watch": cli.ExitFailed,
		"submit - --wait 1m": cli.ExitFailed, "submit - --wait 1m --watch": cli.ExitUsage, "submit - --wait -1m": cli.ExitUsage, "get failed --wait 5m": 0,
		"watch unknown": cli.ExitRefused, "get unknown": cli.ExitRefused, "cancel unknown": cli.ExitRefused,
		"get j --url http://127.0.0.1:1": cli.ExitUnreached, "watch j --url http://127.0.0.1:1": cli.ExitUnreached,
		"get j --url " + away.URL: cli.ExitUnreached,
		"get":                     cli.ExitUsage, "get a b": cli.ExitUsage, "gte j": cli.ExitUsage, "topics fill": cli.ExitUsage, "keyset nonsense": cli.ExitUsage, "topics": 0, "completion": 0, "completion tcsh": cli.ExitUsage, "get j --flag": cli.ExitUsage, "list --limit": cli.ExitUsage,
		"get j --url localhost:8080": cli.ExitUsage, "get j --url ftp://x": cli.ExitUsage, "get j --url http://": cli.ExitUsage,
	} {
		if _, err := run(t, "{}", strings.Fields(args)...); cli.CodeOf(err) != want {
			t.Errorf("%s: exit code %d: %v", args, cli.CodeOf(err), err)
		}
	}
}

// A restart of the gateway once ended watch and submit --watch at once.
func TestWatchSurvivesARestartOfTheGateway(t *testing.T) {
	for _, args := range []string{"submit - --watch", "watch j1"} {
		var asked atomic.Int32
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				_, _ = w.Write([]byte(`{"jobId":"j1"}`))
				return
			}
			switch asked.Add(1) {
			case 1, 4:
				_, _ = w.Write([]byte(`{"jobId":"j1","status":"RUNNING"}`))
			case 2, 5:
				w.Header().Set("Content-Length", "100")
				_, _ = w.Write([]byte("{"))
				_ = http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler) // like a gateway that is killed
			case 3:
				w.WriteHeader(http.StatusServiceUnavailable)
			default:
				_, _ = w.Write([]byte(`{"jobId":"j1","status":"COMPLETED"}`))
			}
		}))
		t.Cleanup(server.Close)
		out, err := run(t, "{}", append(strings.Fields(args), "--url", server.URL)...)
		if err != nil || !strings.Contains(out, "COMPLETED") || strings.Count(out, "the gateway is away, trying again") != 2 {
			t.Errorf("%s: %v, printed %s", args, err, out)
		}
	}
}

func TestSubmitWaitsNoLongerThanItsTimeout(t *testing.T) {
	g := newGateway(t, map[string]string{"POST /api/jobs": `{"jobId":"j1"}`, "GET /api/jobs/j1": `{"jobId":"j1","status":"RUNNING"}`})
	out, err := run(t, "{}", "submit", "-", "--wait", "300ms")
	if cli.CodeOf(err) != cli.ExitNotYet || !strings.Contains(out, "RUNNING") || len(g.asked) < 3 {
		t.Errorf("%v, printed %q, asked %q", err, out, g.asked)
	}
}

func TestAURLWithoutASchemeIsAUsageError(t *testing.T) {
	for _, url := range []string{"127.0.0.1:21000", "localhost:21000", "gateway", "[::1]:21000", "http://", "ftp://gateway"} {
		for _, args := range []string{"list", "submit --type X --payload 1", "get j1 --wait 1s", "stats"} {
			_, err := run(t, "", append(strings.Fields(args), "--url", url)...)
			if cli.CodeOf(err) != cli.ExitUsage || !strings.Contains(fmt.Sprint(err), "URL") || strings.Contains(fmt.Sprint(err), "parse") {
				t.Errorf("%s of %s: exit %d, %v", args, url, cli.CodeOf(err), err)
			}
		}
	}
}

// A script that asks for JSON gets JSON, even for errors.
func TestErrorIsJSONWithOutputJSON(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"status":400,"errorCode":"API.INVALID_JOB_REQUEST","message":"no \u001b[2J","traceId":"t1",
			"details":[{"path":"limit","message":"must be an integer"}]}`))
	}))
	t.Cleanup(server.Close)
	for args, want := range map[string]string{
		"list -o json": `{"status":400,"errorCode":"API.INVALID_JOB_REQUEST","message":"no \u001b[2J","traceId":"t1",` +
			`"details":[{"path":"limit","message":"must be an integer"}],"exitCode":3}`,
		"get -o json":                 `{"message":"wrong number of arguments (0): jobweaver get ID [flags]","exitCode":64}`,
		"list -o name":                "jobweaver: 400 API.INVALID_JOB_REQUEST",
		"operations abort j1 -o json": `{"status":400`,
	} {
		root := newRoot()
		root.SetArgs(append([]string{"--url", server.URL}, strings.Fields(args)...))
		err := cli.Execute(t.Context(), root)
		var printed, got bytes.Buffer
		cli.PrintError(&printed, cli.FormatOf(root), err)
		if strings.HasPrefix(want, "{") {
			if err := json.Compact(&got, printed.Bytes()); err != nil {
				t.Errorf("%s: %v", args, err)
			}
		} else {
			got = printed
		}
		if !strings.HasPrefix(got.String(), want) {
			t.Errorf("%s: printed %s", args, printed.String())
		}
	}
}
