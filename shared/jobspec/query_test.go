package jobspec_test

import (
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
)

func TestFromQuery(t *testing.T) {
	t.Parallel()
	values := query(t, "jobType=OWN&queue=mail&priority=9&maxRetryCount=0&timeoutMs=1000&delayMs=5&tags=a,b&tags=c"+
		"&orderingKey=customer-9&fairnessKey=eu&keepBuild=true&callbackUrl=https://example.org/done%3Fa%3Db&onDependencyFailure=run&after="+strings.Trim(id2, `"`)+","+strings.Trim(id1, `"`))
	got, err := jobspec.FromQuery(values, []byte(` {"order": 17} `))
	want := jobspec.Request{JobType: "OWN", Payload: got.Payload, Queue: "mail", Spec: jobevent.Spec{Priority: 9, TimeoutMs: (time.Second).Milliseconds(), KeepBuild: true},
		Delay: 5 * time.Millisecond, Tags: []string{"a", "b", "c"}, OrderingKey: "customer-9", FairnessKey: "eu",
		After: []uuid.UUID{uuid.MustParse(strings.Trim(id2, `"`)), uuid.MustParse(strings.Trim(id1, `"`))}, RunAnyway: true,
		CallbackURL: "https://example.org/done?a=b",
		Silent:      jobspec.Silent{RetryPolicy: true}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v, %v\nwant %+v", got, err, want)
	}

	got, err = jobspec.FromQuery(query(t, "jobType=OWN&runAt=2026-11-22T08:00:00%2B01:00&expiresAt=2026-11-22T08:00:00Z"), []byte(`1`))
	if err != nil || !got.ExpiresAt.Equal(time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)) || !got.RunAt.Equal(time.Date(2026, 11, 22, 7, 0, 0, 0, time.UTC)) ||
		got.Queue != "default" || got.MaxRetryCount != 3 || got.Timeout() != 10*time.Minute {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestFromQueryRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ query, payload, paths string }{
		"no job type":           {"queue=default", "1", "jobType"},
		"an unknown parameter":  {"jobType=A&color=red", "1", "color"},
		"an odd parameter":      {"jobType=A&%00%ff=red", "1", `["\x00\xff"]`},
		"a parameter twice":     {"jobType=A&jobType=B&runAt=2026-11-22T08:00:00Z&runAt=2026-11-22T08:00:00Z", "1", "jobType runAt"},
		"numbers that are none": {"jobType=A&priority=&maxRetryCount=1.5&timeoutMs=1e3&delayMs=x", "1", "delayMs maxRetryCount priority timeoutMs"},
		"numbers out of range":  {"jobType=A&priority=10&maxRetryCount=-1&timeoutMs=0&delayMs=-1", "1", "delayMs maxRetryCount priority timeoutMs"},
		"bad names":             {"jobType=a%20b&queue=A", "1", "jobType queue"},
		"bad instants":          {"jobType=A&runAt=tomorrow", "1", "runAt"},
		"two times":             {"jobType=A&runAt=2026-11-22T08:00:00Z&delayMs=5", "1", "delayMs"},
		"bad tags":              {"jobType=A&tags=a,,a," + strings.Repeat("x", 65) + ",%00,%ff", "1", "tags[1] tags[2] tags[3] tags[4] tags[5]"},
		"keepBuild of a word":   {"jobType=A&keepBuild=yes", "1", "keepBuild"},
		"a bad fairness key":    {"jobType=A&fairnessKey=", "1", "fairnessKey"},
		"bad keys":              {"jobType=A&orderingKey=", "1", "orderingKey"},
		"a key that is no text": {"jobType=A&orderingKey=%ff", "1", "orderingKey"},
		"a key too long":        {"jobType=A&orderingKey=" + strings.Repeat("x", 256), "1", "orderingKey"},
		"no job to come after":  {"jobType=A&after=", "1", "after[0]"},
		"bad jobs to come after": {"jobType=A&after=x," + strings.Trim(id1, `"`) + "&after=" + strings.Trim(id1, `"`), "1",
			"after[0] after[2]"},
		"10,001 jobs to come after": {"jobType=A&after=" + strings.Repeat(",", 10_000), "1", "after"},
		"a way to go on alone":      {"jobType=A&onDependencyFailure=run", "1", "onDependencyFailure"},
		"an unknown way to go on": {"jobType=A&onDependencyFailure=x&after=" + strings.Trim(id1, `"`), "1",
			"onDependencyFailure"},
		"a bad time to expire": {"jobType=A&expiresAt=tomorrow", "1", "expiresAt"},
		"17 tags":              {"jobType=A&tags=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17", "1", "tags"},
		"no data":              {"jobType=A", "", "payload"},
		"data that is no JSON": {"jobType=A", "hello", "payload"},
		"two data":             {"jobType=A", "1 2", "payload"},
		"data with a NUL":      {"jobType=A", `{"a": "\u0000"}`, "payload.a"},
		"data with a name twice": {
			"jobType=A", `{"a": 1, "a": 2}`, "payload.a"},
		"no simulation":       {"jobType=SIMULATION", `{"steps": [{"type": "LOG"}]}`, "payload.steps[0].message"},
		"all of it together":  {"priority=x", `}`, "jobType payload priority"},
		"thousands of tags":   {"jobType=A&tags=" + strings.Repeat(",", 10_000), "1", "tags tags[0] tags[10] tags[11] tags[12] tags[13] tags[14] tags[15] tags[1] tags[2] tags[3] tags[4] tags[5] tags[6] tags[7] tags[8] tags[9]"},
		"deeply nested data":  {"jobType=A", strings.Repeat("[", 100_000), "deep"},
		"a number too strong": {"jobType=A", "1e999", "payload"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := jobspec.FromQuery(query(t, c.query), []byte(c.payload))
			if e := invalid(t, err, apierror.InvalidJobRequest); c.paths != "deep" && paths(e) != c.paths {
				t.Errorf("got %s, want %s\n%v", paths(e), c.paths, e.Details)
			}
		})
	}
	_, err := jobspec.FromQuery(query(t, "jobType=A"), make([]byte, jobspec.MaxJobBytes+1))
	invalid(t, err, apierror.PayloadTooLarge)
}

func query(t *testing.T, s string) url.Values {
	t.Helper()
	values, err := url.ParseQuery(s)
	if err != nil {
		t.Fatal(err)
	}
	return values
}
