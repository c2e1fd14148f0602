package jobspec_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobspec"
)

func TestParseSimulation(t *testing.T) {
	t.Parallel()
	got, err := jobspec.ParseSimulation([]byte(`{"steps": [
		{"type": "SLEEP", "durationMs": 250}, {"type": "LOG", "message": "h\u0069"},
		{"type": "COMPUTE", "iterations": 100000}, {"type": "HTTP_CALL", "latencyMs": 50},
		{"type": "HTTP_CALL", "url": "https://example.org/x", "method": "POST"}, {"type": "FAIL"},
		{"type": "FAIL", "message": "no", "errorCode": "DEMO", "retryable": false, "failAttempts": 2}]}`))
	want := []jobspec.Step{
		jobspec.Sleep{Duration: 250 * time.Millisecond}, jobspec.Log{Message: "hi"},
		jobspec.Compute{Iterations: 100000},
		jobspec.HTTPCall{Method: "GET", Latency: 50 * time.Millisecond},
		jobspec.HTTPCall{URL: "https://example.org/x", Method: "POST"},
		jobspec.Fail{Message: jobspec.DefaultFailMessage, ErrorCode: "WORKER.SIMULATION_FAILED",
			Retryable: true, Attempts: jobspec.AllAttempts},
		jobspec.Fail{Message: "no", ErrorCode: "DEMO", Attempts: 2},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v, %v\nwant %+v", got, err, want)
	}
	for _, payload := range []string{"", "null", `{"steps": []}`, `{"steps": [{"type": "LOG", "message": "\u0000"}]}`} {
		steps, err := jobspec.ParseSimulation([]byte(payload))
		invalid(t, err, apierror.InvalidJobRequest)
		if steps != nil {
			t.Errorf("%q: an error, and yet %v", payload, steps)
		}
	}
}

func TestFails(t *testing.T) {
	t.Parallel()
	twice := jobspec.Fail{Attempts: 2}
	if !twice.Fails(1) || !twice.Fails(2) || twice.Fails(3) {
		t.Error("a FAIL of 2 attempts fails not just these")
	}
	if never := (jobspec.Fail{}); never.Fails(1) {
		t.Error("a FAIL of 0 attempts fails")
	}
}
