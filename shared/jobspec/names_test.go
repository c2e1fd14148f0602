package jobspec_test

import (
	"errors"
	"fmt"
	"slices"
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

// known lists the built-in job types and others as a refusal does.
func known(others ...string) string {
	return strings.Join(slices.Sorted(slices.Values(append(jobspec.Builtin(), others...))), ", ")
}

func TestARefusalOfAJobTypeListsTheTypes(t *testing.T) {
	t.Parallel()
	many := make([]string, 30)
	for i := range many {
		many[i] = fmt.Sprintf("T%02d", i)
	}
	shown := 20 - len(jobspec.Builtin())
	for _, c := range []struct {
		types []string
		want  string
	}{
		{nil, `jobType is not known, since no worker has run it yet: "PRIMES"; the job types are ` + known()},
		{[]string{"ZIP", jobspec.Email, "Books"}, `; the job types are ` + known("ZIP", "Books")},
		{many, fmt.Sprintf("SIMULATION, %s and %d more", strings.Join(many[:shown], ", "), len(many)-shown)},
	} {
		req := jobspec.Request{JobType: "PRIMES", Queue: "default"}
		err := req.Validate(jobspec.Rules{Queues: []string{"default"}, JobTypes: c.types})
		if err == nil || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

func TestATypeThatAWorkerOfTheOwnerHasRunIsTaken(t *testing.T) {
	t.Parallel()
	away := errors.New("the database is away")
	rules := jobspec.Rules{
		Queues: []string{"default"},
		Learned: func(owner, jobType string) (bool, []string, error) {
			if owner == "unlucky" {
				return false, nil, away
			}
			return owner == "acme" && jobType == "PRIMES", []string{"ZIP"}, nil
		},
	}
	for owner, want := range map[string]string{
		"acme":    "",
		"other":   `jobType is not known, since no worker has run it yet: "PRIMES"; the job types are ` + known("ZIP"),
		"unlucky": away.Error(),
	} {
		req := jobspec.Request{JobType: "PRIMES", Queue: "default", OwnerID: owner}
		err := req.Validate(rules)
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasSuffix(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", owner, err, want)
		}
	}
}
