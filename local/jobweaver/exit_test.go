package main

import (
	"bytes"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// ux 8: everything but a usage error was 1, as if the job had failed.
func TestTheExitCodeTellsAFailedJobFromOtherTrouble(t *testing.T) {
	answers := map[string]string{"POST /api/jobs": `{"jobId":"failed"}`}
	for id, status := range map[string]string{"completed": "COMPLETED", "failed": "FAILED", "cancelled": "CANCELLED"} {
		answers["GET /api/jobs/"+id] = `{"jobId":"` + id + `","status":"` + status + `"}`
	}
	newGateway(t, answers)
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := nobody.Close(); err != nil {
		t.Fatal(err)
	}
	away := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
	t.Cleanup(away.Close)
	for args, want := range map[string]int{
		"watch completed": 0, "watch failed": exitFailed, "watch cancelled": exitCancelled, "submit - --watch": exitFailed,
		"submit - --wait 1m": exitFailed, "submit - --wait 1m --watch": exitUsage, "get failed --wait 5m": 0,
		"watch unknown": exitRefused, "get unknown": exitRefused, "cancel unknown": exitRefused,
		"get j --url http://" + nobody.Addr().String(): exitUnreached, "watch j --url http://" + nobody.Addr().String(): exitUnreached,
		"get j --url " + away.URL: exitUnreached,
		"get":                     exitUsage, "get a b": exitUsage, "gte j": exitUsage, "topics fill": exitUsage, "keyset nonsense": exitUsage, "topics": 0, "get j --flag": exitUsage, "list --limit": exitUsage,
		"get j --url localhost:8080": exitUsage, "get j --url ftp://x": exitUsage, "get j --url http://": exitUsage,
	} {
		if _, err := run(t, "{}", strings.Fields(args)...); codeOf(err) != want {
			t.Errorf("%s: exit code %d: %v", args, codeOf(err), err)
		}
	}
}

// ux 8: a restart of the gateway ended watch and submit --watch at once.
func TestWatchOutlivesARestartOfTheGateway(t *testing.T) {
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
				panic(http.ErrAbortHandler) // as a gateway that is killed
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

func TestSubmitWaitsNoLongerThanItIsTold(t *testing.T) {
	g := newGateway(t, map[string]string{"POST /api/jobs": `{"jobId":"j1"}`, "GET /api/jobs/j1": `{"jobId":"j1","status":"RUNNING"}`})
	out, err := run(t, "{}", "submit", "-", "--wait", "300ms")
	if codeOf(err) != exitNotYet || !strings.Contains(out, "RUNNING") || len(g.asked) < 3 {
		t.Errorf("%v, printed %q, asked %q", err, out, g.asked)
	}
}

// A script that asks for JSON gets JSON, whatever happens.
func TestAnErrorIsJSONWhereJSONIsAskedFor(t *testing.T) {
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
		err := execute(t.Context(), root)
		var printed, got bytes.Buffer
		printError(&printed, formatOf(root), err)
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
