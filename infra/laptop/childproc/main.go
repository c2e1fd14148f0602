package childproc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// Main is the main of a program that runs the command in its arguments while a server runs. start starts the server
// and returns the environment for the command, and a function that stops the server. The process ends with the
// command's exit code.
func Main(name string, start func(ctx context.Context) (env []string, stop func() error, err error)) {
	code, err := runWith(os.Args[1:], start)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		code = 1
	}
	os.Exit(code)
}

func runWith(args []string, start func(context.Context) ([]string, func() error, error)) (code int, err error) {
	if len(args) == 0 {
		return 0, errors.New("no command given")
	}
	ctx, done := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer done()
	env, stop, err := start(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	// A terminal's Ctrl-C reaches the command by itself; a SIGTERM must be passed on.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = cmd.Run()
	if failed := new(exec.ExitError); errors.As(err, &failed) {
		return max(failed.ExitCode(), 1), nil
	}
	return 0, err
}
