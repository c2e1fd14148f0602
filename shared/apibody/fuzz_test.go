package apibody_test

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/strictjson/jsontest"
)

// decoders are the decoders of the bodies that control jobs, queues and schedules.
var decoders = map[string]func([]byte) (any, error){
	"operation": func(body []byte) (any, error) { return apibody.DecodeOperation(body) },
	"schedule":  func(body []byte) (any, error) { return apibody.DecodeSchedule(body) },
	"control":   func(body []byte) (any, error) { return apibody.DecodeControl(body) },
	"when":      func(body []byte) (any, error) { return apibody.DecodeWhen(body) },
}

// FuzzBodies passes one text to all decoders. An accepted body has the same meaning when it is written in another form.
func FuzzBodies(f *testing.F) {
	for _, s := range []string{
		`{"command": "cancel", "jobIds": [` + id1 + `], "idempotencyKey": "a"}`,
		`{"command": "delete", "filter": {"all": true}}`, `{"command": "delete", "filter": {}}`,
		`{"command": "retry", "filter": {"status": ["FAILED", "FAILED"], "type": "a", "since": "2026-11-22T08:00:00Z", "ownerId": "\u0000"}}`,
		`{"command": "reschedule", "filter": {"tag": "' or 1=1 --"}, "delayMs": 9223372036854775807}`,
		`{"name": "a:b", "cron": "* * * * *", "timeZone": "../../etc/passwd", "job": {"jobType": "OWN", "payload": 1}}`,
		`{"name": "a", "cron": "@every 0s", "timeZone": "Europe/Berlin", "job": {"jobType": "OWN", "payload": {"a": 1}}, "overlap": "skip", "missed": "one"}`,
		`{"cron": "0 0 30 2 *", "timeZone": "UTC", "job": {"jobType": "OWN", "payload": 1, "delayMs": 1}, "startAt": "9999-12-31T23:59:59Z"}`,
		`{"paused": true, "maxRunning": 1e6, "startsPerSecond": 1e-5}`, `{"maxRunning": 1, "maxRunning": 2}`,
		`{"runAt": "2026-11-22T08:00:00.123456789+14:00"}`, `{"runAt": "0000-01-01T00:00:00Z", "delayMs": -0}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for name, decode := range decoders {
			sent := bytes.Clone(body)
			decoded, err := decode(body)
			if !bytes.Equal(sent, body) {
				t.Fatalf("%s: the body has been written to", name)
			}
			if err != nil {
				jsontest.CheckError(t, err)
				continue
			}
			again, err := decode(jsontest.Rewrite(t, body))
			if err != nil {
				t.Fatalf("%s: rewritten, it is refused: %v", name, err)
			}
			checkSameBody(t, decoded, again)
		}
	})
}

func checkSameBody(t *testing.T, a, b any) {
	if s, ok := a.(apibody.Schedule); ok {
		other := b.(apibody.Schedule)
		x, err := jobspec.Canonical(s.Job)
		if err != nil {
			t.Fatal(err)
		}
		if y, err := jobspec.Canonical(other.Job); err != nil || !bytes.Equal(x, y) {
			t.Fatalf("rewritten, its job is another:\n%s\n%s, %v", x, y, err)
		}
		jsontest.CheckSafe(t, s.Job.Payload)
		s.Job, s.JobJSON, other.Job, other.JobJSON = jobspec.Request{}, nil, jobspec.Request{}, nil
		a, b = s, other
	}
	if !reflect.DeepEqual(a, b) {
		t.Fatalf("rewritten, it means something else:\n%+v\n%+v", a, b)
	}
}
