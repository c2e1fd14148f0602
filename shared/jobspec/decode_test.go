package jobspec_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/retrypolicy"
	"github.com/jobweaver/jobweaver/shared/strictjson"
)

const full = `{"jobType": "SIMULATION",
 "payload": {"steps": [{"type": "SLEEP", "durationMs": 250}, {"type": "LOG", "message": "hi"},
   {"type": "COMPUTE", "iterations": 100000},
   {"type": "HTTP_CALL", "url": "https://example.org/x", "method": "GET", "latencyMs": 50},
   {"type": "FAIL", "message": "no", "errorCode": "DEMO", "retryable": true, "failAttempts": 2}]},
 "maxRetryCount": 5, "retryPolicy": {"type": "exponential", "baseMs": 1000, "capMs": 300000, "jitter": 0.5},
 "queue": "default", "priority": 4, "runAt": "2026-11-22T09:00:00.1234567+01:00", "timeoutMs": 1000,
 "idempotencyKey": "order-17", "tags": ["billing", "ü\n"], "ownerId": "acme",
 "expiresAt": "2026-11-23T08:00:00Z", "orderingKey": "customer-9", "fairnessKey": "eu", "keepBuild": true, "onDependencyFailure": "run",
 "callbackUrl": "https://example.org/done",
 "after": ["01936f3e-5f3e-7cc0-8000-000000000002", "01936f3e-5f3e-7cc0-8000-000000000001"]}`

const (
	id1 = `"01936f3e-5f3e-7cc0-8000-000000000001"`
	id2 = `"01936f3e-5f3e-7cc0-8000-000000000002"`
)

// ids is so many ids, each another.
func ids(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(`"01936f3e-5f3e-7cc0-8000-%012d"`, i)
	}
	return strings.Join(list, ",")
}

func TestDecodeAFullRequest(t *testing.T) {
	t.Parallel()
	body := strings.Replace(full, `ü\n`, `\u00fc-\ud83d\ude00`, 1)
	got := decode(t, body)
	runAt := time.Date(2026, 11, 22, 8, 0, 0, 123456000, time.UTC)
	expiresAt := time.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC)
	want := jobspec.Request{
		JobType: "SIMULATION", Payload: got.Payload, Spec: jobevent.Spec{MaxRetryCount: 5, Priority: 4, RetryPolicy: &retrypolicy.Policy{Type: "exponential", BaseMs: 1000, CapMs: 300000, Jitter: 0.5}, TimeoutMs: (time.Second).Milliseconds(), KeepBuild: true}, Queue: "default",

		RunAt: &runAt, IdempotencyKey: "order-17",
		Tags: []string{"billing", "ü-😀"}, OwnerID: "acme",
		ExpiresAt: &expiresAt, OrderingKey: "customer-9", FairnessKey: "eu", RunAnyway: true, CallbackURL: "https://example.org/done",
		After: []uuid.UUID{uuid.MustParse(strings.Trim(id2, `"`)), uuid.MustParse(strings.Trim(id1, `"`))},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if !strings.Contains(body, `"payload": `+string(got.Payload)+",\n") {
		t.Errorf("the payload is not as sent: %s", got.Payload)
	}
}

func TestDecodeFillsInDefaults(t *testing.T) {
	t.Parallel()
	got := decode(t, `{"payload": null, "jobType": "own.type"}`)
	want := jobspec.Request{JobType: "own.type", Payload: json.RawMessage("null"), Spec: jobevent.Spec{MaxRetryCount: 3, TimeoutMs: (10 * time.Minute).Milliseconds()},
		Queue:  "default",
		Silent: jobspec.Silent{MaxRetryCount: true, RetryPolicy: true, Timeout: true}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestDecodeTakes(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"any kind of payload for an own type":     own(`[1, "x", {"a": -0.5e3}, true]`),
		"a string as payload":                     own(`"x"`),
		"names written with escapes":              `{"job\u0054ype": "X", "payload": 1}`,
		"a backslash before u0000":                own(`"\\u0000"`),
		"100 levels":                              own(strings.Repeat("[", 99) + strings.Repeat("]", 99)),
		"a big integer":                           own(strings.Repeat("9", 300)),
		"the greatest double":                     own(`1.7976931348623157e308`),
		"zero in odd ways":                        own(`[0e5, -0.000, 0E-9]`),
		"white space around":                      " \r\n\t" + own(`1`) + "\n ",
		"delayMs":                                 job(`"delayMs": 315360000000`),
		"runAt in the past":                       job(`"runAt": "1970-01-01T00:00:00Z"`),
		"the longest key, in characters":          job(`"idempotencyKey": "` + strings.Repeat("ü", 255) + `"`),
		"the longest fairness key":                job(`"fairnessKey": "` + strings.Repeat("ü", 255) + `"`),
		"the longest ordering key":                job(`"orderingKey": "` + strings.Repeat("ü", 255) + `"`),
		"10,000 jobs to come after":               job(`"after": [` + ids(10_000) + `]`),
		"no job to come after":                    job(`"after": []`),
		"no job to come after, and if it fails":   job(`"onDependencyFailure": "run", "after": []`),
		"what holds anyway for a failed one":      job(`"onDependencyFailure": "cancel", "after": [` + id1 + `]`),
		"a time to expire in the past":            job(`"expiresAt": "1970-01-01T00:00:00Z"`),
		"a list policy":                           job(`"retryPolicy": {"type": "list", "delaysMs": [0, 5]}`),
		"a fixed policy without delay":            job(`"retryPolicy": {"type": "fixed", "delayMs": 0}`),
		"1,000 steps":                             steps(strings.Repeat(`{"type":"LOG","message":"x"},`, 999) + `{"type":"LOG","message":"x"}`),
		"a FAIL without members":                  steps(`{"type":"FAIL"}`),
		"an HTTP_CALL that only waits":            steps(`{"type":"HTTP_CALL","latencyMs":5,"method":"POST"}`),
		"an HTTP_CALL to an IPv6 address":         steps(`{"type":"HTTP_CALL","url":"http://[::1]:8080/x?y#z"}`),
		"a longest message":                       steps(`{"type":"LOG","message":"` + strings.Repeat("é", 4096) + `"}`),
		"a step whose type comes last":            steps(`{"message":"x","type":"LOG"}`),
		"0 for what may be 0":                     steps(`{"type":"SLEEP","durationMs":0},{"type":"COMPUTE","iterations":-0}`),
		"the most of every step":                  steps(`{"type":"SLEEP","durationMs":86400000},{"type":"COMPUTE","iterations":10000000000}`),
		"a job of exactly the greatest size":      own(`"` + strings.Repeat("x", jobspec.MaxJobBytes-len(own(`""`))) + `"`),
		"a FAIL for more attempts than there are": steps(`{"type":"FAIL","failAttempts":2147483647}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			decode(t, body)
		})
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body  string
		paths string // where something is wrong, sorted, separated by spaces; "-": the whole body
	}{
		"nothing":                    {"", "-"},
		"white space":                {" \n", "-"},
		"no JSON":                    {"hello", "-"},
		"an array":                   {"[]", "-"},
		"null":                       {"null", "-"},
		"an object cut short":        {`{"jobType": "X", "payload": {"a": [1`, "-"},
		"a lone bracket":             {"}", "-"},
		"an object in an object":     {`{{}}`, "-"},
		"brackets that do not match": {`{"payload": [}`, "payload[0]"},
		"a missing value":            {`{"payload": }`, "payload"},
		"a trailing comma":           {`{"jobType": "X", "payload": 1,}`, "-"},
		"more JSON after the job":    {own("1") + "{}", "-"},
		"garbage after the job":      {own("1") + "x", "-"},
		"a byte order mark":          {"\ufeff" + own("1"), "-"},
		"nothing that is required":   {"{}", "jobType payload"},
		"unknown fields":             {job(`"a": 1, "b": {"c": [2]}`), "a b"},
		"fields of later versions":   {job(`"colour": "red"`), "colour"},
		"an empty callback":          {job(`"callbackUrl": ""`), "callbackUrl"},
		"a callback of 2,001 bytes":  {job(`"callbackUrl": "http://x/` + strings.Repeat("x", 1992) + `"`), "callbackUrl"},
		"a callback with a newline":  {job(`"callbackUrl": "http://x/\n"`), "callbackUrl"},
		"a field in other letters":   {`{"jobtype": "X", "payload": 1, "jobType": "X"}`, "jobtype"},
		"a field that is there twice": {
			`{"jobType": "X", "payload": 1, "priority": 1, "priority": 2}`, "priority"},
		"a field of the payload that is there twice": {own(`{"a": [{"b": 1, "b": 2}]}`), "payload.a[0].b"},
		"an odd field": {job(`"a b\"c\u0001": 1`), `["a·b\"c\x01"]`},

		"bad UTF-8":                  {own("\"\xff\""), "payload"},
		"a lone surrogate":           {own(`{"a": "\ud800"}`), "payload.a"},
		"a raw NUL":                  {own("{\"a\": \"\x00\"}"), "payload.a"},
		"an escaped NUL":             {own(`{"a": ["x", "y\u0000"]}`), "payload.a[1]"},
		"an escaped NUL in a name":   {own(`{"a\u0000": 1}`), `payload["a\x00"]`},
		"an escaped NUL in a tag":    {job(`"tags": ["\u0000"]`), "tags[0]"},
		"101 levels":                 {own(strings.Repeat("[", 100) + strings.Repeat("]", 100)), "deep"},
		"100,000 levels":             {own(strings.Repeat("[", 100_000)), "deep"},
		"NaN":                        {own(`NaN`), "payload"},
		"Infinity":                   {own(`-Infinity`), "payload"},
		"a hexadecimal number":       {own(`0x10`), "-"},
		"a leading zero":             {own(`[007]`), "payload"},
		"a huge exponent":            {own(`[1, 1e400]`), "payload[1]"},
		"a very huge exponent":       {own(`{"a": 1e999999999}`), "payload.a"},
		"a huge exponent of zero":    {own(`0e99999`), "payload"},
		"a vanishing number":         {own(`1e-400`), "payload"},
		"a number of 1,001 digits":   {own(strings.Repeat("1", 1001)), "payload"},
		"a fraction of 1,001 digits": {own("0." + strings.Repeat("1", 1001)), "payload"},

		"fields of the wrong kind": {`{"jobType": 1, "payload": 1, "maxRetryCount": "3", "retryPolicy": [], "queue": null,
			"priority": true, "runAt": 5, "timeoutMs": {}, "idempotencyKey": 7, "jobId": 7, "tags": "x", "ownerId": [],
			"expiresAt": 5, "orderingKey": null, "fairnessKey": 5, "keepBuild": "true", "after": {}, "onDependencyFailure": true}`,
			"after expiresAt fairnessKey idempotencyKey jobId jobType keepBuild maxRetryCount onDependencyFailure orderingKey ownerId priority queue " +
				"retryPolicy runAt tags timeoutMs"},
		"policies of the wrong kind":       {job(`"unique": "k", "throttle": [], "singleton": null`), "singleton throttle unique"},
		"policies without members":         {job(`"unique": {}, "throttle": {}, "singleton": {}`), "singleton.key throttle.key throttle.perMs unique.key"},
		"policies with empty keys":         {job(`"unique": {"key": ""}, "throttle": {"key": "", "perMs": 1}, "singleton": {"key": ""}`), "singleton.key throttle.key unique.key"},
		"policies with long keys":          {job(`"unique": {"key": "` + strings.Repeat("k", 256) + `"}, "singleton": {"key": "\u0001k"}`), "singleton.key unique.key"},
		"unknown members of policies":      {job(`"unique": {"key": "k", "x": 1}, "throttle": {"key": "k", "perMs": 1, "else": "drop"}, "singleton": {"key": "k", "perMs": 1}`), "singleton.perMs throttle.else unique.x"},
		"unknown words of policies":        {job(`"unique": {"key": "k", "while": "RUNNING"}, "singleton": {"key": "k", "else": "cancel"}`), "singleton.else unique.while"},
		"periods out of bounds":            {job(`"unique": {"key": "k", "for": "999ms"}, "throttle": {"key": "k", "perMs": 0}`), "throttle.perMs unique.for"},
		"longer periods out of bounds":     {job(`"unique": {"key": "k", "for": "8761h"}, "throttle": {"key": "k", "perMs": 86400001}`), "throttle.perMs unique.for"},
		"periods in other forms":           {job(`"unique": {"key": "k", "for": "1d"}, "throttle": {"key": "k", "perMs": "1s"}`), "throttle.perMs unique.for"},
		"a period as a number":             {job(`"unique": {"key": "k", "for": 3600}`), "unique.for"},
		"a throttle with runAt":            {job(`"throttle": {"key": "k", "perMs": 1}, "runAt": "2026-11-22T08:00:00Z"`), "throttle"},
		"a throttle with delayMs":          {job(`"throttle": {"key": "k", "perMs": 1}, "delayMs": 0`), "throttle"},
		"a singleton with an ordering key": {job(`"singleton": {"key": "k", "else": "drop"}, "orderingKey": "k"`), "singleton"},
		"fractions for integers": {job(`"maxRetryCount": 1.5, "priority": 1e0, "timeoutMs": 0.5`),
			"maxRetryCount priority timeoutMs"},
		"integers beyond their limits": {job(`"maxRetryCount": 101, "priority": 10, "timeoutMs": 604800001`),
			"maxRetryCount priority timeoutMs"},
		"integers below their limits": {job(`"maxRetryCount": -1, "priority": -1, "timeoutMs": 0`),
			"maxRetryCount priority timeoutMs"},
		"integers beyond 64 bits": {job(`"delayMs": 99999999999999999999, "priority": -99999999999999999999`),
			"delayMs priority"},
		"a delay of over ten years": {job(`"delayMs": 315360000001`), "delayMs"},
		"runAt and delayMs":         {job(`"runAt": "2026-11-22T08:00:00Z", "delayMs": 0`), "delayMs"},
		"runAt without a zone":      {job(`"runAt": "2026-11-22T08:00:00"`), "runAt"},
		"runAt on no day":           {job(`"runAt": "2026-02-30T08:00:00Z"`), "runAt"},
		"runAt with a comma":        {job(`"runAt": "2026-11-22T08:00:00,5Z"`), "runAt"},
		"runAt at a short hour":     {job(`"runAt": "2026-11-22T8:00:00Z"`), "runAt"},
		"runAt in no zone":          {job(`"runAt": "2026-11-22T08:00:00+24:00"`), "runAt"},
		"runAt in an odd zone":      {job(`"runAt": "2026-11-22T08:00:00+01:60"`), "runAt"},
		"runAt after the last year": {job(`"runAt": "9999-12-31T23:59:59-00:01"`), "runAt"},
		"runAt before the epoch":    {job(`"runAt": "0000-01-01T00:00:00+01:00"`), "runAt"},
		"an empty job type":         {`{"jobType": "", "payload": 1}`, "jobType"},
		"a job type with a space":   {`{"jobType": "a b", "payload": 1}`, "jobType"},
		"a queue in big letters":    {job(`"queue": "Default"`), "queue"},
		"a queue of 64 letters":     {job(`"queue": "` + strings.Repeat("a", 64) + `"`), "queue"},
		"empty keys":                {job(`"idempotencyKey": "", "ownerId": ""`), "idempotencyKey ownerId"},
		"a key too long":            {job(`"idempotencyKey": "` + strings.Repeat("ü", 256) + `"`), "idempotencyKey"},
		"a line break in a key":     {job(`"idempotencyKey": "a\nb"`), "idempotencyKey"},
		"an empty fairness key":     {job(`"fairnessKey": ""`), "fairnessKey"},
		"a fairness key too long":   {job(`"fairnessKey": "` + strings.Repeat("ü", 256) + `"`), "fairnessKey"},
		"a NUL in a fairness key":   {job(`"fairnessKey": "a\u0000"`), "fairnessKey"},
		"an empty ordering key":     {job(`"orderingKey": ""`), "orderingKey"},
		"an ordering key too long":  {job(`"orderingKey": "` + strings.Repeat("ü", 256) + `"`), "orderingKey"},
		"a NUL in an ordering key":  {job(`"orderingKey": "a\u0000"`), "orderingKey"},
		"what is no id to come after": {job(`"after": [7, "", "x", ` + strings.Replace(id1, "-", "", 1) + `, ` + id1 + `, "urn:uuid:` + id1[1:] + `]`),
			"after[0] after[1] after[2] after[3] after[5]"},
		"an id in big letters":      {job(`"after": ["01936F3E-5F3E-7CC0-8000-000000000001"]`), "after[0]"},
		"a job to come after twice": {job(`"after": [` + id1 + `,` + id2 + `,` + id1 + `]`), "after[2]"},
		"10,001 jobs to come after": {job(`"after": [` + ids(10_001) + `]`), "after"},
		"an unknown way to go on":   {job(`"after": [` + id1 + `], "onDependencyFailure": "hope"`), "onDependencyFailure"},
		"a way to go on alone":      {job(`"onDependencyFailure": "cancel"`), "onDependencyFailure"},
		"17 tags":                   {job(`"tags": ["` + strings.Join(strings.Split("abcdefghijklmnopq", ""), `","`) + `"]`), "tags"},
		"bad tags":                  {job(`"tags": ["a", 1, "", "a", "` + strings.Repeat("x", 65) + `"]`), "tags[1] tags[2] tags[3] tags[4]"},

		"a policy without type":      {job(`"retryPolicy": {"baseMs": 1}`), "retryPolicy.type"},
		"a policy of unknown type":   {job(`"retryPolicy": {"type": "x"}`), "retryPolicy.type"},
		"a policy's unknown field":   {job(`"retryPolicy": {"type": "fixed", "delayMs": 1, "x": 1}`), "retryPolicy.x"},
		"a policy of bad values":     {job(`"retryPolicy": {"type": "exponential", "baseMs": -1, "capMs": 1.5}`), "retryPolicy.baseMs retryPolicy.capMs"},
		"a policy of too much":       {job(`"retryPolicy": {"type": "fixed", "delayMs": 31536000001}`), "retryPolicy.delayMs"},
		"jitter above 1":             {job(`"retryPolicy": {"type": "exponential", "jitter": 1.01}`), "retryPolicy.jitter"},
		"another policy's field":     {job(`"retryPolicy": {"type": "fixed", "delayMs": 1, "baseMs": 0}`), "retryPolicy.baseMs"},
		"a fixed policy, no delay":   {job(`"retryPolicy": {"type": "fixed"}`), "retryPolicy.delayMs"},
		"a list policy, no delays":   {job(`"retryPolicy": {"type": "list", "delaysMs": []}`), "retryPolicy.delaysMs"},
		"a list policy's bad delays": {job(`"retryPolicy": {"type": "list", "delaysMs": [1, "x", -1]}`), "retryPolicy.delaysMs[1] retryPolicy.delaysMs[2]"},

		"a simulation of no steps":        {steps(``), "payload.steps"},
		"a simulation without steps":      {sim(`{}`), "payload.steps"},
		"a simulation that is no object":  {sim(`"x"`), "payload"},
		"a simulation of null":            {sim(`null`), "payload"},
		"an unknown field beside steps":   {sim(`{"steps": [{"type":"LOG","message":"x"}], "x": 1}`), "payload.x"},
		"steps that are no array":         {sim(`{"steps": {}}`), "payload.steps"},
		"a step that is no object":        {steps(`1, {"type":"LOG","message":"x"}, null`), "payload.steps[0] payload.steps[2]"},
		"10,000 steps":                    {steps(strings.Repeat(`{"type":"LOG","message":"x"},`, 9_999) + `{}`), "payload.steps"},
		"a step without type":             {steps(`{"message":"x"}`), "payload.steps[0].type"},
		"a step of unknown type":          {steps(`{"type":"WAIT"}`), "payload.steps[0].type"},
		"a step whose type is a number":   {steps(`{"type":1}`), "payload.steps[0].type"},
		"a step's unknown field":          {steps(`{"type":"LOG","message":"x","a":{"b":1}}`), "payload.steps[0].a"},
		"a step with another's field":     {steps(`{"type":"LOG","message":"x","durationMs":1}`), "payload.steps[0].durationMs"},
		"steps that lack their field":     {steps(`{"type":"LOG"},{"type":"SLEEP"},{"type":"COMPUTE"},{"type":"HTTP_CALL"}`), "payload.steps[0].message payload.steps[1].durationMs payload.steps[2].iterations payload.steps[3]"},
		"a SLEEP of a fraction":           {steps(`{"type":"SLEEP","durationMs":0.5}`), "payload.steps[0].durationMs"},
		"a negative SLEEP":                {steps(`{"type":"SLEEP","durationMs":-1}`), "payload.steps[0].durationMs"},
		"a SLEEP of over a day":           {steps(`{"type":"SLEEP","durationMs":86400001}`), "payload.steps[0].durationMs"},
		"an absurd COMPUTE":               {steps(`{"type":"COMPUTE","iterations":1e18}`), "payload.steps[0].iterations"},
		"too long a message":              {steps(`{"type":"LOG","message":"` + strings.Repeat("x", 4097) + `"}`), "payload.steps[0].message"},
		"an HTTP_CALL to a file":          {steps(`{"type":"HTTP_CALL","url":"file:///etc/passwd"}`), "payload.steps[0].url"},
		"an HTTP_CALL to nowhere":         {steps(`{"type":"HTTP_CALL","url":"http://:80/"}`), "payload.steps[0].url"},
		"an HTTP_CALL with credentials":   {steps(`{"type":"HTTP_CALL","url":"http://a:b@example.org"}`), "payload.steps[0].url"},
		"an HTTP_CALL to too long a URL":  {steps(`{"type":"HTTP_CALL","url":"http://x/` + strings.Repeat("x", 2048) + `"}`), "payload.steps[0].url"},
		"an HTTP_CALL by CONNECT":         {steps(`{"type":"HTTP_CALL","url":"http://x/","method":"CONNECT"}`), "payload.steps[0].method"},
		"a FAIL with an odd code":         {steps(`{"type":"FAIL","errorCode":"a b"}`), "payload.steps[0].errorCode"},
		"a FAIL that is maybe retryable":  {steps(`{"type":"FAIL","retryable":"yes"}`), "payload.steps[0].retryable"},
		"a FAIL for less than 0 attempts": {steps(`{"type":"FAIL","failAttempts":-1}`), "payload.steps[0].failAttempts"},
		"what is wrong in all places": {`{"jobType":"SIMULATION","payload":{"steps":[{"type":"LOG"}]},"priority":10,"x":1}`,
			"payload.steps[0].message priority x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := refused(t, c.body, apierror.InvalidJobRequest)
			if c.paths == "deep" {
				if p := e.Details[0].Path; !strings.HasPrefix(p, "payload[0][0]") || len(p) > 400 {
					t.Errorf("got path %q", p)
				}
				return
			}
			if got := paths(e); got != c.paths {
				t.Errorf("got %s, want %s\n%v", got, c.paths, e.Details)
			}
		})
	}
}

func TestDecodeNamesTwentyProblems(t *testing.T) {
	t.Parallel()
	e := refused(t, steps(strings.Repeat(`{},`, 500)+`{}`), apierror.InvalidJobRequest)
	if len(e.Details) != strictjson.MaxProblems || e.Details[19].Path != "payload.steps[19].type" {
		t.Errorf("got %d: %v", len(e.Details), e.Details)
	}
	if want := "invalid job request: payload.steps[0].type is required (and 19 more)"; e.Message != want {
		t.Errorf("got %q, want %q", e.Message, want)
	}
}

func TestAnAnswerToAHugeNameIsSmall(t *testing.T) {
	t.Parallel()
	name := strings.Repeat("ü", 100_000)
	for _, body := range []string{
		job(`"` + name + `": 1`), own(`{"` + name + `": 1, "` + name + `": 2}`), own(`{"` + name + `": "\u0000"}`),
	} {
		e := refused(t, body, apierror.InvalidJobRequest)
		if n := len(fmt.Sprint(e, e.Details)); n > 2_000 {
			t.Errorf("an answer of %d bytes", n)
		}
	}
}

func TestDecodeRefusesTooLargeAJob(t *testing.T) {
	t.Parallel()
	refused(t, own(`"`+strings.Repeat("x", jobspec.MaxJobBytes)+`"`), apierror.PayloadTooLarge)
}

func TestDecodeBatch(t *testing.T) {
	t.Parallel()
	jobs, err := jobspec.DecodeBatch([]byte(` {"jobs": [ {"a": 1, "a": 1}, 5 , "` + "\xff" + `"]} `))
	if err != nil || len(jobs) != 3 || string(jobs[0]) != `{"a": 1, "a": 1}` || string(jobs[1]) != "5" {
		t.Errorf("got %q, %v", jobs, err)
	}
	for name, c := range map[string]struct{ body, paths string }{
		"nothing":             {"", "-"},
		"no object":           {"[]", "-"},
		"no jobs":             {"{}", "jobs"},
		"an empty batch":      {`{"jobs": []}`, "jobs"},
		"jobs of null":        {`{"jobs": null}`, "jobs"},
		"jobs twice":          {`{"jobs": [1], "jobs": [2]}`, "jobs"},
		"an unknown field":    {`{"jobs": [1], "atomic": true}`, "atomic"},
		"broken JSON":         {`{"jobs": [{"a": }]}`, "jobs[0].a"},
		"more JSON after it":  {`{"jobs": [1]}{}`, "-"},
		"1,001 jobs":          {`{"jobs": [` + strings.Repeat("1,", 1000) + `1]}`, "jobs"},
		"a million brackets":  {`{"jobs": [` + strings.Repeat("[", 1_000_000), "deep"},
		"a million open jobs": {strings.Repeat(`{"jobs":`, 1_000_000), "deep"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := jobspec.DecodeBatch([]byte(c.body))
			if e := invalid(t, err, apierror.InvalidJobRequest); c.paths != "deep" && paths(e) != c.paths {
				t.Errorf("got %s, want %s\n%v", paths(e), c.paths, e.Details)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	rules := jobspec.Rules{Queues: []string{"default", "mail"}, JobTypes: []string{"OWN"}, Now: now}
	anyType := rules
	anyType.JobTypes = []string{"*"}
	calling := anyType
	calling.CheckURL = func(text string) error {
		if text != "good" && text != "http://good" {
			return errors.New("must be good")
		}
		return nil
	}
	for name, c := range map[string]struct {
		body  string
		rules jobspec.Rules
		paths string
	}{
		"a URL to call, that can be":       {`{"jobType": "EXTERNAL", "payload": {"url": "http://good"}}`, calling, ""},
		"one that cannot":                  {`{"jobType": "EXTERNAL", "payload": {"url": "http://bad"}}`, calling, "payload.url"},
		"a function's that cannot":         {`{"jobType": "FUNCTION", "payload": {"url": "http://bad"}}`, calling, "payload.url"},
		"a url of another type's":          {`{"jobType": "OTHER", "payload": {"url": "http://bad"}}`, calling, ""},
		"a built-in type needs no listing": {steps(`{"type":"FAIL"}`), rules, ""},
		"a listed type and queue":          {`{"jobType": "OWN", "payload": 1, "queue": "mail"}`, rules, ""},
		"any type, where any is allowed":   {`{"jobType": "OTHER", "payload": 1}`, anyType, ""},
		"an unlisted type and queue":       {`{"jobType": "own", "payload": 1, "queue": "x"}`, rules, "jobType queue"},
		"a star is no type":                {`{"jobType": "OTHER", "payload": 1}`, rules, "jobType"},
		"ten years ahead":                  {job(`"runAt": "2036-11-19T00:00:00Z"`), anyType, ""},
		"over ten years ahead":             {job(`"runAt": "2036-11-19T00:00:01Z"`), anyType, "runAt"},
		"absurdly far ahead":               {job(`"runAt": "9999-12-31T23:59:59Z"`), anyType, "runAt"},
		"expiring later":                   {job(`"expiresAt": "2026-11-22T00:00:00.000001Z"`), anyType, ""},
		"expiring now":                     {job(`"expiresAt": "2026-11-22T00:00:00Z"`), anyType, "expiresAt"},
		"expiring when it becomes due":     {job(`"expiresAt": "2026-11-22T00:00:01Z", "delayMs": 1000`), anyType, "expiresAt"},
		"expiring after it becomes due":    {job(`"expiresAt": "2026-11-22T00:00:02Z", "delayMs": 1000`), anyType, ""},
		"expiring before it may run":       {job(`"expiresAt": "2026-11-23T00:00:00Z", "runAt": "2026-11-24T00:00:00Z"`), anyType, "expiresAt"},
		"expiring after a past time":       {job(`"expiresAt": "2026-11-21T00:00:00Z", "runAt": "2026-11-20T00:00:00Z"`), anyType, "expiresAt"},
		"expiring ten years later":         {job(`"expiresAt": "2046-11-17T00:00:00Z", "runAt": "2036-11-19T00:00:00Z"`), anyType, ""},
		"expiring absurdly late":           {job(`"expiresAt": "9999-12-31T23:59:59Z"`), anyType, "expiresAt"},
		"a callback that may be called":    {job(`"callbackUrl": "good"`), calling, ""},
		"a callback that may not":          {job(`"callbackUrl": "bad"`), calling, "callbackUrl"},
		"the present, where none is given": {job(`"runAt": "2026-11-19T00:00:01Z"`), jobspec.Rules{
			Queues: anyType.Queues, JobTypes: anyType.JobTypes}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := decode(t, c.body)
			err := req.Validate(c.rules)
			if c.paths == "" && err != nil {
				t.Fatal(err)
			}
			if c.paths != "" {
				if got := paths(invalid(t, err, apierror.InvalidJobRequest)); got != c.paths {
					t.Errorf("got %s, want %s", got, c.paths)
				}
			}
		})
	}
}

func TestDueAt(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	for body, want := range map[string]time.Duration{
		`"priority": 0`:                   0,
		`"delayMs": 1500`:                 1500 * time.Millisecond,
		`"runAt": "2026-11-22T01:00:00Z"`: time.Hour,
		`"runAt": "2020-01-01T00:00:00Z"`: 0,
	} {
		req := decode(t, job(body))
		if got := req.DueAt(now).Sub(now); got != want {
			t.Errorf("%s: got %s, want %s", body, got, want)
		}
	}
}

func own(payload string) string { return `{"jobType": "OWN", "payload": ` + payload + `}` }
func job(fields string) string  { return `{"jobType": "OWN", "payload": {}, ` + fields + `}` }
func sim(payload string) string { return `{"jobType": "SIMULATION", "payload": ` + payload + `}` }
func steps(list string) string  { return sim(`{"steps": [` + list + `]}`) }

func decode(t *testing.T, body string) jobspec.Request {
	t.Helper()
	req, err := jobspec.Decode([]byte(body))
	if err != nil {
		t.Fatalf("decode %.200s: %v", body, err)
	}
	return req
}

func refused(t *testing.T, body string, code apierror.Code) *apierror.Error {
	t.Helper()
	req, err := jobspec.Decode([]byte(body))
	if !reflect.DeepEqual(req, jobspec.Request{}) {
		t.Errorf("an error, and yet %+v", req)
	}
	return invalid(t, err, code)
}

func invalid(t testing.TB, err error, code apierror.Code) *apierror.Error {
	t.Helper()
	var e *apierror.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Fatalf("got %v, want %s", err, code)
	}
	return e
}

func paths(e *apierror.Error) string {
	var list []string
	for _, d := range e.Details {
		if d.Path == "" {
			d.Path = "-"
		}
		list = append(list, strings.ReplaceAll(d.Path, " ", "·"))
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}
