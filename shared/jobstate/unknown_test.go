package jobstate_test

import (
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/shared/jobstate"
)

func TestTheErrorForAnUnknownStateListsTheStates(t *testing.T) {
	t.Parallel()
	const want = "must be one of SCHEDULED, PENDING, QUEUED, RUNNING, WAITING, RETRYING, COMPLETED, FAILED, CANCELLED, not "
	if got := jobstate.Unknown("failed"); got != want+`"failed"` {
		t.Errorf("got %s", got)
	}
	if got := jobstate.Unknown(strings.Repeat("x", 1000)); got != want+`"`+strings.Repeat("x", 40)+`"` {
		t.Errorf("got %s", got)
	}
}
