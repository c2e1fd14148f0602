package main

import (
	"strings"
	"testing"
)

// A script gets the numbers of the API unchanged, in the same order.
func TestJSONOutputIsTheResponseOfTheAPI(t *testing.T) {
	const job = `{"jobId":"j1","payload":{"z":12345678901234567890,"a":1.10,"m":1e400,"html":"\u003cb\u003e"},"empty":{},"status":"FAILED"}`
	const want = `{
  "jobId": "j1",
  "payload": {
    "z": 12345678901234567890,
    "a": 1.10,
    "m": 1e400,
    "html": "<b>"
  },
  "empty": {},
  "status": "FAILED"
}
`
	for _, args := range []string{"get j1", "watch j1", "list", "submit -", "submit - --watch"} {
		newGateway(t, map[string]string{"GET /api/jobs/j1": job, "GET /api/jobs": job, "POST /api/jobs": job})
		out, _ := run(t, "{}", append(strings.Fields(args), "-o", "json")...) // watch returns the end of the job as an error
		if out != want {
			t.Errorf("%s: printed %s", args, out)
		}
	}
}

// Numbers without units, in random order, cannot be read.
func TestStatsHaveUnitsAndTheShortestWindowFirst(t *testing.T) {
	newGateway(t, map[string]string{"GET /api/stats": `{"asOf":"2026-01-02T03:04:05Z",
		"throughput":{"perSecond":{"1h":{},"5m":{},"1m":{}}},"latency":{"5m":{"run":{"p50Ms":0.25,"p95Ms":999.96,"p99Ms":87029.4}}}}`})
	out, err := run(t, "", "stats")
	minute, five, hour := strings.Index(out, "last 1m"), strings.Index(out, "last 5m"), strings.Index(out, "last 1h")
	if err != nil || minute < 0 || minute > five || five > hour {
		t.Errorf("%v, printed %s", err, out)
	}
	for _, want := range []string{"run 300µs 1s 1m27.03s", "waiting jobs as of 2026-01-02"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in %s", want, out)
		}
	}
}

func TestLagThatTheGatewayDoesNotKnowIsAnErrorWithTheReasons(t *testing.T) {
	newGateway(t, map[string]string{"GET /api/lag": `{"at":"2026-01-02T03:04:05Z","topics":null}`})
	if out, err := run(t, "", "lag"); err == nil || !strings.Contains(err.Error(), "the brokers do not answer") || out != "" {
		t.Errorf("printed %q, %v", out, err)
	}
}

// The output of --output name is the input of other commands.
func TestNamesAreArgumentsOfOtherCommands(t *testing.T) {
	answers := map[string]string{
		"GET /api/jobs":           `{"jobs":[{"jobId":"j1","tags":["x"]},{"jobId":"j\u001b2"}],"nextCursor":null}`,
		"GET /api/jobs/dead":      `{"jobs":[],"nextCursor":null}`,
		"GET /api/jobs/j1":        `{"jobId":"j1","history":[{"by":"x"}],"attempts":[]}`,
		"POST /api/jobs":          `{"jobId":"j9"}`,
		"POST /api/jobs/batch":    `{"results":[{"jobId":"j1"},{"error":{"status":400}},{"jobId":"j2"}]}`,
		"GET /api/controls":       `{"controls":[{"kind":"queue","name":"default"}]}`,
		"GET /api/operations":     `{"operations":[{"operationId":"o1","status":"RUNNING"}]}`,
		"GET /api/schedules":      `{"schedules":[{"name":"nightly","lastJobId":"j1"}]}`,
		"GET /api/job-types":      `{"jobTypes":[{"name":"EMAIL"}],"acceptsAny":true}`,
		"GET /api/workers":        `{"workers":[{"workerId":"w1"}]}`,
		"GET /api/keys":           `{"keys":[{"keyId":"k1","name":"shop"}]}`,
		"GET /api/stats":          `{"types":[{"jobType":"A"}]}`,
		"DELETE /api/schedules/s": ``,
	}
	for args, want := range map[string]string{
		"list": "j1\nj\uFFFD2\n", "dead": "", "get j1": "j1\n", "submit {}": "j9\n", "controls": "queue default\n",
		"operations list": "o1\n", "schedules list": "nightly\n", "types": "EMAIL\n", "workers": "w1\n", "keys list": "k1\n",
		"schedules delete s": "",
	} {
		newGateway(t, answers)
		out, err := run(t, "{}", append(strings.Fields(strings.ReplaceAll(args, "{}", "-")), "-o", "name")...)
		if err != nil || out != want {
			t.Errorf("%s: printed %q, %v", args, out, err)
		}
	}
	if out, err := run(t, "", "stats", "-o", "name"); err == nil {
		t.Errorf("stats have names: %q", out)
	}
}
