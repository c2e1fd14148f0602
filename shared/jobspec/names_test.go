package jobspec_test

import (
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
