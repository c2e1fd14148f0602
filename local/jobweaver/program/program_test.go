package program

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/client/durable"
	"github.com/jobweaver/jobweaver/shared/client/jobrun"
	"github.com/jobweaver/jobweaver/shared/client/worker"
)

// script is a program in sh, with its reports.
type script struct {
	Program
	dir   string
	saved string // as earlier attempts left it, and then this one
	unfit error  // of each save

	mu      sync.Mutex
	reports []string
	seen    chan string // each of reports
}

func newScript(t *testing.T, text string) *script {
	t.Helper()
	return &script{
		Program: Program{Path: "/bin/sh", Args: []string{"-c", text}, KillAfter: time.Minute}, dir: t.TempDir(), seen: make(chan string, 1000),
	}
}

func (s *script) note(text string) {
	s.mu.Lock()
	s.reports = append(s.reports, text)
	s.mu.Unlock()
	select {
	case s.seen <- text:
	default:
	}
}

// attempt runs the script for one attempt.
func (s *script) attempt(ctx context.Context, payload string) (string, error) {
	output, err := s.Run(ctx, &client.WorkAttempt{
		Info:     jobrun.Info{JobID: "j1", Attempt: 2, JobType: "T", Queue: "pull", OwnerID: "acme", TraceID: "t1"},
		Token:    "instance.j1.2.random",
		Deadline: time.Date(2036, 1, 2, 3, 4, 5, 0, time.UTC), Callback: &client.WorkCallback{URL: "http://c", Secret: "s"},
		Event: client.SubmitEvent{"id": "größe", "n": 7},
	}, durable.New(json.RawMessage(s.saved), s.save), []byte(payload),
		func(level slog.Level, text string) { s.note(level.String() + " " + text) },
		func(percent int, message string) { s.note(fmt.Sprint(percent, "% ", message)) })
	return string(output), err
}

func (s *script) save(_ int64, data json.RawMessage) error {
	if s.unfit == nil {
		s.saved = string(data)
	}
	return s.unfit
}

func TestAProgramContinuesWhereItsLastAttemptEnded(t *testing.T) {
	t.Parallel()
	const tooLarge = `echo "checkpoint \"$(head -c $((N-2)) /dev/zero | tr '\0' x)\"" >&3`
	large := `"` + strings.Repeat("x", durable.MaxBytes-2) + `"`
	for text, w := range map[string]struct {
		before, saved string
		unfit         error
		output, fails string
	}{
		`echo "${JOBWEAVER_CHECKPOINT-none}"`:                             {"", "", nil, `"none"`, ""},
		`echo "${JOBWEAVER_CHECKPOINT:-none}"`:                            {"null", "null", nil, `"none"`, ""},
		`echo "$JOBWEAVER_CHECKPOINT"; echo 'checkpoint {"page": 8}' >&3`: {`{"page":7}`, `{"page":8}`, nil, `{"page":7}`, ""},
		`for n in 1 2 3; do echo checkpoint $n >&3; done; exit 75`:        {"", "3", nil, "", "HANDLER"},
		`echo checkpoint 4 >&3; echo snooze 1s >&3`:                       {"", "4", nil, "", "snooze"},
		`echo checkpoint >&3; echo checkpoint { >&3; echo 1`:              {"7", "7", nil, "1", ""},
		`echo ${#JOBWEAVER_CHECKPOINT}`:                                   {large, large, nil, fmt.Sprint(len(large)), ""},
		strings.ReplaceAll(tooLarge, "N", fmt.Sprint(len(large))):         {"7", large, nil, "", ""},
		strings.ReplaceAll(tooLarge, "N", fmt.Sprint(len(large)+1)):       {"7", "7", nil, "", durable.TooLarge},
		strings.ReplaceAll(tooLarge, "N", "300000") + `; exit 1`:          {"7", "7", nil, "", durable.TooLarge},
		`echo checkpoint 5 >&3; echo snooze 2s >&3`:                       {"7", "7", errors.New("no room"), "", "no room"},
		`echo checkpoint 6 >&3; exit 65`:                                  {"7", "7", errors.New("no room"), "", "HANDLER"},
		`echo checkpoint 7 >&3; echo 1`:                                   {"7", "7", durable.ErrOver, "1", ""},
	} {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			s := newScript(t, text)
			s.saved, s.unfit = w.before, w.unfit
			output, err := s.attempt(t.Context(), "{}")
			if output != w.output || s.saved != w.saved || (err == nil) != (w.fails == "") || err != nil && !strings.Contains(err.Error(), w.fails) {
				t.Errorf("%s: %.100s, saved %.100s, %v", text, output, s.saved, err)
			}
		})
	}
}

// until waits for a report.
func (s *script) until(t *testing.T, text string) {
	t.Helper()
	for report := range s.seen {
		if report == text {
			return
		}
	}
}

func TestOutputOfTheProgramIsTheOutputOfTheJob(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`cat`:                                `{"n": 7}`,
		`echo "$JOBWEAVER_EVENT"`:            `{"id":"größe","n":7}`,
		`echo ' {"a": [1, 2]} '`:             `{"a": [1, 2]}`,
		`echo 42`:                            `42`,
		`echo hello; printf '\033[1mworld'`:  `"hello\n[1mworld"`,
		`printf '\377\000x'`:                 `"x"`,
		`true`:                               ``,
		`exec >&- <&-; sleep 0.01`:           ``,
		`echo 1; (sleep 0.1; echo 2) & exit`: `"1\n2"`,
		`test "$JOBWEAVER_API_KEY$JOBWEAVER_API_KEY_FILE" = "" && echo "\"$JOBWEAVER_JOB_ID $JOBWEAVER_ATTEMPT $JOBWEAVER_TOKEN ` +
			`$JOBWEAVER_JOB_TYPE $JOBWEAVER_QUEUE $JOBWEAVER_OWNER_ID $JOBWEAVER_TRACE_ID $JOBWEAVER_DEADLINE $JOBWEAVER_CALLBACK_SECRET\""`: `"j1 2 j1.2 T pull acme t1 2036-01-02T03:04:05Z s"`,
	} {
		if got, err := newScript(t, text).attempt(t.Context(), `{"n": 7}`); err != nil || got != want {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
}

func TestProgramDoesNotGetTheAPIKey(t *testing.T) {
	t.Setenv("JOBWEAVER_API_KEY", "secret")
	t.Setenv("JOBWEAVER_API_KEY_FILE", "/secret")
	if got, err := newScript(t, `env`).attempt(t.Context(), ""); err != nil || strings.Contains(got, "secret") {
		t.Errorf("%s, %v", got, err)
	}
}

func TestExitCodeFailsTheAttempt(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]worker.Failure{
		`echo first >&2; echo last >&2; exit 3`: {Code: "WORKER.HANDLER_FAILED", Message: "exit status 3: first\nlast", Retryable: true},
		`exit 75`:                               {Code: "WORKER.HANDLER_FAILED", Message: "exit status 75", Retryable: true},
		`exit 64`:                               {Code: "WORKER.HANDLER_FAILED", Message: "exit status 64"},
		`echo code A.B >&3; exit 65`:            {Code: "A.B", Message: "exit status 65"},
		`echo retry-after 90s >&3; exit 1`:      {Code: "WORKER.HANDLER_FAILED", Message: "exit status 1", Retryable: true, RetryAfter: 90 * time.Second},
		`kill -9 $$`:                            {Code: "WORKER.HANDLER_FAILED", Message: "signal: killed", Retryable: true},
		`echo snooze 1h >&3; exit 1`:            {Code: "WORKER.HANDLER_FAILED", Message: "exit status 1", Retryable: true},
	} {
		_, err := newScript(t, text).attempt(t.Context(), "{}")
		var failure *worker.Failure
		if !errors.As(err, &failure) || *failure != want {
			t.Errorf("%s: %+v", text, err)
		}
	}
	_, err := newScript(t, `yes x | head -c 100000 >&2; echo the end >&2; exit 1`).attempt(t.Context(), "{}")
	if text := fmt.Sprint(err); len(text) > 3000 || !strings.HasSuffix(text, "the end") {
		t.Errorf("%d bytes: %s", len(text), text)
	}
}

func TestProgramThatCannotStartFailsTheAttempt(t *testing.T) {
	t.Parallel()
	s := newScript(t, "")
	s.Path = filepath.Join(s.dir, "none")
	if _, err := s.attempt(t.Context(), "{}"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func TestInstructionsAreReadFromFileDescriptor3(t *testing.T) {
	t.Parallel()
	s := newScript(t, `echo "progress 40% four of ten" >&3; echo "log warn so so" >&3; echo "progress x" >&3; echo nonsense >&3
		echo "log loud x" >&3; echo "wait soon" >&3; printf 'progress 100' >&3`)
	if _, err := s.attempt(t.Context(), "{}"); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"40% four of ten", "WARN so so", `WARN file descriptor 3: "progress x": the percentage must be a whole number`,
		`WARN file descriptor 3: "nonsense": it is none of progress, log, checkpoint, snooze, wait, code and retry-after`,
		`WARN file descriptor 3: "log loud x": the level must be debug, info, warn or error`,
		`WARN file descriptor 3: "wait soon": the duration must be like 10s, 5m or 1h`, "100% ",
	}
	if strings.Join(s.reports, "\n") != strings.Join(want, "\n") {
		t.Errorf("%q", s.reports)
	}
	for order, want := range map[string]error{"snooze 1m": worker.Snooze(time.Minute), "wait 1h": worker.WaitFor(time.Hour)} {
		output, err := newScript(t, "echo "+order+" >&3; echo 1").attempt(t.Context(), "{}")
		if fmt.Sprintf("%+v", err) != fmt.Sprintf("%+v", want) || output != "" {
			t.Errorf("%s: %s, %v", order, output, err)
		}
	}
}

func TestLinesOfStandardErrorAreTheLog(t *testing.T) {
	t.Parallel()
	s := newScript(t, `printf 'one\n\ntwo\r\n\033three' >&2; head -c 40000 /dev/zero | tr '\0' x >&2; echo >&2; echo end >&2`)
	if _, err := s.attempt(t.Context(), "{}"); err != nil {
		t.Fatal(err)
	}
	if len(s.reports) != 4 || s.reports[0] != "INFO one" || s.reports[1] != "INFO two" || len(s.reports[2]) > 17<<10 ||
		!strings.HasPrefix(s.reports[2], "INFO threexxx") || s.reports[3] != "INFO end" {
		t.Errorf("%d lines: %.100q", len(s.reports), s.reports)
	}
}

func TestOutputOfAProgramIsTruncated(t *testing.T) {
	t.Parallel()
	const flood = `head -c 100000000 /dev/zero | tr '\0' 'x'; echo; echo the end`
	s := newScript(t, flood)
	output, err := s.attempt(t.Context(), "{}")
	if err != nil || len(output) > 65<<10 || !strings.HasSuffix(output, `x\nthe end"`) || len(s.reports) != 1 {
		t.Errorf("%d bytes, %v, %q", len(output), err, s.reports)
	}
	for text, code := range map[string]string{flood: "WORKER.OUTPUT_TOO_LARGE", "echo hello": "WORKER.INVALID_OUTPUT"} {
		s := newScript(t, text)
		s.Strict = true
		var failure *worker.Failure
		if _, err := s.attempt(t.Context(), "{}"); !errors.As(err, &failure) || failure.Code != code || failure.Retryable {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestProgramNeedNotReadItsPayload(t *testing.T) {
	t.Parallel()
	payload, err := json.Marshal(strings.Repeat("x", 400<<10)) // more than a pipe holds
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{`exec <&-; echo 1`, `echo 1`, `head -c 1 >&2; echo 1`} {
		if output, err := newScript(t, text).attempt(t.Context(), string(payload)); err != nil || output != "1" {
			t.Errorf("%s: %s, %v", text, output, err)
		}
	}
	if output, err := newScript(t, `wc -c`).attempt(t.Context(), string(payload)); err != nil || output != strconv.Itoa(len(payload)) {
		t.Errorf("%s, %v", output, err)
	}
}

// started runs a script until it reports ready. It returns a function that ends the script, and its result.
func (s *script) started(t *testing.T) (end context.CancelCauseFunc, result <-chan error) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	t.Cleanup(func() { cancel(nil) })
	ended := make(chan error, 1)
	go func() {
		_, err := s.attempt(ctx, "{}")
		ended <- err
	}()
	s.until(t, "INFO ready")
	return cancel, ended
}

func TestCancelledProgramGetsSIGTERM(t *testing.T) {
	t.Parallel()
	end, result := newScript(t, `trap 'echo bye >&2; exit 7' TERM; echo ready >&2; while :; do sleep 0.01; done`).started(t)
	end(worker.ErrCancelled)
	if err := <-result; !errors.Is(err, worker.ErrCancelled) || !strings.Contains(err.Error(), "exit status 7") {
		t.Error(err)
	}
}

func TestProgramThatIgnoresSIGTERMIsKilled(t *testing.T) {
	t.Parallel()
	s := newScript(t, `trap '' TERM; echo ready >&2; while :; do sleep 0.01; done`)
	s.KillAfter = 50 * time.Millisecond
	end, result := s.started(t)
	end(worker.ErrLost)
	if err := <-result; !errors.Is(err, worker.ErrLost) || !strings.Contains(err.Error(), "signal: killed") {
		t.Error(err)
	}
}

func TestSecondSignalKillsAtOnce(t *testing.T) {
	t.Parallel()
	now := make(chan struct{})
	s := newScript(t, `trap '' TERM; echo ready >&2; while :; do sleep 0.01; done`)
	s.Now = now
	_, result := s.started(t)
	close(now)
	if err := <-result; !errors.Is(err, worker.ErrStopping) {
		t.Error(err)
	}
}

// The children hold the program's output, ignore SIGTERM, or are waited for by the program. None is left.
func TestChildrenOfAProgramEndWithIt(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`sleep 600 & echo $! >"$CHILD"; echo ready >&2; exit 0`,
		`sleep 600 >/dev/null 2>&1 3>&- & echo $! >"$CHILD"; echo ready >&2; exit 0`,
		`(trap '' TERM; echo $$ >/dev/null; while :; do sleep 0.01; done) & echo $! >"$CHILD"; echo ready >&2; exit 0`,
		`(trap '' TERM; while :; do sleep 0.01; done) & echo $! >"$CHILD"; echo ready >&2; wait`,
	} {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			s := newScript(t, text)
			child := filepath.Join(s.dir, "child")
			s.Args[1] = strings.ReplaceAll(text, "$CHILD", child)
			s.KillAfter = 50 * time.Millisecond
			end, result := s.started(t)
			if strings.HasSuffix(text, "wait") {
				end(worker.ErrCancelled)
			}
			if err := <-result; err != nil && !errors.Is(err, worker.ErrCancelled) {
				t.Error(err)
			}
			pid, err := os.ReadFile(child)
			if err != nil {
				t.Fatal(err)
			}
			number, err := strconv.Atoi(string(bytes.TrimSpace(pid)))
			if err != nil {
				t.Fatal(err)
			}
			untilGone(t, number)
		})
	}
}

// untilGone waits until a process has ended. It was killed, but its parent may not have waited for it yet.
func untilGone(t *testing.T, pid int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil && syscall.Kill(pid, 0) != nil {
			return
		}
		if _, state, _ := strings.Cut(string(stat), ") "); strings.HasPrefix(state, "Z") {
			return
		}
	}
	t.Errorf("%d still runs", pid)
}

// A program that leaves its session on purpose holds the pipes forever.
func TestProgramThatLeavesItsSessionDelaysNothing(t *testing.T) {
	t.Parallel()
	s := newScript(t, `setsid sh -c 'echo $$ >"$CHILD"; exec sleep 600' & while ! test -s "$CHILD"; do sleep 0.01; done; echo 1`)
	child := filepath.Join(s.dir, "child")
	s.Args[1] = strings.ReplaceAll(s.Args[1], "$CHILD", child)
	if output, err := s.attempt(t.Context(), "{}"); err != nil || output != "1" {
		t.Errorf("%s, %v", output, err)
	}
	pid, err := os.ReadFile(child)
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(string(bytes.TrimSpace(pid)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(number, syscall.SIGKILL); err != nil {
		t.Errorf("it was killed: %v", err)
	}
}

var _ io.Writer = (*tail)(nil)
