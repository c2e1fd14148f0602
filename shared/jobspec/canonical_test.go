package jobspec_test

import (
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/shared/jobspec"
)

func TestSameMeaningSameBytes(t *testing.T) {
	t.Parallel()
	for name, bodies := range map[string][]string{
		"order, white space and escapes": {
			`{"jobType":"OWN","payload":{"a":1,"b":{"c":[1,2],"d":"A/"}}}`,
			` {"payload" : {"b": {"d": "\u0041\/", "c": [1, 2]}, "a": 1}, "jobType": "OWN"} `},
		"fractions": {own(`[0.5, 100.0, 1.0]`), own(`[5e-1, 1e2, 1.00]`)},
		"defaults spelled out": {own(`1`), `{"jobType": "OWN", "payload": 1, "maxRetryCount": 3,
			"retryPolicy": {"type": "exponential", "capMs": 300000}, "queue": "default", "priority": 0,
			"delayMs": 0, "timeoutMs": 600000, "tags": []}`},
		"the key itself":         {own(`1`), `{"jobType": "OWN", "payload": 1, "idempotencyKey": "x"}`},
		"the owner as key":       {job(`"ownerId": "a"`), job(`"ownerId": "a", "fairnessKey": "a"`)},
		"the order of tags":      {job(`"tags": ["a", "b"]`), job(`"tags": ["b", "a"]`)},
		"the order of after":     {job(`"after": [` + id1 + `,` + id2 + `]`), job(`"after": [` + id2 + `,` + id1 + `]`)},
		"after nothing":          {job(`"priority": 0`), job(`"after": [], "onDependencyFailure": "run"`)},
		"a failed dependency":    {job(`"after": [` + id1 + `]`), job(`"after": [` + id1 + `], "onDependencyFailure": "cancel"`)},
		"an instant's zone":      {job(`"runAt": "2026-11-22T08:00:00Z"`), job(`"runAt": "2026-11-22T09:00:00.000+01:00"`)},
		"defaults of a FAIL":     {steps(`{"type": "FAIL"}`), steps(`{"retryable": true, "errorCode": "WORKER.SIMULATION_FAILED", "type": "FAIL"}`)},
		"defaults of a call":     {steps(`{"type": "HTTP_CALL", "url": "http://x/"}`), steps(`{"type": "HTTP_CALL", "url": "http://x/", "method": "GET", "latencyMs": 0}`)},
		"forms of a period":      {job(`"unique": {"key": "a", "for": "24h"}`), job(`"unique": {"for": "1440m0s", "key": "a"}`)},
		"a policy until its end": {job(`"unique": {"key": "a"}`), job(`"unique": {"key": "a", "while": "ACTIVE"}`)},
		"a policy that queues":   {job(`"singleton": {"key": "a"}`), job(`"singleton": {"key": "a", "else": "queue"}`)},
		"a policy's defaults":    {job(`"retryPolicy": {"type": "exponential", "baseMs": 1}`), job(`"retryPolicy": {"jitter": 0, "capMs": 300000, "baseMs": 1, "type": "exponential"}`)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if a, b := canonical(t, bodies[0]), canonical(t, bodies[1]); a != b {
				t.Errorf("got\n%s\n%s", a, b)
			}
		})
	}
}

func TestOtherMeaningOtherBytes(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, body := range []string{
		own(`1`), own(`2`), own(`"1"`), own(`null`), own(`{}`), own(`[]`), own(`[1,2]`), own(`[2,1]`),
		own(`9007199254740992`), own(`9007199254740993`), own(`{"a":null}`),
		job(`"maxRetryCount": 0`), job(`"queue": "x"`), job(`"priority": 1`), job(`"delayMs": 1`),
		job(`"runAt": "2026-11-22T08:00:00Z"`), job(`"expiresAt": "2026-11-22T08:00:00Z"`), job(`"orderingKey": "a"`), job(`"fairnessKey": "a"`), job(`"keepBuild": true`),
		job(`"after": [` + id1 + `]`), job(`"after": [` + id2 + `]`), job(`"after": [` + id1 + `,` + id2 + `]`),
		job(`"after": [` + id1 + `], "onDependencyFailure": "run"`), job(`"callbackUrl": "http://x/"`), job(`"timeoutMs": 1`), job(`"tags": ["a"]`), job(`"ownerId": "a"`),
		job(`"retryPolicy": {"type": "fixed", "delayMs": 0}`), job(`"retryPolicy": {"type": "fixed", "delayMs": 1}`),
		job(`"retryPolicy": {"type": "list", "delaysMs": [1]}`), job(`"retryPolicy": {"type": "exponential", "jitter": 1}`),
		job(`"unique": {"key": "a"}`), job(`"unique": {"key": "b"}`), job(`"unique": {"key": "a", "for": "1h"}`), job(`"unique": {"key": "a", "for": "2h"}`),
		job(`"unique": {"key": "a", "for": "1h", "while": "ACTIVE"}`), job(`"unique": {"key": "a", "while": "WAITING"}`),
		job(`"throttle": {"key": "a", "perMs": 1}`), job(`"throttle": {"key": "a", "perMs": 2}`),
		job(`"singleton": {"key": "a"}`), job(`"singleton": {"key": "a", "else": "drop"}`), job(`"singleton": {"key": "b"}`),
		steps(`{"type": "FAIL"}`), steps(`{"type": "FAIL", "failAttempts": 0}`), steps(`{"type": "FAIL", "retryable": false}`),
		steps(`{"type": "FAIL", "message": "x"}`), steps(`{"type": "FAIL", "errorCode": "X"}`),
		steps(`{"type": "FAIL"}, {"type": "FAIL"}`), steps(`{"type": "LOG", "message": ""}`),
		steps(`{"type": "HTTP_CALL", "url": "http://x/"}`), steps(`{"type": "HTTP_CALL", "url": "http://x/", "method": "PUT"}`),
		steps(`{"type": "HTTP_CALL", "latencyMs": 0}`), steps(`{"type": "SLEEP", "durationMs": 1}`),
		steps(`{"type": "COMPUTE", "iterations": 1}`),
	} {
		c := canonical(t, body)
		if other, ok := seen[c]; ok {
			t.Errorf("the same:\n%s\n%s", body, other)
		}
		seen[c] = body
	}
}

func TestCanonicalOfWhatWasNotDecoded(t *testing.T) {
	t.Parallel()
	for _, req := range []jobspec.Request{{}, {JobType: "SIMULATION", Payload: []byte(`{}`)}} {
		if b, err := jobspec.Canonical(req); err == nil || !strings.HasPrefix(err.Error(), "write canonical payload: ") {
			t.Errorf("got %s, %v", b, err)
		}
	}
}

func canonical(t *testing.T, body string) string {
	t.Helper()
	b, err := jobspec.Canonical(decode(t, body))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
