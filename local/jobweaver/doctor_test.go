package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
)

// Not parallel: it sets the environment. Tests of servers and of serve see it find nothing.
func TestDoctorPrintsWhatToDoAndExitsByWhatItFound(t *testing.T) {
	const password = "hunter2000"
	out, err := run(t, "", "doctor")
	if cli.CodeOf(err) != 2 || !strings.Contains(out, "DATABASE_URL: is not set") {
		t.Errorf("without settings: exit code %d: %s", cli.CodeOf(err), out)
	}
	t.Setenv("DATABASE_URL", "postgres://jobweaver:"+password+"@127.0.0.1:1/postgres")
	t.Setenv("WEBHOOK_SECRETS", "whsec_"+password)
	if out, err = run(t, "", "doctor"); cli.CodeOf(err) != cli.ExitFailed {
		t.Errorf("exit code %d: %s", cli.CodeOf(err), out)
	}
	for _, want := range []string{"FOUND  database ", "\n         do: start the server", "UNSEEN vacuum ", "FOUND  secrets "} {
		if !strings.Contains(out, want) {
			t.Errorf("it prints no %q: %s", want, out)
		}
	}
	doc, err := run(t, "", "doctor", "-o", "json", "--skip", "database,secrets,tls")
	var answer struct {
		Findings *int
		Checks   []struct{ Check string }
	}
	if json.Unmarshal([]byte(doc), &answer) != nil || answer.Findings == nil || *answer.Findings != 0 || len(answer.Checks) != 11 || err != nil {
		t.Errorf("%v: %s", err, doc)
	}
	if strings.Contains(out+doc, password) {
		t.Errorf("a secret is printed: %s", out+doc)
	}
	if _, err := run(t, "", "doctor", "--skip", "nothing"); cli.CodeOf(err) != cli.ExitUsage {
		t.Errorf("an unknown check: %v", err)
	}
	if out, err := run(t, "", "doctor", "--env-dir", t.TempDir()); cli.CodeOf(err) != 2 || !strings.Contains(out, "gateway.env") {
		t.Errorf("an empty folder: %v: %s", err, out)
	}
}
