package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
)

// terminal runs the command line on a terminal, types text when the prompt appears, and returns the output.
func terminal(t *testing.T, prompt, text string, args ...string) (string, error) {
	t.Helper()
	person, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = person.Close() }()
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	ended := make(chan error, 1)
	go func() {
		root := newRoot()
		root.SetIn(tty)
		root.SetOut(tty)
		root.SetErr(tty)
		root.SetArgs(args)
		ended <- errors.Join(cli.Execute(ctx, root), tty.Close())
	}()
	var seen bytes.Buffer
	for piece := make([]byte, 4096); ; {
		n, err := person.Read(piece)
		seen.Write(piece[:n])
		if err != nil {
			return seen.String(), <-ended
		}
		if text != "" && strings.Contains(seen.String(), prompt) {
			if text == "^C" {
				stop()
				ended <- <-ended
				text = "\n" // for the goroutine that still reads: the terminal is open until it returns
			}
			if _, err := io.WriteString(person, text); err != nil {
				t.Fatal(err)
			}
			text = ""
		}
	}
}

func threeJobs() map[string]string {
	return map[string]string{
		"GET /api/jobs":        `{"jobs":[{"jobId":"j1","ownerId":"a"},{"jobId":"j2","ownerId":"b"},{"jobId":"j3","ownerId":"a"}],"nextCursor":null}`,
		"POST /api/operations": `{"operationId":"o1","status":"RUNNING"}`,
	}
}

// A command for all jobs once did not ask.
func TestCommandForAllJobsAsksOnATerminal(t *testing.T) {
	for _, c := range []struct {
		args, prompt, typed string
		code                int
		done                bool
	}{
		{"delete --all", "delete 3 jobs? [y/N] ", "y\n", 0, true},
		{"delete --status FAILED", "delete 3 jobs? [y/N] ", "yes\n", 0, true},
		{"cancel --all", "cancel 3 jobs? [y/N] ", "n\n", cli.ExitInterrupted, false},
		{"dead redrive", "retry 3 jobs? [y/N] ", "\n", cli.ExitInterrupted, false},
		{"dead redrive --all", "retry 3 jobs? [y/N] ", "Y\n", 0, true},
		{"retry --all", "retry 3 jobs? [y/N] ", "^C", cli.ExitInterrupted, false},
		{"retry --all", "retry 3 jobs? [y/N] ", "\x04", cli.ExitInterrupted, false}, // the end of the input
		{"retry --all --yes", "", "", 0, true},
		{"dead redrive --type A", "", "", 0, true},
	} {
		g := newGateway(t, threeJobs())
		out, err := terminal(t, c.prompt, c.typed, strings.Fields(c.args)...)
		last := g.asked[len(g.asked)-1]
		if cli.CodeOf(err) != c.code || !strings.Contains(out, c.prompt) || (last == "POST /api/operations") != c.done {
			t.Errorf("%s: %v, printed %q, asked last %s", c.args, err, out, last)
		}
		if (c.prompt == "") != (g.asked[0] == "POST /api/operations") {
			t.Errorf("%s: asked %q", c.args, g.asked)
		}
	}
}

func TestCommandThatMatchesNoJobDoesNotAsk(t *testing.T) {
	g := newGateway(t, map[string]string{"GET /api/jobs": `{"jobs":[]}`})
	out, err := terminal(t, "", "", "delete", "--all")
	if err != nil || !strings.Contains(out, "no job matches") || len(g.asked) != 1 {
		t.Errorf("%v, printed %q, asked %q", err, out, g.asked)
	}
}

// Users want to see how many jobs a command would affect.
func TestDryRunCountsAndChangesNothing(t *testing.T) {
	for args, want := range map[string]string{
		"delete --all --dry-run":                            "delete of 3 jobs; nothing was done\n",
		"dead redrive --dry-run":                            "retry of 3 jobs; nothing was done\n",
		"dead redrive --all --dry-run --yes":                "retry of 3 jobs; nothing was done\n",
		"cancel --status FAILED --dry-run":                  "cancel of 0 jobs; nothing was done\n",
		"retry --status FAILED --owner b --dry-run -o name": "j1\nj2\nj3\n",
	} {
		g := newGateway(t, threeJobs())
		out, err := run(t, "", strings.Fields(args)...)
		if err != nil || out != want {
			t.Errorf("%s: %v, printed %q", args, err, out)
		}
		for _, asked := range g.asked {
			if !strings.HasPrefix(asked, http.MethodGet) {
				t.Errorf("%s: asked %q", args, g.asked)
			}
		}
	}
}

func TestCountIsBounded(t *testing.T) {
	page := `{"jobs":[` + strings.Repeat(`{"jobId":"j"},`, 199) + `{"jobId":"j"}],"nextCursor":"more"}`
	g := newGateway(t, map[string]string{"GET /api/jobs": page})
	out, err := run(t, "", "delete", "--type", "A", "--since", "2026-01-02T03:04:05Z", "--dry-run")
	if err != nil || out != "delete of at least 1000 jobs; nothing was done\n" || len(g.asked) != 5 {
		t.Errorf("%v, printed %q, asked %q", err, out, g.asked)
	}
	if g.asked[1] != "GET /api/jobs?cursor=more&limit=200&since=2026-01-02T03%3A04%3A05Z&status=COMPLETED&status=FAILED&status=CANCELLED&type=A" {
		t.Errorf("asked %q", g.asked[1])
	}
}
