package apibody_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/strictjson/jsontest"
)

const id1 = `"01936f3e-5f3e-7cc0-8000-000000000001"`

// callback returns a body with an attempt and other members.
func callback(more string) string { return `{"jobId": ` + id1 + `, "attempt": 2, ` + more + `}` }

func TestACallbackIsReadAsItIsMeant(t *testing.T) {
	t.Parallel()
	id := uuid.MustParse(strings.Trim(id1, `"`))
	completed := apibody.Callback{JobID: id, Attempt: 2, Status: apibody.CallbackCompleted, Retryable: true}
	for name, c := range map[string]struct {
		more string
		want func(*apibody.Callback)
	}{
		"completed":           {`"status": "COMPLETED"`, func(*apibody.Callback) {}},
		"with an output":      {`"status": "COMPLETED", "output": {"a": [1]}`, func(c *apibody.Callback) { c.Output = json.RawMessage(`{"a": [1]}`) }},
		"what does not apply": {`"status": "COMPLETED", "output": null, "errorCode": null, "message": null, "retryable": null, "progress": null`, func(*apibody.Callback) {}},
		"failed": {`"status": "FAILED", "errorCode": "SHOP.SOLD_OUT", "message": "none left", "retryable": false`, func(c *apibody.Callback) {
			c.Status, c.ErrorCode, c.Message, c.Retryable = apibody.CallbackFailed, "SHOP.SOLD_OUT", "none left", false
		}},
		"failed, and no more": {`"status": "FAILED"`, func(c *apibody.Callback) {
			c.Status, c.ErrorCode = apibody.CallbackFailed, "WORKER.CALLBACK_FAILED"
		}},
		"progress": {`"status": "PROGRESS", "progress": {"percent": 7, "message": "packing"}`, func(c *apibody.Callback) {
			c.Status, c.Progress = apibody.CallbackProgress, jobevent.Progress{Percent: 7, Message: "packing"}
		}},
	} {
		want := completed
		c.want(&want)
		if got, err := apibody.DecodeCallback([]byte(callback(c.more))); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
}

func TestAllThatIsWrongWithACallbackIsReported(t *testing.T) {
	t.Parallel()
	long := func(n int) string { return `"` + strings.Repeat("x", n) + `"` }
	for body, paths := range map[string][]string{
		`{}`: {"jobId", "attempt", "status"},
		`{"jobId": "17", "attempt": 0, "status": "DONE"}`:                                                   {"jobId", "attempt", "status"},
		`{"jobId": "{01936f3e-5f3e-7cc0-8000-000000000001}", "attempt": 2147483648, "status": 1}`:           {"jobId", "attempt", "status"},
		callback(`"status": "COMPLETED", "errorCode": "A", "message": "b", "retryable": true`):              {"errorCode", "message", "retryable"},
		callback(`"status": "COMPLETED", "progress": {"percent": 1}`):                                       {"progress"},
		callback(`"status": "FAILED", "output": 1`):                                                         {"output"},
		callback(`"status": "FAILED", "errorCode": "", "message": ` + long(jobspec.MaxMessage+1)):           {"errorCode", "message"},
		callback(`"status": "FAILED", "retryable": "no", "errorCode": ` + long(jobspec.MaxErrorCode+1)):     {"retryable", "errorCode"},
		callback(`"status": "PROGRESS"`):                                                                    {"progress"},
		callback(`"status": "PROGRESS", "progress": {"message": 1, "step": 2}`):                             {"progress.message", "progress.step", "progress.percent"},
		callback(`"status": "PROGRESS", "progress": {"percent": 101}`):                                      {"progress.percent"},
		callback(`"status": "PROGRESS", "progress": {"percent": 1, "message": ` + long(1001) + `}`):         {"progress.message"},
		callback(`"status": "COMPLETED", "secret": "x", "status": "FAILED"`):                                {"secret", "status"},
		callback(`"status": "COMPLETED", "output": ` + long(apibody.MaxCallbackOutput-1)):                   {"output"},
		callback(`"status": "COMPLETED", "output": "\u0000"`):                                               {"output"},
		callback(`"status": "COMPLETED", "output": ` + strings.Repeat("[", 200) + strings.Repeat("]", 200)): nil,
		callback(`"status": "COMPLETED", "output": 1e999`):                                                  {"output"},
		`[]`: {""}, ``: {""}, `{"jobId"`: {""},
	} {
		_, err := apibody.DecodeCallback([]byte(body))
		var wrong *apierror.Error
		if !errors.As(err, &wrong) || wrong.Code != apierror.InvalidJobRequest || len(wrong.Details) == 0 {
			t.Errorf("%.100s: %v", body, err)
			continue
		}
		for _, path := range paths {
			if !slices.ContainsFunc(wrong.Details, func(d apierror.Detail) bool { return d.Path == path }) {
				t.Errorf("%.100s: no detail names %q: %+v", body, path, wrong.Details)
			}
		}
	}
}

// The gateway needs the attempt even if something else is wrong, because it checks the attempt's secret.
func TestTheAttemptIsKnownThoughTheRestIsWrong(t *testing.T) {
	t.Parallel()
	for _, more := range []string{`"status": 1`, `"status": "FAILED", "output": 1`, `"status": "COMPLETED", "output": "\u0000"`, `"secret`} {
		got, err := apibody.DecodeCallback([]byte(callback(more)))
		if err == nil || got.JobID.String() != strings.Trim(id1, `"`) || got.Attempt != 2 || got.Status != "" {
			t.Errorf("%s: %+v, %v", more, got, err)
		}
	}
}

func TestTheSameCallbackIsTheSameBytes(t *testing.T) {
	t.Parallel()
	canonical := func(body string) string {
		got, err := apibody.DecodeCallback([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		b, err := apibody.CanonicalCallback(got)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	same := canonical(callback(`"status": "COMPLETED", "output": {"a": 1, "b": "ü"}`))
	for _, again := range []string{
		`{"output": {"b": "\u00fc", "a": 1}, "status":"COMPLETED", "attempt": 2, "jobId": ` + strings.ToUpper(id1) + `}`,
		callback(`"status": "COMPLETED", "message": null, "output": { "a" : 1, "b" : "ü" } `),
	} {
		if got := canonical(again); got != same {
			t.Errorf("%s\nis not %s", got, same)
		}
	}
	seen := map[string]string{}
	for _, other := range []string{
		`"status": "COMPLETED"`, `"status": "COMPLETED", "output": {"a": 9007199254740993}`, `"status": "COMPLETED", "output": {"a": 9007199254740992}`,
		`"status": "FAILED"`, `"status": "FAILED", "retryable": false`, `"status": "FAILED", "message": "m"`, `"status": "FAILED", "errorCode": "m"`,
		`"status": "COMPLETED", "output": "null"`, `"status": "PROGRESS", "progress": {"percent": 0}`,
	} {
		c := canonical(callback(other))
		if seen[c] != "" {
			t.Errorf("%s is the same as %s", other, seen[c])
		}
		seen[c] = other
	}
}

func FuzzDecodeCallback(f *testing.F) {
	for _, more := range []string{
		`"status": "COMPLETED", "output": {"a": [1, -0.5e3, "\ud83d\ude00", null, true]}`, `"status": "COMPLETED", "output": null`,
		`"status": "FAILED", "errorCode": "A.B", "message": "m", "retryable": false`, `"status": "PROGRESS", "progress": {"percent": 1, "message": "m"}`,
		`"status": "COMPLETED", "output": "\\u0000"`, `"status": "COMPLETED", "output": "\u0000"`, `"status": "COMPLETED", "output": 1e400`,
		"\"status\": \"\xff\"", `"status": "DONE", "secret": 1`,
	} {
		f.Add([]byte(callback(more)))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		sent := bytes.Clone(body)
		got, err := apibody.DecodeCallback(body)
		if !bytes.Equal(sent, body) {
			t.Fatal("the body has been written to")
		}
		if err != nil {
			jsontest.CheckError(t, err)
			return
		}
		if got.JobID == uuid.Nil && !bytes.Contains(body, []byte("00000000-0000-0000-0000-000000000000")) || got.Attempt < 1 {
			t.Fatalf("of no attempt: %+v", got)
		}
		if got.Output != nil {
			jsontest.CheckSafe(t, got.Output)
		}
		again, err := apibody.DecodeCallback(jsontest.Rewrite(t, body))
		if err != nil {
			t.Fatalf("rewritten, it is refused: %v", err)
		}
		a, err := apibody.CanonicalCallback(got)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := apibody.CanonicalCallback(again); err != nil || !bytes.Equal(a, b) {
			t.Fatalf("rewritten, it is another: %s, %s, %v", a, b, err)
		}
	})
}
