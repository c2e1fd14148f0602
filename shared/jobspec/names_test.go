package jobspec_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/shared/jobspec"
)

func TestNamesThatNoRequestCouldUseAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rules jobspec.Rules
		want  string // empty: none
	}{
		{jobspec.Rules{Queues: []string{"default", "mail-2"}, JobTypes: []string{"PRIMES", "a.b_c-1", "*"}}, ""},
		{jobspec.Rules{Queues: []string{"A B"}}, `QUEUES: "A B" must be 1 to 63 small letters, digits or '-'`},
		{jobspec.Rules{Queues: []string{"a", " b"}}, `QUEUES: " b" must be 1 to 63 small letters, digits or '-'`},
		{jobspec.Rules{Queues: []string{"a", "a"}}, `QUEUES: "a" is there twice`},
		{jobspec.Rules{JobTypes: []string{"a b"}},
			`JOB_TYPES: "a b" must be a letter, then letters, digits, '.', '_' or '-', at most 100 together`},
		{jobspec.Rules{JobTypes: []string{""}},
			`JOB_TYPES: "" must be a letter, then letters, digits, '.', '_' or '-', at most 100 together`},
	} {
		got := ""
		if err := c.rules.Check(); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%+v: %q, want %q", c.rules, got, c.want)
		}
	}
}

func TestRetryPoliciesAreOfTypesThatThereAre(t *testing.T) {
	t.Parallel()
	own := []string{"PRIMES"}
	for _, c := range []struct {
		types []string
		text  string
		want  string // empty: none
	}{
		{nil, "", ""},
		{own, `{"*": {"maxRetryCount": 1}, "EMAIL": {"maxRetryCount": 2}, "PRIMES": {"maxRetryCount": 3}}`, ""},
		{[]string{"*"}, `{"ANY": {"maxRetryCount": 1}}`, ""},
		{own, `{"EMIAL": {"maxRetryCount": 1}}`, `RETRY_POLICIES: the job type of an entry is neither built in nor listed in JOB_TYPES: "EMIAL"; ` +
			"the job types are EMAIL, EXTERNAL, FUNCTION, PRIMES, REPORT, SIMULATION"},
		{own, `{`, "RETRY_POLICIES: is not valid JSON"},
	} {
		_, err := jobspec.Rules{JobTypes: c.types}.Defaults(c.text)
		if err == nil && c.want != "" || err != nil && (c.want == "" || !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.text, err, c.want)
		}
	}
}

func TestARefusalOfAJobTypeListsTheTypes(t *testing.T) {
	t.Parallel()
	many := make([]string, 30)
	for i := range many {
		many[i] = fmt.Sprintf("T%02d", i)
	}
	for _, c := range []struct {
		types []string
		want  string
	}{
		{nil, `jobType is neither built in nor listed in JOB_TYPES: "PRIMES"; the job types are ` +
			"EMAIL, EXTERNAL, FUNCTION, REPORT, SIMULATION"},
		{[]string{"ZIP", "EMAIL", "Books"}, `; the job types are Books, EMAIL, EXTERNAL, FUNCTION, REPORT, SIMULATION, ZIP`},
		{many, "SIMULATION, T00, T01, T02, T03, T04, T05, T06, T07, T08, T09, T10, T11, T12, T13, T14 and 15 more"},
	} {
		req := jobspec.Request{JobType: "PRIMES", Queue: "default"}
		err := req.Validate(jobspec.Rules{Queues: []string{"default"}, JobTypes: c.types})
		if err == nil || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}
