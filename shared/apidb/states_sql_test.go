package apidb_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/shared/jobstate"
)

var (
	stateList    = regexp.MustCompile(`\bstatus (?:not )?in \(([^)]*)\)`)
	stateLiteral = regexp.MustCompile(`'([A-Z]+)'`)
)

// SQL cannot name a list of states: a function in its place would hide from the planner which index it may use. So the
// lists stand in the statements, and this test compares them with jobstate.
func TestListsOfStatesInStatementsAreThoseOfJobstate(t *testing.T) {
	t.Parallel()
	states := jobstate.All()
	var terminal []string
	for _, state := range states {
		if state.Terminal() {
			terminal = append(terminal, string(state))
		}
	}
	incomplete := []string{"FAILED,CANCELLED"} // of jobs that did not complete
	files, err := filepath.Glob("sql/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	lists := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, list := range stateList.FindAllStringSubmatch(string(text), -1) {
			var named []string
			ends := 0
			for _, literal := range stateLiteral.FindAllStringSubmatch(list[1], -1) {
				state := jobstate.Status(literal[1])
				if !slices.Contains(states, state) {
					t.Errorf("%s: %s is no state of a job", file, state)
				}
				if state.Terminal() {
					ends++
				}
				named = append(named, literal[1])
			}
			lists++
			if ends > 0 && !slices.Equal(named, terminal) && !slices.Contains(incomplete, strings.Join(named, ",")) {
				t.Errorf("%s: %v, but the terminal states are %v", file, named, terminal)
			}
		}
	}
	if lists < 15 {
		t.Errorf("found %d lists only", lists)
	}
}
