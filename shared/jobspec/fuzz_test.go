package jobspec_test

import (
	"bytes"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/strictjson/jsontest"
)

var seeds = []string{
	full, own(`{"a": [1, -0.5e3, "\ud83d\ude00", null, true]}`), job(`"tags": ["a", "b"], "delayMs": 5`),
	job(`"retryPolicy": {"type": "list", "delaysMs": [1, 2]}`), steps(`{"type": "FAIL", "failAttempts": 2}`),
	own(`"\\u0000"`), own(`"\u0000"`), own(`1e400`), own("\"\xff\""), strings.Repeat("[", 200), `{"payload":`,
	`{"jobs": [{}, 1]}`, job(`"after": [` + id1 + `], "onDependencyFailure": "run"`), job(`"after": ["", {}, 1`),
	job(`"orderingKey": "a", "expiresAt": "9999-12-31T23:59:59.999999999-23:59"`),
}

// FuzzDecode gives one text to all that may hold a job: a request, a batch of them, and what a worker reads of one.
func FuzzDecode(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
		f.Add([]byte(`{"jobs": [` + s + `]}`))
	}
	f.Add([]byte(`{"steps":[{"type":"HTTP_CALL","url":"http://[::1]/%zz","method":"GET"}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		checkBatch(t, body)
		checkSimulation(t, body)
		sent := bytes.Clone(body)
		req, err := jobspec.Decode(body)
		if !bytes.Equal(sent, body) {
			t.Fatal("the body has been written to")
		}
		if err != nil {
			jsontest.CheckError(t, err)
			return
		}
		again, err := jobspec.Decode(jsontest.Rewrite(t, body))
		if err != nil {
			t.Fatalf("rewritten, it is refused: %v", err)
		}
		checkSame(t, req, again)
		jsontest.CheckSafe(t, req.Payload)
		if req.JobType == jobspec.Simulation {
			if steps, err := jobspec.ParseSimulation(req.Payload); err != nil || len(steps) == 0 {
				t.Fatalf("the worker gets %d steps, %v", len(steps), err)
			}
		}
	})
}

func checkBatch(t *testing.T, body []byte) {
	jobs, err := jobspec.DecodeBatch(body)
	if err != nil {
		jsontest.CheckError(t, err)
		return
	}
	for _, job := range jobs {
		if _, err := jobspec.Decode(job); err != nil {
			jsontest.CheckError(t, err)
		}
	}
}

func checkSimulation(t *testing.T, payload []byte) {
	if steps, err := jobspec.ParseSimulation(payload); err != nil {
		jsontest.CheckError(t, err)
	} else if len(steps) == 0 || len(steps) > jobspec.MaxSteps {
		t.Fatalf("%d steps", len(steps))
	}
}

func FuzzParseTypeDefaults(f *testing.F) {
	f.Add(`{"EMAIL": {"maxRetryCount": 5, "retryPolicy": {"type": "fixed", "delayMs": 1}, "timeoutMs": 1000}}`)
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		defaults, err := jobspec.ParseTypeDefaults(text)
		if err != nil && (err.Error() == "" || len(err.Error()) > 2_000 || !utf8.ValidString(err.Error())) {
			t.Fatalf("it returned %q", err)
		}
		for jobType := range defaults {
			req, err := jobspec.Decode([]byte(`{"payload": 1, "jobType": "` + jobType + `"}`))
			if slices.Contains(jobspec.Builtin(), jobType) { // whose schema wants another payload
				continue
			}
			if err != nil {
				t.Fatalf("a default for %q, which is refused: %v", jobType, err)
			}
			if defaults.FillIn(&req); req.MaxRetryCount < 0 || req.TimeoutMs <= 0 {
				t.Fatalf("filled in: %+v", req)
			}
		}
	})
}

func FuzzFromQuery(f *testing.F) {
	f.Add("jobType=OWN&queue=mail&priority=9&tags=a,b&delayMs=5", []byte(`{"a": 1}`))
	f.Add("jobType=OWN&after="+strings.Trim(id1, `"`)+"&onDependencyFailure=run&expiresAt=2026-11-22T08:00:00Z&orderingKey=a",
		[]byte(`1`))
	f.Add("jobType=SIMULATION&runAt=2026-11-22T08:00:00Z", []byte(`{"steps": [{"type": "FAIL"}]}`))
	f.Fuzz(func(t *testing.T, query string, payload []byte) {
		values, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		req, err := jobspec.FromQuery(values, payload)
		if err != nil {
			jsontest.CheckError(t, err)
			return
		}
		again, err := jobspec.FromQuery(values, jsontest.Rewrite(t, payload))
		if err != nil {
			t.Fatalf("rewritten, it is refused: %v", err)
		}
		checkSame(t, req, again)
		jsontest.CheckSafe(t, req.Payload)
	})
}

func checkSame(t *testing.T, a, b jobspec.Request) {
	x, err := jobspec.Canonical(a)
	if err != nil {
		t.Fatal(err)
	}
	y, err := jobspec.Canonical(b)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(x, y) {
		t.Fatalf("rewritten, it means something else:\n%s\n%s", x, y)
	}
}

func BenchmarkDecode(b *testing.B) {
	for name, body := range map[string]string{
		"one step": `{"jobType":"SIMULATION","payload":{"steps":[{"type":"LOG","message":"hello"}]}}`,
		"full":     strings.Replace(full, `, "ü\n"`, "", 1),
		"own type": own(`{"customer": {"id": 17, "name": "Ada"}, "lines": [1, 2, 3.5, "x", null, true]}`),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := jobspec.Decode([]byte(body)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
