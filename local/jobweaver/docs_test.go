//go:build !nodev

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/infra/laptop/childproc"
	"github.com/jobweaver/jobweaver/infra/laptop/freeport"
	"github.com/jobweaver/jobweaver/shared/client"
)

const root = "../.."

// block is a fenced block of a page. Its marker is the HTML comment in the line above it:
//
//	<!-- not run: WHY -->          of a shell block: the test leaves it out, and counts it
//	<!-- in another terminal -->   of a shell block: it runs on, beside the blocks after it
//	<!-- POST /api/jobs -->        of a JSON block: it is the body of a request that is accepted
type block struct {
	at, language, marker, text string
}

var fence = regexp.MustCompile("(?m)(?:^ *<!-- ([^\n]*) -->\n)?^ *```([a-z]+)?\n((?s:.*?))^ *```$")

func blocksOf(t *testing.T, page string) []block {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	part := func(at []int, i int) string {
		if at[2*i] < 0 {
			return ""
		}
		return string(text[at[2*i]:at[2*i+1]])
	}
	var blocks []block
	for _, at := range fence.FindAllSubmatchIndex(text, -1) {
		line := 1 + strings.Count(string(text[:at[6]]), "\n")
		blocks = append(blocks, block{fmt.Sprintf("%s:%d", page, line), part(at, 2), part(at, 1), part(at, 3)})
	}
	return blocks
}

func pages(t *testing.T) []string {
	t.Helper()
	rest, err := filepath.Glob(root + "/docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	all := []string{"README.md", "docs/first-ten-minutes.md"}
	for _, path := range rest {
		page := "docs/" + filepath.Base(path)
		if page != "docs/cli.md" && !slices.Contains(all, page) { // cli.md has the output of --help
			all = append(all, page)
		}
	}
	return all
}

// notRun is the number of shell blocks in the README and docs that no test runs unchanged. Raise it only for commands
// that need a cluster, Docker, minutes, or more than a reader's own machine.
const notRun = 48

// Every shell block and every request of the pages works as it is written, one after another on one installation, and
// none leaves a pause, a limit or a schedule behind.
func TestCommandsInTheDocsWork(t *testing.T) {
	if testing.Short() {
		t.Skip("it is about pages, not about goroutines")
	}
	t.Parallel()
	h := newReader(t)
	left := 0
	for _, page := range pages(t) {
		var script strings.Builder
		for _, b := range blocksOf(t, page) {
			why, skipped := strings.CutPrefix(b.marker, "not run: ")
			shell := slices.Contains([]string{"sh", "bash", "console"}, b.language)
			switch {
			case shell && skipped && len(why) > 3:
				left++
				t.Logf("%s is not run: %s", b.at, why)
			case shell && b.marker == "in another terminal":
				fmt.Fprintf(&script, "beside %s <<'END-OF-BLOCK'\n%sEND-OF-BLOCK\n", b.at, h.here(b.text))
			case shell && b.marker == "":
				for _, s := range statements(t, b) {
					fmt.Fprintf(&script, "step %s <<'END-OF-BLOCK'\n%sEND-OF-BLOCK\n", b.at, h.here(s))
				}
			case b.language == "json" && b.marker == "POST /api/jobs":
				fmt.Fprintf(&script, "post %s <<'END-OF-BLOCK'\n%sEND-OF-BLOCK\n", b.at, h.here(b.text))
			case shell || b.marker == "in another terminal" || strings.HasPrefix(b.marker, "POST"):
				t.Errorf("%s: marker %q of a block of %q", b.at, b.marker, b.language)
			}
		}
		if script.Len() > 0 && !h.follow(page, script.String()) {
			return
		}
	}
	if left != notRun {
		t.Errorf("%d shell blocks are not run, not %d", left, notRun)
	}
	h.everythingRan()
	h.nothingIsLeft()
}

// statements returns the commands of a block. A command ends with the line at which bash has read it completely, unless
// the next line continues it.
func statements(t *testing.T, b block) []string {
	t.Helper()
	var all []string
	var s strings.Builder
	lines := strings.SplitAfter(b.text, "\n")
	for i, line := range lines {
		s.WriteString(line)
		text := strings.TrimRight(s.String(), " \n")
		goesOn := i+1 < len(lines) && strings.HasPrefix(lines[i+1], " ") || strings.HasSuffix(text, `\`) || strings.HasSuffix(text, "|")
		if goesOn || strings.TrimSpace(line) == "" || strings.HasPrefix(text, "#") && !strings.Contains(text, "\n") {
			if !goesOn {
				s.Reset()
			}
			continue
		}
		if exec.CommandContext(t.Context(), "bash", "-nc", placeholder.ReplaceAllString(text, "x")).Run() == nil { //nolint:gosec // our docs
			all = append(all, s.String())
			s.Reset()
		}
	}
	if strings.TrimSpace(s.String()) != "" {
		t.Fatalf("%s: %q is no command", b.at, s.String())
	}
	return all
}

// placeholder matches what a reader replaces by the output of an earlier command.
var placeholder = regexp.MustCompile(`<(jobId|operationId|secret)>`)

// reader follows the pages in an empty folder, with `jobweaver dev` in another terminal.
type reader struct {
	t          *testing.T
	dir        string
	ports      map[string]string
	api        *client.Client
	env        []string
	onlyPosted []string // ids of jobs that only have to be accepted
}

func newReader(t *testing.T) *reader {
	t.Helper()
	r := &reader{t: t, dir: t.TempDir()}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"bin", "local"} {
		if err := os.Mkdir(filepath.Join(r.dir, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(self, filepath.Join(r.dir, "bin/jobweaver")); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"local/examples/function-go", "local/examples/function-pages", "local/examples/outside-system"} {
		if err := os.CopyFS(filepath.Join(r.dir, part), os.DirFS(filepath.Join(root, part))); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err == nil {
			err = os.WriteFile(filepath.Join(r.dir, file), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	gateway, mailPage := freeport.For(t), freeport.For(t)
	r.ports = map[string]string{"8080": gateway, "8025": mailPage, "9000": freeport.For(t), "9001": freeport.For(t)}
	r.api = client.New("http://127.0.0.1:"+gateway, "")
	r.env = append(os.Environ(), processEnv+"=1", "JOBWEAVER_URL=http://localhost:"+gateway,
		"PATH="+filepath.Join(r.dir, "bin")+":"+os.Getenv("PATH"))
	up := make(chan struct{})
	dev := r.start(&lookout{text: "JobWeaver is up", seen: up}, "bin/jobweaver", "dev",
		"--port", gateway, "--mail-port", freeport.For(t), "--mail-page-port", mailPage)
	select {
	case <-up:
	case <-dev:
		t.Fatal("dev ended")
	case <-time.After(time.Minute):
		t.Fatal("dev does not come up")
	}
	return r
}

// lookout closes seen when the text is written to it.
type lookout struct {
	text, all string
	seen      chan struct{}
}

func (l *lookout) Write(p []byte) (int, error) {
	before := strings.Contains(l.all, l.text)
	l.all += string(p)
	if !before && strings.Contains(l.all, l.text) {
		close(l.seen)
	}
	return len(p), nil
}

// start runs a program in the reader's folder until the test ends.
func (r *reader) start(out io.Writer, name string, args ...string) (ended <-chan struct{}) {
	cmd := exec.Command(filepath.Join(r.dir, name), args...) //nolint:gosec,noctx // ourselves
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = r.dir, r.env, io.MultiWriter(out, r.t.Output()), r.t.Output()
	ended, err := childproc.Start(cmd, syscall.SIGTERM)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		<-ended
	})
	return ended
}

var port = regexp.MustCompile(`\b(8080|8025|9000|9001)\b`)

// here replaces the ports of the pages by those of this test.
func (r *reader) here(text string) string {
	return port.ReplaceAllStringFunc(text, func(port string) string { return r.ports[port] })
}

// prelude is the beginning of the scripts that are made from pages. The output of a command fills the placeholders in
// later ones.
const prelude = `set -um
printed=$(mktemp) posted=$1 terminals=()
trap 'for pid in "${terminals[@]}"; do kill -- -$pid; done; wait; rm -f "$printed"*' EXIT
touch "$printed.terminal"
curl() { command curl --silent --show-error --fail-with-body "$@"; }
member() { grep -aoE "\"$1\": *\"[^\"]+\"" "$2" | cut -d '"' -f 4; }
fill() {
	local s; s=$(cat)
	s=${s//<jobId>/$(member jobId "$printed" | tail -1)}
	s=${s//<operationId>/$(member operationId "$printed" | tail -1)}
	echo "${s//<secret>/$(grep -aoE 'whsec_[A-Za-z0-9+/=]+' "$printed.terminal" | tail -1)}"
}
step() {
	local code=0 command; command=$(fill)
	echo "$1: $command"
	eval "$command" >"$printed.now" 2>&1 </dev/null || code=$?
	cat "$printed.now"
	for name in jobId operationId; do grep -aoE "\"$name\": *\"[^\"]+\"" "$printed.now" | head -1 >>"$printed"; done
	[ $code = 0 ] || { echo "$1: exit code $code"; exit 1; }
}
post() {
	fill >"$printed.body"
	echo "$1: its request"
	curl "$JOBWEAVER_URL/api/jobs" -H 'Content-Type: application/json' --data-binary @"$printed.body" >"$printed.answer" ||
		{ cat "$printed.answer"; exit 1; }
	member jobId "$printed.answer" | head -1 >>"$posted"
}
beside() {
	local command port; command=$(fill)
	echo "$1, in another terminal: $command"
	(eval "$command") >>"$printed.terminal" 2>&1 </dev/null &
	terminals+=($!) port=$(grep -oE 'PORT=[0-9]+' <<<"$command" | cut -d= -f2)
	until (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do
		kill -0 ${terminals[-1]} || { cat "$printed.terminal"; exit 1; }
		sleep 0.1
	done
}
`

// follow runs the script of a page in one shell, and reports whether all of it succeeded.
func (r *reader) follow(page, script string) bool {
	begin := time.Now()
	ctx, stop := context.WithTimeout(r.t.Context(), 2*time.Minute)
	defer stop()
	posted := filepath.Join(r.dir, "posted")
	cmd := exec.CommandContext(ctx, "bash", "-c", prelude+script, "bash", posted) //nolint:gosec // our docs
	cmd.Dir, cmd.Env = r.dir, r.env
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // it ends the other terminals
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	r.t.Logf("%s took %s", page, time.Since(begin).Round(time.Millisecond))
	if err != nil {
		r.t.Errorf("%s: %v\n%s", page, err, out)
	}
	ids, readErr := os.ReadFile(posted)
	if readErr == nil {
		r.onlyPosted = strings.Fields(string(ids))
	}
	return err == nil
}

// everythingRan waits for the jobs that the commands of the pages have submitted: a job that calls a server or makes a
// file must complete. Simulations may fail on purpose.
func (r *reader) everythingRan() {
	for _, jobType := range []string{"EMAIL", "REPORT", "FUNCTION", "EXTERNAL"} {
		var page struct{ Jobs []client.Job }
		r.get("/api/jobs?limit=200&type="+jobType, &page)
		if len(page.Jobs) == 0 {
			r.t.Errorf("no page submits a job of type %s", jobType)
		}
		for _, job := range page.Jobs {
			if slices.Contains(r.onlyPosted, job.JobID) {
				continue
			}
			if got, err := r.api.Await(r.t.Context(), job.JobID, 30*time.Second, nil); err != nil || got.Status != "COMPLETED" {
				r.t.Errorf("%s job ended as %+v, %v", jobType, got, err)
			}
		}
	}
}

func (r *reader) nothingIsLeft() {
	var left struct{ Controls, Schedules, Alerts []json.RawMessage }
	r.get("/api/controls", &left)
	r.get("/api/schedules", &left)
	r.get("/api/alerts", &left)
	if len(left.Controls)+len(left.Schedules)+len(left.Alerts) > 0 {
		r.t.Errorf("the pages leave %s %s %s behind", left.Controls, left.Schedules, left.Alerts)
	}
}

func (r *reader) get(path string, into any) {
	r.t.Helper()
	if _, err := r.api.Do(r.t.Context(), http.MethodGet, path, "", nil, into); err != nil {
		r.t.Fatal(err)
	}
}
