package jobspec

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/retrypolicy"
)

// The cases of RFC 7396, Appendix A, and what it leaves to the writer: the order of members and the form of numbers.
func TestAMergePatchChangesWhatItNames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ target, patch, want string }{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`["a","b"]`, `["c","d"]`, `["c","d"]`},
		{`{"a":"b"}`, `["c"]`, `["c"]`},
		{`{"a":"foo"}`, `null`, `null`},
		{`{"a":"foo"}`, `"bar"`, `"bar"`},
		{`{"e":null}`, `{"a":1}`, `{"e":null,"a":1}`},
		{`[1,2]`, `{"a":"b","c":null}`, `{"a":"b"}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
		{`{"z": 1.0e2, "y": 12345678901234567890, "x": {"w": [ 1 ]}}`, `{"y2": 0.10}`,
			`{"z":1.0e2,"y":12345678901234567890,"x":{"w": [ 1 ]},"y2":0.10}`},
		{`{"a\u0062":1}`, `{"ab":2}`, `{"ab":2}`},
	} {
		r := newReader([]byte(c.patch), "")
		v := r.patchValue()
		if p := r.Close(); p != nil {
			t.Fatal(p)
		}
		got, err := v.appendMerged(nil, []byte(c.target))
		if err != nil || string(got) != c.want {
			t.Errorf("%s patched by %s is %s, %v, want %s", c.target, c.patch, got, err, c.want)
		}
	}
}

func TestARequestIsPatchedAndCheckedAsAWhole(t *testing.T) {
	t.Parallel()
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	old := Request{
		JobType: "MAIL", Payload: []byte(`{"to": "a@example.org", "parts": {"html": "<b>", "n": 1.50}}`), Queue: "mail", Spec: jobevent.Spec{Priority: 3, MaxRetryCount: 7, TimeoutMs: (time.Minute).Milliseconds(), RetryPolicy: &retrypolicy.Policy{Type: retrypolicy.Fixed}},
		Tags: []string{"x"}, OwnerID: "acme", OrderingKey: "k", FairnessKey: "f",
		CallbackURL: "https://example.org/", IdempotencyKey: "once",
		RunAt: &at, ExpiresAt: &at, After: []uuid.UUID{uuid.New()}, RunAnyway: true,
	}
	patched := func(body string) Request {
		t.Helper()
		patch, err := DecodePatch([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		got, err := patch.Apply(old.Again())
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		return got
	}
	same := patched(`{}`)
	if string(same.Payload) != string(old.Payload) || same.Queue != "mail" || same.Priority != 3 || same.MaxRetryCount != 7 ||
		same.Timeout() != time.Minute || !slices.Equal(same.Tags, old.Tags) || same.OwnerID != "acme" || same.OrderingKey != "k" || same.FairnessKey != "f" ||
		!same.RetryPolicy.Equal(old.RetryPolicy) || same.CallbackURL != old.CallbackURL || same.Silent != (Silent{}) {
		t.Errorf("as it was it is %+v", same)
	}
	if same.IdempotencyKey != "" || same.RunAt != nil || same.ExpiresAt != nil || same.After != nil || same.RunAnyway {
		t.Errorf("what belongs to the old job alone was taken over: %+v", same)
	}
	if got := patched(`{"payload": {"parts": {"n": null, "text": "b"}}}`); string(got.Payload) !=
		`{"to":"a@example.org","parts":{"html":"<b>","text":"b"}}` {
		t.Errorf("the payload is %s", got.Payload)
	}
	if got := patched(`{"payload": [1]}`); string(got.Payload) != `[1]` {
		t.Errorf("the payload is %s", got.Payload)
	}
	defaults := patched(`{"queue": null, "priority": null, "maxRetryCount": null, "timeoutMs": null, "retryPolicy": null, "tags": null,
		"orderingKey": null, "fairnessKey": null, "keepBuild": null, "callbackUrl": null}`)
	if defaults.Queue != DefaultQueue || defaults.Priority != 0 || defaults.MaxRetryCount != DefaultMaxRetryCount || defaults.Tags != nil ||
		defaults.RetryPolicy != nil || !defaults.IsPlain() || defaults.FairnessKey != "" || defaults.Silent != (Silent{true, true, true}) {
		t.Errorf("the defaults are %+v", defaults)
	}
	if got := patched(`{"retryPolicy": {"delayMs": 5}}`); got.RetryPolicy.DelayMs != 5 || got.RetryPolicy.Type != retrypolicy.Fixed {
		t.Errorf("the policy is %+v", got.RetryPolicy)
	}
	if got := patched(`{"retryPolicy": {"type": "exponential", "baseMs": 0}}`); got.RetryPolicy.Type != retrypolicy.Exponential ||
		got.RetryPolicy.BaseMs != 0 || got.RetryPolicy.CapMs != retrypolicy.Default.CapMs {
		t.Errorf("the policy is %+v", got.RetryPolicy)
	}
	if got := patched(`{"delayMs": 5000, "idempotencyKey": "two"}`); got.Delay != 5*time.Second || got.IdempotencyKey != "two" {
		t.Errorf("later it is %+v", got)
	}
	for body, path := range map[string]string{
		`{"jobType": null}`: "jobType", `{"payload": null}`: "payload", `{"priority": 10}`: "priority", `{"tags": "x"}`: "tags",
		`{"runAt": "2030-01-02T03:04:05Z", "delayMs": 1}`: "delayMs", `{"onDependencyFailure": "run"}`: "onDependencyFailure",
		`{"jobType": "SIMULATION"}`: "payload.to", `{"retryPolicy": {"type": "list"}}`: "retryPolicy.delaysMs",
	} {
		patch, err := DecodePatch([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		_, err = patch.Apply(old.Again())
		if refused := (*apierror.Error)(nil); !errors.As(err, &refused) || !strings.HasPrefix(refused.Details[0].Path, path) {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestAPatchIsReadStrictly(t *testing.T) {
	t.Parallel()
	for body, path := range map[string]string{
		`{"x": null}`: "x", `{"runAgainOf": 1}`: "runAgainOf", `[]`: "", `null`: "", ``: "", `{"tags": 1, "tags": 2}`: "tags",
		`{"payload": {"a": 1, "a": 2}}`: "payload.a", `{"payload": "\ud800"}`: "payload", `{"payload": 1e999}`: "payload",
		`{"payload": ` + strings.Repeat(`{"a":`, 101) + `1` + strings.Repeat(`}`, 102): "payload",
	} {
		_, err := DecodePatch([]byte(body))
		if refused := (*apierror.Error)(nil); !errors.As(err, &refused) || !strings.HasPrefix(refused.Details[0].Path, path) {
			t.Errorf("%.60s: %v", body, err)
		}
	}
	_, err := DecodePatch([]byte(`{"payload": "` + strings.Repeat("x", MaxJobBytes) + `"}`))
	if refused := (*apierror.Error)(nil); !errors.As(err, &refused) || refused.Code != apierror.PayloadTooLarge {
		t.Errorf("a long one: %v", err)
	}
}

func TestTheAuditLogGetsAPatchWithoutItsPayload(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"payload": {"secret": 1}}`: "", `{}`: "",
		`{"priority": 5, "payload": 1, "tags": null, "retryPolicy": {"type": "list", "delaysMs": [1, 2]}}`: `{"priority":5,"tags":null,"retryPolicy":{"type":"list","delaysMs":[1, 2]}}`,
	} {
		patch, err := DecodePatch([]byte(body))
		if err != nil || string(patch.Public()) != want {
			t.Errorf("%s: %s, %v", body, patch.Public(), err)
		}
	}
}

// A job whose body had the most bytes that are allowed can be run again, though its defaults are written out then.
func TestTheLargestRequestCanBeSubmittedOnceMore(t *testing.T) {
	t.Parallel()
	const rest = `{"jobType":"A","payload":""}`
	old, err := Decode([]byte(`{"jobType":"A","payload":"` + strings.Repeat("x", MaxJobBytes-len(rest)) + `"}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (Patch{}).Apply(old); err != nil {
		t.Error(err)
	}
}
