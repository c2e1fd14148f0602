// Package program runs an executable for each attempt that a pull worker claims.
package program

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"

	"github.com/jobweaver/jobweaver/infra/laptop/childproc"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/client/durable"
	"github.com/jobweaver/jobweaver/shared/client/worker"
)

const (
	linger     = 2 * time.Second // for children that still write after the program has ended
	maxOutput  = 256 << 10
	maxText    = 64 << 10 // of output that is not JSON
	maxTail    = 2 << 10  // of standard error, in the message of a failure
	maxLogLine = 16 << 10
	maxOrder   = 2 * durable.MaxBytes // of a line with a checkpoint; a longer one is too large in any case
)

// The exit codes of sysexits.h after which a retry would not help.
const (
	exUsage   = 64
	exDataErr = 65
)

// Program runs an executable for each attempt.
type Program struct {
	Path      string
	Args      []string
	KillAfter time.Duration
	Strict    bool            // the output must be JSON
	Now       <-chan struct{} // closed to kill running programs
}

// Run runs the program for an attempt, and returns when it and the children in its process group have ended.
func (p *Program) Run(
	ctx context.Context, a *client.WorkAttempt, checkpoint *durable.Checkpoint, payload []byte,
	log func(slog.Level, string), progress func(int, string),
) (json.RawMessage, error) {
	cmd := exec.Command(p.Path, p.Args...) //nolint:gosec // the user's own program
	var saved json.RawMessage
	found, err := checkpoint.Load(&saved)
	if err != nil {
		return nil, err
	}
	cmd.Env = environmentOf(a)
	if found {
		cmd.Env = append(cmd.Env, "JOBWEAVER_CHECKPOINT="+string(saved))
	}
	if a.Event != nil {
		event, err := json.Marshal(a.Event)
		if err != nil {
			return nil, err
		}
		cmd.Env = append(cmd.Env, "JOBWEAVER_EVENT="+string(event))
	}
	pipes, err := newPipes(cmd)
	if err != nil {
		return nil, err
	}
	defer pipes.close(pipes.ours)
	// SIGKILL when this process dies: otherwise the program would continue unobserved while its attempt runs again
	// elsewhere.
	ended, err := childproc.Start(cmd, syscall.SIGKILL)
	pipes.close(pipes.theirs)
	if err != nil {
		return nil, err
	}
	stdin, stdout, stderr, orders := pipes.ours[0], pipes.ours[1], pipes.ours[2], pipes.ours[3]
	output, complaint := &tail{keep: maxOutput}, &tail{keep: maxTail}
	instructions := &instructions{log: log, progress: progress, checkpoint: checkpoint}
	var reading sync.WaitGroup
	reading.Go(func() { _, _ = io.Copy(output, stdout) })
	reading.Go(func() {
		eachLine(io.TeeReader(stderr, complaint), maxLogLine, func(line string) { log(slog.LevelInfo, line) })
	})
	reading.Go(func() { eachLine(orders, maxOrder, instructions.take) })
	reading.Go(func() {
		_, _ = stdin.Write(payload) // a program that does not read it closes the pipe, at the latest when it ends
		_ = stdin.Close()
	})
	read := make(chan struct{})
	go func() {
		defer close(read)
		reading.Wait()
	}()
	p.await(ctx, ended, read, -cmd.Process.Pid)
	pipes.close(pipes.ours) // a child in another session may still have the other ends
	<-read
	return p.result(ctx, cmd.ProcessState, output, complaint, instructions)
}

// await returns when the program has ended and all its pipes are closed, or when its process group is gone. No other
// process can get the number of the group meanwhile: the kernel reuses it only after all others.
func (p *Program) await(ctx context.Context, ended, read <-chan struct{}, group int) {
	defer func() { _ = syscall.Kill(group, syscall.SIGKILL) }()
	select {
	case <-ended:
	case <-p.Now:
	case <-ctx.Done():
		_ = syscall.Kill(group, syscall.SIGTERM)
		select {
		case <-ended:
		case <-p.Now:
		case <-time.After(p.KillAfter):
		}
	}
	select {
	case <-ended:
		select {
		case <-read:
		case <-p.Now:
		case <-time.After(linger):
		}
	default:
		_ = syscall.Kill(group, syscall.SIGKILL)
		<-ended
	}
}

// result returns the result of the handler.
func (p *Program) result(
	ctx context.Context, state *os.ProcessState, output, complaint *tail, instructions *instructions,
) (json.RawMessage, error) {
	var tooLarge *durable.Failure
	switch {
	case errors.As(instructions.unsaved, &tooLarge):
		return nil, tooLarge
	case state.Success() && instructions.after != nil && instructions.unsaved != nil:
		return nil, instructions.unsaved // the next attempt would begin too early
	case state.Success() && instructions.after != nil:
		return nil, instructions.after
	case state.Success():
		return p.output(output, instructions.log)
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%w: %s", context.Cause(ctx), state)
	}
	select {
	case <-p.Now:
		return nil, fmt.Errorf("%w: %s", worker.ErrStopping, state)
	default:
	}
	message := state.String()
	if text := plain(complaint.last(maxTail)); text != "" {
		message += ": " + text
	}
	if instructions.code == "" {
		instructions.code = string(apierror.HandlerFailed)
	}
	return nil, &worker.Failure{
		Code: instructions.code, Message: message, RetryAfter: instructions.retryAfter,
		Retryable: !slices.Contains([]int{exUsage, exDataErr}, state.ExitCode()),
	}
}

// output makes the job's output from the program's standard output.
func (p *Program) output(written *tail, log func(slog.Level, string)) (json.RawMessage, error) {
	text := bytes.TrimSpace(written.text)
	switch {
	case len(text) == 0:
		return nil, nil
	case written.total <= maxOutput && json.Valid(text):
		return text, nil
	case p.Strict && written.total > maxOutput:
		return nil, &worker.Failure{
			Code: string(apierror.OutputTooLarge), Message: fmt.Sprintf("standard output has %d bytes", written.total),
		}
	case p.Strict:
		return nil, &worker.Failure{Code: string(apierror.InvalidOutput), Message: "standard output is not JSON"}
	case written.total > maxText:
		log(slog.LevelWarn, fmt.Sprintf("standard output has %d bytes; the output is the last %d", written.total, maxText))
	}
	return json.Marshal(plain(written.last(maxText)))
}

// environmentOf returns the environment of this process without its API key, with variables about an attempt.
func environmentOf(a *client.WorkAttempt) []string {
	own := slices.DeleteFunc(os.Environ(), func(set string) bool {
		name, _, _ := strings.Cut(set, "=")
		return slices.Contains([]string{
			"JOBWEAVER_API_KEY", "JOBWEAVER_API_KEY_FILE", "JOBWEAVER_CALLBACK_URL", "JOBWEAVER_CALLBACK_SECRET",
			"JOBWEAVER_OWNER_ID", "JOBWEAVER_CHECKPOINT", "JOBWEAVER_EVENT",
		}, name)
	})
	own = append(own,
		"JOBWEAVER_JOB_ID="+a.JobID, "JOBWEAVER_ATTEMPT="+strconv.Itoa(a.Attempt),
		fmt.Sprintf("JOBWEAVER_TOKEN=%s.%d", a.JobID, a.Attempt), "JOBWEAVER_JOB_TYPE="+a.JobType,
		"JOBWEAVER_QUEUE="+a.Queue, "JOBWEAVER_TRACE_ID="+a.TraceID,
		"JOBWEAVER_DEADLINE="+a.Deadline.UTC().Format(time.RFC3339Nano))
	if a.OwnerID != "" {
		own = append(own, "JOBWEAVER_OWNER_ID="+a.OwnerID)
	}
	if a.Callback != nil {
		own = append(own, "JOBWEAVER_CALLBACK_URL="+a.Callback.URL, "JOBWEAVER_CALLBACK_SECRET="+a.Callback.Secret)
	}
	return own
}

// pipes are the standard input, output and error of a program, and its file descriptor 3.
type pipes struct{ ours, theirs []*os.File }

func newPipes(cmd *exec.Cmd) (*pipes, error) {
	p := &pipes{}
	for n := range 4 {
		r, w, err := os.Pipe()
		if err != nil {
			p.close(slices.Concat(p.ours, p.theirs))
			return nil, fmt.Errorf("open pipes: %w", err)
		}
		if n == 0 {
			r, w = w, r
		}
		p.ours, p.theirs = append(p.ours, r), append(p.theirs, w)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = p.theirs[0], p.theirs[1], p.theirs[2], p.theirs[3:]
	return p, nil
}

// close closes files. Closing a file twice does no harm.
func (*pipes) close(files []*os.File) {
	for _, file := range files {
		_ = file.Close()
	}
}

// tail keeps everything that was written as long as that is at most keep bytes, and otherwise at least the last keep
// bytes.
type tail struct {
	keep  int
	text  []byte
	total int
}

func (t *tail) Write(p []byte) (int, error) {
	t.total += len(p)
	if t.text = append(t.text, p...); len(t.text) > 2*t.keep {
		t.text = append(t.text[:0], t.text[len(t.text)-t.keep:]...)
	}
	return len(p), nil
}

// last returns the last n bytes, or all if there are fewer.
func (t *tail) last(n int) []byte { return t.text[max(0, len(t.text)-n):] }

// plain returns text that can be stored and shown.
func plain(text []byte) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(string(text), "")))
}

// eachLine reads all lines and passes on those that are not empty. A long line is truncated.
func eachLine(from io.Reader, most int, take func(string)) {
	lines := bufio.NewReaderSize(from, most)
	for begins := true; ; {
		part, more, err := lines.ReadLine()
		if err != nil {
			return
		}
		if text := plain(part); begins && text != "" {
			take(text)
		}
		begins = !more
	}
}

// instructions are the lines that a program has written to file descriptor 3.
type instructions struct {
	log        func(slog.Level, string)
	progress   func(int, string)
	checkpoint *durable.Checkpoint

	unsaved    error // why the last checkpoint is not saved; nil: it is
	after      error // the error that the handler returns in place of an output; nil: it returns the output
	code       string
	retryAfter time.Duration
}

func (t *instructions) take(line string) {
	if err := t.apply(line); err != nil {
		t.log(slog.LevelWarn, fmt.Sprintf("file descriptor 3: %.1000q: %v", line, err))
	}
}

// save saves a checkpoint. The lines behind it wait until it is saved, and so does the result.
func (t *instructions) save(text string) error {
	switch {
	case len(text) > durable.MaxBytes:
		t.unsaved = durable.CheckpointTooLarge(len(text))
	case !json.Valid([]byte(text)):
		return errors.New("the checkpoint must be JSON in one line")
	default:
		t.unsaved = t.checkpoint.Save(json.RawMessage(text))
	}
	return t.unsaved
}

func (t *instructions) apply(line string) error {
	order, rest, _ := strings.Cut(line, " ")
	first, text, _ := strings.Cut(strings.TrimSpace(rest), " ")
	switch order {
	case "progress":
		percent, err := strconv.Atoi(strings.TrimSuffix(first, "%"))
		if err != nil {
			return errors.New("the percentage must be a whole number")
		}
		t.progress(percent, strings.TrimSpace(text))
	case "log":
		var level slog.Level
		if err := level.UnmarshalText([]byte(first)); err != nil {
			return errors.New("the level must be debug, info, warn or error")
		}
		t.log(level, text)
	case "code":
		t.code = first
	case "checkpoint":
		return t.save(strings.TrimSpace(rest))
	case "snooze", "wait", "retry-after":
		d, err := time.ParseDuration(first)
		switch {
		case err != nil || d <= 0:
			return errors.New("the duration must be like 10s, 5m or 1h")
		case order == "snooze":
			t.after = worker.Snooze(d)
		case order == "wait":
			t.after = worker.WaitFor(d)
		default:
			t.retryAfter = d
		}
	default:
		return errors.New("it is none of progress, log, checkpoint, snooze, wait, code and retry-after")
	}
	return nil
}
