package migrations_test

import (
	"slices"
	"testing"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

func TestTheRightsOfRolesAreReadFromTheSQLThatGrantsThem(t *testing.T) {
	t.Parallel()
	for _, set := range sets {
		conn := connect(t, pgtest.Database(t, set))
		for role, needed := range set.Rights() {
			granted, err := migrations.Granted(t.Context(), conn, role)
			if differ := granted.Against(needed); err != nil || len(differ) > 0 || len(granted) == 0 {
				t.Errorf("%s: %q of %d, %v", role, differ, len(granted), err)
			}
		}
	}
}

func TestEachDifferenceOfRightsIsNamed(t *testing.T) {
	t.Parallel()
	needed := migrations.Rights{"SELECT jobs": nil, "UPDATE jobs": {"a", "b"}, "EXECUTE f": nil}
	for difference, have := range map[string]migrations.Rights{
		"lacks SELECT on jobs":                       {"UPDATE jobs": {"a", "b"}, "EXECUTE f": nil},
		"lacks SELECT on jobs beyond the columns a":  {"SELECT jobs": {"a"}, "UPDATE jobs": {"a", "b"}, "EXECUTE f": nil},
		"lacks UPDATE (b) on jobs":                   {"SELECT jobs": nil, "UPDATE jobs": {"a"}, "EXECUTE f": nil},
		"needs no UPDATE (c) on jobs":                {"SELECT jobs": nil, "UPDATE jobs": {"a", "b", "c"}, "EXECUTE f": nil},
		"needs UPDATE on jobs for some columns only": {"SELECT jobs": nil, "UPDATE jobs": nil, "EXECUTE f": nil},
		"needs no DELETE on jobs":                    {"SELECT jobs": nil, "UPDATE jobs": {"a", "b"}, "EXECUTE f": nil, "DELETE jobs": nil},
	} {
		if got := have.Against(needed); !slices.Equal(got, []string{difference}) {
			t.Errorf("%q, want %q", got, difference)
		}
	}
	if got := needed.Against(needed); got != nil {
		t.Errorf("the same rights: %q", got)
	}
}
