package jobspec_test

import (
	"strings"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/jobspec"
)

func TestATypesDefaultsFillInWhatARequestDoesNotSay(t *testing.T) {
	t.Parallel()
	defaults, err := jobspec.ParseTypeDefaults(`{"OWN": {"maxRetryCount": 5, "timeoutMs": 1000,
		"retryPolicy": {"type": "fixed", "delayMs": 7}}, "OTHER": {"maxRetryCount": 9}, "SAME": {}}`)
	if err != nil {
		t.Fatal(err)
	}
	for body, want := range map[string]struct {
		retries int
		delayMs int64 // of its policy; -1: it has none
		timeout time.Duration
	}{
		own(`1`):                   {5, 7, time.Second},
		job(`"maxRetryCount": 3`):  {3, 7, time.Second},
		job(`"timeoutMs": 600000`): {5, 7, 10 * time.Minute},
		job(`"retryPolicy": {"type": "exponential"}`): {5, -1, time.Second},
		`{"jobType": "OTHER", "payload": 1}`:          {9, -1, 10 * time.Minute},
		`{"jobType": "SAME", "payload": 1}`:           {3, -1, 10 * time.Minute},
		`{"jobType": "UNNAMED", "payload": 1}`:        {3, -1, 10 * time.Minute},
	} {
		req := decode(t, body)
		before, err := jobspec.Canonical(req)
		if err != nil {
			t.Fatal(err)
		}
		defaults.FillIn(&req)
		delayMs := int64(-1)
		if req.RetryPolicy != nil {
			delayMs = req.RetryPolicy.DelayMs
		}
		if req.MaxRetryCount != want.retries || delayMs != want.delayMs || req.Timeout() != want.timeout {
			t.Errorf("%s (%s): got %+v, want %+v", body, before, req, want)
		}
	}
}

func TestTheDefaultsOfAllTypesHoldWhereATypeIsSilent(t *testing.T) {
	t.Parallel()
	defaults, err := jobspec.ParseTypeDefaults(`{"OWN": {"maxRetryCount": 5}, "*": {"maxRetryCount": 9, "timeoutMs": 1000}}`)
	if err != nil {
		t.Fatal(err)
	}
	for body, want := range map[string]struct {
		retries int
		timeout time.Duration
	}{
		own(`1`):                               {5, time.Second},
		job(`"maxRetryCount": 3`):              {3, time.Second},
		job(`"timeoutMs": 60000`):              {5, time.Minute},
		`{"jobType": "UNNAMED", "payload": 1}`: {9, time.Second},
	} {
		req := decode(t, body)
		defaults.FillIn(&req)
		if req.MaxRetryCount != want.retries || req.Timeout() != want.timeout {
			t.Errorf("%s: got %d retries and %s, want %+v", body, req.MaxRetryCount, req.Timeout(), want)
		}
	}
}

func TestParseTypeDefaultsRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`x`:                                      "is not valid JSON: ",
		`[]`:                                     "must be an object",
		`{"*": 1}`:                               `["*"] must be an object`,
		`{"OWN": 1}`:                             "OWN must be an object",
		`{"A B": {}}`:                            `["A B"] must be a letter, then`,
		`{"": {"maxRetryCount": 1}}`:             `[""] must be a letter, then`,
		`{"OWN": {"maxRetryCount": 101}}`:        "OWN.maxRetryCount must be from 0 to 100",
		`{"OWN": {"timeoutMs": 0}}`:              "OWN.timeoutMs must be from 1 to 604800000",
		`{"OWN": {"priority": 1}}`:               "OWN.priority is not a known field",
		`{"OWN": {"retryPolicy": {"type":"x"}}}`: "OWN.retryPolicy.type must be",
		`{"OWN": {}, "OWN": {}}`:                 "OWN",
		`{"OWN": {}} x`:                          "not valid JSON",
	} {
		defaults, err := jobspec.ParseTypeDefaults(text)
		if err == nil || defaults != nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "body") {
			t.Errorf("%s: got %v, %v, want %q", text, defaults, err, want)
		}
	}
	if defaults, err := jobspec.ParseTypeDefaults(""); defaults != nil || err != nil {
		t.Errorf("of nothing: %v, %v", defaults, err)
	}
}
