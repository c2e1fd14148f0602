package gateway_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/shared/apierror"
)

const (
	bad   = apierror.InvalidJobRequest
	large = apierror.PayloadTooLarge
	media = apierror.UnsupportedMediaType
)

// with inserts members into a valid job.
func with(members string) string { return strings.Replace(plainJob, "{", "{"+members+", ", 1) }

func steps(steps string) string {
	return `{"jobType": "SIMULATION", "payload": {"steps": [` + steps + `]}}`
}

func manySteps(n int) string {
	return steps(strings.TrimSuffix(strings.Repeat(`{"type":"LOG","message":"x"},`, n), ","))
}

// hostileJobs are bodies that are not valid jobs, with the expected error code and a path in its details.
var hostileJobs = map[string]struct {
	body string
	code apierror.Code
	path string
}{
	"nothing":                       {``, bad, ""},
	"white space":                   {"  \n", bad, ""},
	"broken JSON":                   {`{"jobType": `, bad, ""},
	"trailing JSON":                 {plainJob + `{}`, bad, ""},
	"a trailing word":               {plainJob + ` x`, bad, ""},
	"an array":                      {`[` + plainJob + `]`, bad, ""},
	"null":                          {`null`, bad, ""},
	"a comment":                     {`/* hi */` + plainJob, bad, ""},
	"a byte order mark":             {"\ufeff" + plainJob, bad, ""},
	"no type":                       {`{"payload": {}}`, bad, "jobType"},
	"no payload":                    {`{"jobType": "MAIL"}`, bad, "payload"},
	"a type that no worker runs":    {`{"jobType": "UNKNOWN", "payload": {}}`, bad, "jobType"},
	"an unknown field":              {with(`"colour": "red"`), bad, "colour"},
	"a field of a later day":        {with(`"colour": "red"`), bad, "colour"},
	"a callback by ftp":             {with(`"callbackUrl": "ftp://example.org"`), bad, "callbackUrl"},
	"a callback with a password":    {with(`"callbackUrl": "https://me:it@example.org"`), bad, "callbackUrl"},
	"a callback without a host":     {with(`"callbackUrl": "https://"`), bad, "callbackUrl"},
	"a callback to a number":        {with(`"callbackUrl": "http://2130706433/"`), bad, "callbackUrl"},
	"a callback with a fragment":    {with(`"callbackUrl": "https://example.org/#x"`), bad, "callbackUrl"},
	"a callback far too long":       {with(`"callbackUrl": "https://example.org/` + strings.Repeat("x", 2000) + `"`), bad, "callbackUrl"},
	"an empty callback":             {with(`"callbackUrl": ""`), bad, "callbackUrl"},
	"a field in another case":       {with(`"Priority": 3`), bad, "Priority"},
	"a field twice":                 {with(`"priority": 1, "priority": 2`), bad, "priority"},
	"an unknown field of a step":    {steps(`{"type": "LOG", "message": "x", "loud": true}`), bad, "payload.steps[0].loud"},
	"an unknown field of a payload": {`{"jobType": "SIMULATION", "payload": {"steps": [], "x": 1}}`, bad, "payload.x"},
	"no steps":                      {steps(``), bad, "payload.steps"},
	"10,000 steps":                  {manySteps(10_000), bad, "payload.steps"},
	"1,001 steps":                   {manySteps(1_001), bad, "payload.steps"},
	"a step of no kind":             {steps(`{"type": "DANCE"}`), bad, "payload.steps[0].type"},
	"the third step wrong":          {steps(`{"type":"LOG","message":"a"},{"type":"LOG","message":"b"},{"type":"SLEEP"}`), bad, "payload.steps[2].durationMs"},
	"a sleep of a thousand years":   {steps(`{"type": "SLEEP", "durationMs": 31536000000000}`), bad, "payload.steps[0].durationMs"},
	"a sleep beyond 64 bits":        {steps(`{"type": "SLEEP", "durationMs": 1e300}`), bad, "payload.steps[0].durationMs"},
	"a sleep of less than nothing":  {steps(`{"type": "SLEEP", "durationMs": -1}`), bad, "payload.steps[0].durationMs"},
	"a sleep in words":              {steps(`{"type": "SLEEP", "durationMs": "5"}`), bad, "payload.steps[0].durationMs"},
	"a computation without end":     {steps(`{"type": "COMPUTE", "iterations": 99999999999999999999}`), bad, "payload.steps[0].iterations"},
	"a URL of a file":               {steps(`{"type": "HTTP_CALL", "url": "file:///etc/passwd"}`), bad, "payload.steps[0].url"},
	"a URL with credentials":        {steps(`{"type": "HTTP_CALL", "url": "http://a:b@example.org/"}`), bad, "payload.steps[0].url"},
	"101 retries":                   {with(`"maxRetryCount": 101`), bad, "maxRetryCount"},
	"fewer than no retries":         {with(`"maxRetryCount": -1`), bad, "maxRetryCount"},
	"half a retry":                  {with(`"maxRetryCount": 0.5`), bad, "maxRetryCount"},
	"priority 10":                   {with(`"priority": 10`), bad, "priority"},
	"no time":                       {with(`"timeoutMs": 0`), bad, "timeoutMs"},
	"eight days":                    {with(`"timeoutMs": 691200000`), bad, "timeoutMs"},
	"a delay of a century":          {with(`"delayMs": 3155760000000`), bad, "delayMs"},
	"a time in a century":           {with(`"runAt": "2126-01-01T00:00:00Z"`), bad, "runAt"},
	"a time without a zone":         {with(`"runAt": "2026-11-22T08:00:00"`), bad, "runAt"},
	"a time in words":               {with(`"runAt": "tomorrow"`), bad, "runAt"},
	"a time and a delay":            {with(`"runAt": "2026-11-22T08:00:00Z", "delayMs": 1`), bad, "delayMs"},
	"a time to expire that is over": {with(`"expiresAt": "2020-01-01T00:00:00Z"`), bad, "expiresAt"},
	"expiry before it may run":      {with(`"runAt": "2027-01-02T00:00:00Z", "expiresAt": "2027-01-01T00:00:00Z"`), bad, "expiresAt"},
	"an expiry in ages":             {with(`"expiresAt": "9999-12-31T23:59:59Z"`), bad, "expiresAt"},
	"an ordering key with NUL":      {with(`"orderingKey": "a\u0000"`), bad, "orderingKey"},
	"an ordering key too long":      {with(`"orderingKey": "` + strings.Repeat("k", 256) + `"`), bad, "orderingKey"},
	"after what is no id":           {with(`"after": ["1 or 1=1"]`), bad, "after[0]"},
	"after an unknown job":          {with(`"after": ["00000000-0000-0000-0000-000000000000"]`), bad, "after[0]"},
	"a failure of no dependency":    {with(`"onDependencyFailure": "run"`), bad, "onDependencyFailure"},
	"a policy of no kind":           {with(`"retryPolicy": {"type": "hope"}`), bad, "retryPolicy.type"},
	"a policy with a long list":     {with(`"retryPolicy": {"type": "list", "delaysMs": [` + strings.TrimSuffix(strings.Repeat("1,", 101), ",") + `]}`), bad, "retryPolicy.delaysMs"},
	"a queue that is not here":      {with(`"queue": "elsewhere"`), bad, "queue"},
	"a queue that is a path":        {with(`"queue": "../etc"`), bad, "queue"},
	"a key of 256 characters":       {with(`"idempotencyKey": "` + strings.Repeat("k", 256) + `"`), bad, "idempotencyKey"},
	"an empty key":                  {with(`"idempotencyKey": ""`), bad, "idempotencyKey"},
	"a key with NUL":                {with(`"idempotencyKey": "a\u0000b"`), bad, "idempotencyKey"},
	"17 tags":                       {with(`"tags": ["` + strings.Join(strings.Split("abcdefghijklmnopq", ""), `","`) + `"]`), bad, "tags"},
	"a tag of 65 characters":        {with(`"tags": ["` + strings.Repeat("ü", 65) + `"]`), bad, "tags[0]"},
	"a tag with NUL":                {with(`"tags": ["a\u0000"]`), bad, "tags[0]"},
	"a payload with NUL":            {`{"jobType": "MAIL", "payload": {"to": "a\u0000"}}`, bad, "payload.to"},
	"a NUL byte":                    {"{\"jobType\": \"MAIL\", \"payload\": \"a\x00\"}", bad, "payload"},
	"bad UTF-8":                     {"{\"jobType\": \"MAIL\", \"payload\": \"\xff\xfe\"}", bad, "payload"},
	"bad UTF-8 in a name":           {"{\"jobType\": \"MAIL\", \"payload\": {\"\xc3\x28\": 1}}", bad, ""},
	"half a character":              {`{"jobType": "MAIL", "payload": "\ud800"}`, bad, "payload"},
	"a number beyond every double":  {`{"jobType": "MAIL", "payload": 1e999}`, bad, "payload"},
	"a hundred thousand brackets":   {`{"jobType": "MAIL", "payload": ` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`, bad, ""},
	"a job of over 512 KiB":         {`{"jobType": "MAIL", "payload": "` + strings.Repeat("x", 512<<10) + `"}`, large, ""},
}

func TestHostileJobsLeaveNoRow(t *testing.T) {
	t.Parallel()
	h := open(t)
	for name, c := range hostileJobs {
		t.Run(name, func(t *testing.T) {
			r := h.post("/api/jobs", c.body)
			r.t = t
			if c.path == "" {
				r.wantError(c.code)
			} else {
				r.wantError(c.code, c.path)
			}
		})
	}
	if n := h.rows(); n != 0 {
		t.Errorf("%d jobs", n)
	}
}

func TestHostileJobsAsEventsAreNeverSentAgain(t *testing.T) {
	t.Parallel()
	h := open(t)
	for name, c := range hostileJobs {
		t.Run(name, func(t *testing.T) {
			r := h.post("/events", c.body, "Ce-Specversion", "1.0", "Ce-Id", "1", "Ce-Source", "/t", "Ce-Type", submitType)
			r.t = t
			r.wantError(c.code)
		})
	}
	if n := h.rows(); n != 0 {
		t.Errorf("%d jobs", n)
	}
}

func TestHostileRequestsAreRefused(t *testing.T) {
	t.Parallel()
	h := open(t)
	const json = "application/json"
	none := "/api/jobs/00000000-0000-0000-0000-000000000000"
	for name, c := range map[string]struct {
		method, path, body string
		code               apierror.Code
		detail             string
		headers            []string
	}{
		"a form":                    {"POST", "/api/jobs", plainJob, media, "", []string{"Content-Type", "application/x-www-form-urlencoded"}},
		"no media type":             {"POST", "/api/jobs", plainJob, media, "", nil},
		"a media type of nonsense":  {"POST", "/api/jobs", plainJob, media, "", []string{"Content-Type", "json;;;"}},
		"text in Latin 1":           {"POST", "/api/jobs", plainJob, media, "", []string{"Content-Type", json + "; charset=latin1"}},
		"a compressed body":         {"POST", "/api/jobs", plainJob, media, "", []string{"Content-Type", json, "Content-Encoding", "gzip"}},
		"a batch as a form":         {"POST", "/api/jobs/batch", `{"jobs": []}`, media, "", []string{"Content-Type", "text/plain"}},
		"an empty batch":            {"POST", "/api/jobs/batch", `{"jobs": []}`, bad, "jobs", []string{"Content-Type", json}},
		"a batch without jobs":      {"POST", "/api/jobs/batch", `{}`, bad, "jobs", []string{"Content-Type", json}},
		"a batch of 1,001":          {"POST", "/api/jobs/batch", `{"jobs": [` + strings.Repeat("1,", 1000) + `1]}`, bad, "jobs", []string{"Content-Type", json}},
		"a batch of more than that": {"POST", "/api/jobs/batch", `{"jobs": [], "x": 1}`, bad, "x", []string{"Content-Type", json}},
		"a batch with a tail":       {"POST", "/api/jobs/batch", `{"jobs": [` + plainJob + `]} 1`, bad, "", []string{"Content-Type", json}},
		"a batch of over 16 MiB":    {"POST", "/api/jobs/batch", `{"jobs": ["` + strings.Repeat("x", 16<<20) + `"]}`, large, "", []string{"Content-Type", json}},
		"an id that is none":        {"GET", "/api/jobs/1%27%20or%201=1", "", apierror.JobNotFound, "", nil},
		"an id in braces":           {"GET", "/api/jobs/%7B01936f3e-5f3e-7cc0-8000-0123456789ab%7D", "", apierror.JobNotFound, "", nil},
		"a job that is not there":   {"GET", none, "", apierror.JobNotFound, "", nil},
		"logs of no job":            {"GET", none + "/logs", "", apierror.JobNotFound, "", nil},
		"logs of attempt 0":         {"GET", none + "/logs?attempt=0", "", bad, "attempt", nil},
		"a cancel of no job":        {"POST", none + "/cancel", "", apierror.JobNotFound, "", nil},
		"a retry of nonsense":       {"POST", "/api/jobs/x/retry", "", apierror.JobNotFound, "", nil},
		"a wait of an hour":         {"GET", none + "?wait=1h", "", bad, "wait", nil},
		"a wait of two minutes":     {"GET", none + "?wait=120s", "", bad, "wait", nil},
		"a wait of less":            {"GET", none + "?wait=-5s", "", bad, "wait", nil},
		"a wait of centuries":       {"GET", none + "?wait=99999999999999999999s", "", bad, "wait", nil},
		"a wait twice":              {"GET", none + "?wait=1s&wait=2s", "", bad, "wait", nil},
		"an unknown parameter":      {"GET", "/api/jobs?colour=red", "", bad, "colour", nil},
		"a state of no job":         {"GET", "/api/jobs?status=HAPPY", "", bad, "status", nil},
		"an empty filter":           {"GET", "/api/jobs?queue=", "", bad, "queue", nil},
		"a page of 201":             {"GET", "/api/jobs?limit=201", "", bad, "limit", nil},
		"a page of none":            {"GET", "/api/jobs?limit=0", "", bad, "limit", nil},
		"a page of words":           {"GET", "/api/jobs?limit=ten", "", bad, "limit", nil},
		"a cursor of nonsense":      {"GET", "/api/jobs?cursor=%27%3B--", "", bad, "cursor", nil},
		"a tag with NUL":            {"GET", "/api/jobs?tag=a%00", "", bad, "tag", nil},
		"a tag of bad UTF-8":        {"GET", "/api/jobs?tag=%ff", "", bad, "tag", nil},
		"since yesterday":           {"GET", "/api/jobs?since=yesterday", "", bad, "since", nil},
		"a path that is none":       {"GET", "/api/job", "", apierror.NotFound, "", nil},
		"a path with a slash":       {"GET", "/api/jobs/", "", apierror.NotFound, "", nil},
		"a path from above":         {"GET", "/api/../etc/passwd", "", apierror.NotFound, "", nil},
		"a method that is none":     {"PUT", "/api/jobs", plainJob, apierror.MethodNotAllowed, "", []string{"Content-Type", json}},
		"a put":                     {"PUT", none, "", apierror.MethodNotAllowed, "", nil},
		"events got":                {"GET", "/events", "", apierror.MethodNotAllowed, "", nil},
		"a handshake of a webhook":  {"OPTIONS", "/events", "", apierror.MethodNotAllowed, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := h.do(c.method, c.path, c.body, c.headers...)
			r.t = t
			r.wantError(c.code)
			if c.detail != "" {
				r.wantError(c.code, c.detail)
			}
			if r.status == http.StatusMethodNotAllowed && r.header.Get("Allow") == "" {
				t.Error("405 without Allow")
			}
		})
	}
	if n := h.rows(); n != 0 {
		t.Errorf("%d jobs", n)
	}
}
