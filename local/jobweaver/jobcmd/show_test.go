package jobcmd

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
	"github.com/jobweaver/jobweaver/shared/client"
)

func TestAStepIsShownInALine(t *testing.T) {
	until := time.Date(2036, 1, 1, 0, 0, 0, 0, time.UTC)
	long := json.RawMessage(`"` + strings.Repeat("x", 1000) + `"`)
	for _, of := range []struct {
		step client.Step
		want string
	}{
		{client.Step{Name: "charge", Attempt: 2, TookMs: 312, Result: json.RawMessage(`{"n":1}`), Bytes: 7}, `charge: attempt 2, after 312ms, returned {"n":1}`},
		{client.Step{Name: "ship", Attempt: 1, Result: json.RawMessage("null"), Bytes: 4}, "ship: attempt 1"},
		{client.Step{Name: "left out", Attempt: 1, Result: json.RawMessage("null"), Bytes: 9000}, "left out: attempt 1, returned 9000 bytes"},
		{client.Step{Name: "long", Attempt: 1, Result: long, Bytes: len(long)}, "long: attempt 1, returned 1002 bytes"},
		{client.Step{Name: "cool off", Attempt: 1, Until: until, Result: json.RawMessage("null"), Bytes: 4}, "cool off: attempt 1 sleeps until " + cli.At(&until)},
	} {
		if got := stepOf(&of.step); got != of.want {
			t.Errorf("shows %q, want %q", got, of.want)
		}
	}
}
