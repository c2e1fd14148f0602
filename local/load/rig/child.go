package rig

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/jobweaver/jobweaver/infra/laptop/childproc"
)

const (
	startPatience = 2 * time.Minute // a first start may download files
	stopPatience  = time.Minute
)

// Ready begins the line on which a child prints its address when it is ready.
const Ready = "ready "

// Child is a process of the rig. Its standard error goes to a file.
type Child struct {
	name  string
	cmd   *exec.Cmd
	log   string
	lines chan string // of its standard output; closed at its end
	ended <-chan struct{}
}

// start runs a command as a child that does not outlive us.
func start(name, dir string, env []string, command string, args ...string) (*Child, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	c := &Child{name: name, log: filepath.Join(dir, name+".log"), lines: make(chan string, 16)}
	log, err := os.Create(c.log)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	defer func() { _ = log.Close() }()
	// Not a StdoutPipe: childproc waits for the child, which would close the pipe while its reader still reads.
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	c.cmd = exec.Command(command, args...)
	c.cmd.Env = append(os.Environ(), env...)
	c.cmd.Stdout, c.cmd.Stderr = write, log
	c.ended, err = childproc.Start(c.cmd, syscall.SIGTERM)
	if err := errors.Join(err, write.Close()); err != nil {
		_ = read.Close()
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		defer close(c.lines)
		defer func() { _ = read.Close() }()
		for scan := bufio.NewScanner(read); scan.Scan(); {
			c.lines <- scan.Text()
		}
	}()
	return c, nil
}

// StartProcess starts a program, whose standard error goes to a file in dir.
func StartProcess(name, dir string, env []string, command string, args ...string) (*Child, error) {
	return start(name, dir, env, command, args...)
}

// Pid returns the process id.
func (c *Child) Pid() int { return c.cmd.Process.Pid }

// line waits for the next line of the child's output.
func (c *Child) line(ctx context.Context) (string, error) {
	select {
	case line, ok := <-c.lines:
		if !ok {
			<-c.ended
			return "", c.trouble("ended early")
		}
		return line, nil
	case <-ctx.Done():
		return "", fmt.Errorf("wait for %s: %w", c.name, ctx.Err())
	}
}

// ready waits for the line that begins with Ready, and returns the rest of it.
func (c *Child) ready(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	for {
		line, err := c.line(ctx)
		if err != nil {
			return "", errors.Join(err, c.Stop())
		}
		if where, found := strings.CutPrefix(line, Ready); found {
			return where, nil
		}
	}
}

// Stop asks the child to end, and kills it if it does not.
func (c *Child) Stop() error {
	_ = c.cmd.Process.Signal(syscall.SIGTERM) // an error means that it has ended
	lines, patience := c.lines, time.NewTimer(stopPatience)
	defer patience.Stop()
	for {
		select {
		case _, more := <-lines: // read on: the child would hang on a full pipe
			if !more {
				lines = nil
			}
		case <-c.ended:
			if !c.cmd.ProcessState.Success() {
				return c.trouble("failed")
			}
			return nil
		case <-patience.C:
			_ = c.cmd.Process.Kill()
			<-c.ended
			return c.trouble("did not stop")
		}
	}
}

func (c *Child) trouble(what string) error {
	text, _ := os.ReadFile(c.log)
	return fmt.Errorf("%s %s (%s)\n%s", c.name, what, c.cmd.ProcessState, text[max(0, len(text)-2000):])
}
