package main

import (
	"strings"
	"testing"
)

func TestOnlyATerminalHasColours(t *testing.T) {
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	newGateway(t, map[string]string{"GET /api/jobs/j1": strings.Replace(ended, "%s", "FAILED", 1)})
	const red = "\x1b[31mFAILED\x1b[0m"
	for _, args := range []string{"get j1", "watch j1"} {
		if out, _ := terminal(t, "", "", strings.Fields(args)...); !strings.Contains(out, red) {
			t.Errorf("%s on a terminal: %q", args, out)
		}
		if out, _ := run(t, "", strings.Fields(args)...); strings.Contains(out, "\x1b") {
			t.Errorf("%s in a pipe: %q", args, out)
		}
	}
	t.Setenv("NO_COLOR", "1")
	if out, _ := terminal(t, "", "", "get", "j1"); strings.Contains(out, "\x1b") {
		t.Errorf("with NO_COLOR: %q", out)
	}
}
