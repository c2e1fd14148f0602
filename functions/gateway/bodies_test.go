package gateway_test

import (
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/outbound"
)

func TestTheContractAndTheDecoderOfPoliciesAgree(t *testing.T) {
	t.Parallel()
	schema := loadContract(t).Components.Schemas["JobRequest"].Value
	for _, more := range []string{
		`"unique": {"key": "a"}`, `"unique": {}`, `"unique": null`, `"unique": {"key": ""}`, `"unique": {"key": "a", "x": 1}`,
		`"unique": {"key": "a", "while": "WAITING"}`, `"unique": {"key": "a", "while": "DONE"}`, `"unique": {"key": "a", "for": 1}`,
		`"throttle": {"key": "a"}`, `"throttle": {"key": "a", "perMs": 0}`, `"throttle": {"key": "a", "perMs": 1}`,
		`"throttle": {"key": "a", "perMs": 86400000}`, `"throttle": {"key": "a", "perMs": 86400001}`,
		`"throttle": {"key": "a", "perMs": 1}, "delayMs": 0`, `"throttle": {"key": "a", "perMs": 1}, "runAt": "2030-01-01T00:00:00Z"`,
		`"singleton": {"key": "a"}`, `"singleton": {"key": "a", "else": "drop"}`, `"singleton": {"key": "a", "else": "x"}`,
		`"singleton": {"key": "a"}, "orderingKey": "b"`, `"debounce": {"key": "a"}`, `"debounce": {"key": "a", "delayMs": 0}`,
		`"debounce": {"key": "a", "delayMs": 1}`, `"debounce": {"key": "a", "delayMs": 86400000, "maxDelayMs": 86400000}`,
		`"debounce": {"key": "a", "delayMs": 86400001}`, `"debounce": {"key": "a", "delayMs": 1, "maxDelayMs": 86400001}`,
		`"debounce": {"key": "a", "delayMs": 1}, "delayMs": 1`, `"debounce": {"key": "a", "delayMs": 1}, "unique": {"key": "a"}`,
		`"debounce": {"key": "a", "delayMs": 1}, "after": []`, `"debounce": {"key": "a", "delayMs": 1}, "after": [` + someID + `]`,
		`"debounce": {"key": "a", "delayMs": 1}, "batchId": ` + someID, `"debounce": {"key": "a", "delayMs": 1}, "singleton": {"key": "a"}`,
		`"jobId": ` + someID, `"jobId": ` + someID + `, "idempotencyKey": "a"`, `"jobId": "0af76519-16cd-43dd-8448-eb211c80319c"`,
		`"after": [{"jobId": ` + someID + `, "on": "failed"}]`, `"after": [{"jobId": ` + someID + `, "on": "x"}]`, `"after": [{"on": "failed"}]`,
	} {
		agree(t, schema, `{"jobType": "OWN", "payload": null, `+more+`}`)
	}
}

func TestTheContractAndTheDecodersOfLaterJobsAgree(t *testing.T) {
	t.Parallel()
	schemas := loadContract(t).Components.Schemas
	for _, more := range []string{
		`"priority": 1`, `"priority": 10`, `"runAt": "2030-01-01T00:00:00Z"`, `"delayMs": 1`, `"expiresAt": "2030-01-01T00:00:00Z"`,
		`"idempotencyKey": "a"`, `"jobId": ` + someID, `"after": []`, `"batchId": ` + someID, `"debounce": {"key": "a", "delayMs": 1}`,
		`"unique": {"key": "a"}`, `"callbackUrl": "https://example.org/"`, `"x": 1`,
	} {
		job := `{"jobType": "OWN", "payload": 1, ` + more + `}`
		body := `{"cron": "@daily", "job": ` + job + `}`
		_, err := apibody.DecodeSchedule([]byte(body))
		agreeWith(t, schemas["ScheduleRequest"].Value, body, err)
		_, err = apibody.DecodeFollowUp([]byte(job), nil)
		agreeWith(t, schemas["FollowUp"].Value, job, err)
	}
}

func TestTheContractAndTheDecoderOfOperationsAgree(t *testing.T) {
	t.Parallel()
	schema := loadContract(t).Components.Schemas["OperationRequest"].Value
	for _, body := range []string{
		`{}`, `{"command": "cancel"}`, `{"command": "pause", "filter": {"all": true}}`, `{"command": "cancel", "filter": {}}`,
		`{"command": "cancel", "filter": null}`, `{"command": "cancel", "filter": {"all": true}}`, `{"command": "cancel", "filter": {"all": false}}`,
		`{"command": "cancel", "filter": {"all": true, "queue": "a"}}`, `{"command": "cancel", "filter": {"status": []}}`,
		`{"command": "cancel", "filter": {"status": ["FAILED"]}}`, `{"command": "cancel", "filter": {"status": ["FAILED", "FAILED"]}}`,
		`{"command": "cancel", "filter": {"queue": "A"}}`, `{"command": "cancel", "filter": {"errorCode": "A", "noErrorCode": true}}`,
		`{"command": "cancel", "filter": {"traceId": ` + strings.ToUpper(someID) + `}}`, `{"command": "cancel", "filter": {"since": null}}`,
		`{"command": "cancel", "jobIds": []}`, `{"command": "cancel", "jobIds": [` + someID + `]}`, `{"command": "cancel", "jobIds": null}`,
		`{"command": "cancel", "jobIds": [` + someID + `, ` + someID + `]}`, `{"command": "cancel", "jobIds": [` + strings.ToUpper(someID) + `]}`,
		`{"command": "cancel", "jobIds": [` + someID + `], "filter": {"all": true}}`, `{"command": "cancel", "jobIds": [` + someID + `], "delayMs": 1}`,
		`{"command": "reschedule", "jobIds": [` + someID + `]}`, `{"command": "reschedule", "jobIds": [` + someID + `], "delayMs": 0}`,
		`{"command": "reschedule", "jobIds": [` + someID + `], "delayMs": 0, "runAt": "2030-01-01T00:00:00Z"}`,
	} {
		_, err := apibody.DecodeOperation([]byte(body))
		agreeWith(t, schema, body, err)
	}
}

func TestTheContractAndTheDecoderOfAlertsAgree(t *testing.T) {
	t.Parallel()
	schema := loadContract(t).Components.Schemas["AlertRequest"].Value
	const to = `"to": {"slack": "https://example.org/x"}`
	x := func(n int) string { return strings.Repeat("x", n) }
	for _, body := range []string{
		`{}`, `{` + to + `}`, `{"to": null}`, `{"to": {}}`, `{"to": {"slack": "https://a.example", "webhook": "https://a.example"}}`,
		`{"to": {"email": []}}`, `{"to": {"email": ["a@example.org"]}}`, `{"to": {"email": null}}`, `{"to": {"pager": "x"}}`, `{"to": {"slack": 1}}`,
		`{"to": {"webhook": "https://example.org/` + x(1980) + `"}}`, `{"to": {"webhook": "https://example.org/` + x(1981) + `"}}`,
	} {
		_, err := apibody.DecodeAlert([]byte(body), outbound.CheckURL)
		agreeWith(t, schema, body, err)
	}
	for _, more := range []string{
		`"name": "a"`, `"name": ""`, `"name": "A"`, `"name": null`, `"name": "` + x(100) + `"`, `"name": "` + x(101) + `"`, `"x": 1`,
		`"ownerId": null`, `"ownerId": ""`, `"ownerId": "` + x(255) + `"`, `"ownerId": "` + x(256) + `"`,
		`"jobType": null`, `"jobType": ""`, `"jobType": "a b"`, `"jobType": "` + x(100) + `"`, `"jobType": "` + x(101) + `"`,
		`"queue": null`, `"queue": "A"`, `"queue": "` + x(63) + `"`, `"queue": "` + x(64) + `"`,
		`"errorCode": null`, `"errorCode": "1"`, `"errorCode": "` + x(64) + `"`, `"errorCode": "` + x(65) + `"`,
		`"failures": 0`, `"failures": 1`, `"failures": 1000000`, `"failures": 1000001`, `"failures": 1.5`, `"failures": null`,
		`"percent": null`, `"percent": 0`, `"percent": 1`, `"percent": 100`, `"percent": 101`,
		`"windowMinutes": 0`, `"windowMinutes": 1`, `"windowMinutes": 60`, `"windowMinutes": 61`, `"windowMinutes": null`,
		`"quietMinutes": 0`, `"quietMinutes": 1`, `"quietMinutes": 10080`, `"quietMinutes": 10081`, `"paused": true`, `"paused": null`,
	} {
		body := `{` + to + `, ` + more + `}`
		_, err := apibody.DecodeAlert([]byte(body), outbound.CheckURL)
		agreeWith(t, schema, body, err)
	}
}

func TestTheContractAndTheDecodersOfPullWorkersAgree(t *testing.T) {
	t.Parallel()
	schemas := loadContract(t).Components.Schemas
	x := func(n int) string { return strings.Repeat("x", n) }
	for _, more := range []string{
		`"slots": 0`, `"slots": 1`, `"slots": 500`, `"slots": 501`, `"slots": null`, `"queues": null`, `"queues": []`, `"queues": ["a", "a"]`,
		`"queues": ["A"]`, `"wait": "30s"`, `"wait": 30`, `"wait": null`, `"x": 1`,
	} {
		body := `{"worker": "` + x(128) + `", "types": ["` + x(100) + `"], ` + more + `}`
		_, err := apibody.DecodeWorkClaim([]byte(body))
		agreeWith(t, schemas["WorkClaim"].Value, body, err)
	}
	for _, body := range []string{
		`{}`, `{"worker": ""}`, `{"worker": "` + x(129) + `", "types": ["A"]}`, `{"worker": "w", "types": []}`, `{"worker": "w", "types": ["a b"]}`,
		`{"worker": "w", "types": ["` + x(101) + `"]}`, `{"worker": "w", "types": ["A", "A"]}`,
	} {
		_, err := apibody.DecodeWorkClaim([]byte(body))
		agreeWith(t, schemas["WorkClaim"].Value, body, err)
	}
	for _, more := range []string{
		`"progress": null`, `"progress": {}`, `"progress": {"percent": 100}`, `"progress": {"percent": 101}`, `"progress": {"percent": 1.5}`,
		`"progress": {"percent": 1, "message": "` + x(1000) + `"}`, `"progress": {"percent": 1, "message": "` + x(1001) + `"}`,
		`"log": null`, `"log": []`, `"log": [{"text": ""}]`, `"log": [{}]`, `"log": [{"level": "info"}]`, `"log": [{"text": "a", "level": "INFO"}]`,
		`"log": [{"text": null}]`, `"log": [{"text": "` + x(16_384) + `"}]`, `"log": [{"text": "` + x(16_385) + `"}]`, `"x": 1`,
	} {
		body := `{"worker": "w", "attempts": [{"token": "` + x(200) + `", ` + more + `}]}`
		_, err := apibody.DecodeWorkHeartbeat([]byte(body))
		agreeWith(t, schemas["WorkHeartbeat"].Value, body, err)
	}
	for _, more := range []string{
		`"status": "DONE"`, `"status": "COMPLETED"`, `"status": "COMPLETED", "output": 1`, `"status": "COMPLETED", "errorCode": null, "message": null`,
		`"status": "FAILED"`, `"status": "FAILED", "errorCode": "` + x(64) + `"`, `"status": "FAILED", "errorCode": "` + x(65) + `"`,
		`"status": "FAILED", "errorCode": "a b"`, `"status": "FAILED", "errorCode": ""`, `"status": "FAILED", "message": "` + x(4096) + `"`,
		`"status": "FAILED", "message": "` + x(4097) + `"`, `"status": "FAILED", "retryable": null`, `"status": "FAILED", "retryable": 1`,
		`"status": "FAILED", "retryAfterMs": 0`, `"status": "FAILED", "retryAfterMs": 2592000000`, `"status": "FAILED", "retryAfterMs": 2592000001`,
		`"status": "SNOOZED", "delayMs": 1`, `"status": "SNOOZED", "delayMs": 0`, `"status": "WAITING", "callbackTimeoutMs": 2592000001`,
	} {
		one := `{"token": "t", ` + more + `}`
		settle, err := apibody.DecodeWorkSettle([]byte(`{"worker": "w", "results": [` + one + `]}`))
		if err == nil {
			err = settle.Results[0].Wrong
		}
		agreeWith(t, schemas["WorkResult"].Value, one, err)
	}
	for _, more := range []string{
		`"number": 1`, `"number": 0, "checkpoint": 1`, `"number": 1, "checkpoint": null`, `"number": 2147483647, "checkpoint": 1`,
		`"number": 2147483648, "checkpoint": 1`, `"number": "1", "checkpoint": 1`,
	} {
		one := `{"token": "t", ` + more + `}`
		all, err := apibody.DecodeWorkCheckpoints([]byte(`{"worker": "w", "checkpoints": [` + one + `]}`))
		if err == nil {
			err = all.Checkpoints[0].Wrong
		}
		agreeWith(t, schemas["WorkCheckpoint"].Value, one, err)
	}
	for _, more := range []string{
		`"name": "` + x(200) + `"`, `"name": "` + x(201) + `"`, `"name": ""`, `"result": 1`, `"name": "a", "result": null`, `"name": "a", "result": [1]`,
		`"name": "a", "until": "2036-01-01T00:00:00Z"`, `"name": "a", "until": null`, `"name": "a", "until": "soon"`, `"name": "a", "until": 5`,
		`"name": "a", "until": "1969-12-31T23:59:59Z"`, `"name": "a", "tookMs": 0`, `"name": "a", "tookMs": -1`, `"name": "a", "tookMs": 31622400001`,
		`"name": "a", "tookMs": null`, `"name": "a", "x": 1`,
	} {
		body := `{"worker": "w", "token": "t", ` + more + `}`
		_, err := apibody.DecodeWorkStep([]byte(body))
		agreeWith(t, schemas["WorkStep"].Value, body, err)
	}
	for _, more := range []string{`"worker": "w"`, `"worker": "w", "after": null`, `"worker": "w", "after": ""`, `"worker": "w", "after": "a"`, `"after": "a"`} {
		body := `{"token": "t", ` + more + `}`
		_, err := apibody.DecodeWorkStepsRead([]byte(body))
		agreeWith(t, schemas["WorkStepsRead"].Value, body, err)
	}
}
