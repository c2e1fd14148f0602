// Command withpostgres runs a command with one PostgreSQL for all tests in it:
//
//	go run ./shared/pgtest/withpostgres go test ./...
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/jobweaver/jobweaver/shared/pgtest"
)

func main() {
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "withpostgres:", err)
		code = 1
	}
	os.Exit(code)
}

func run(command []string) (code int, err error) {
	if len(command) == 0 {
		return 0, errors.New("usage: withpostgres COMMAND [ARGUMENT...]")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	server, err := pgtest.StartServer(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	// A terminal's Ctrl-C reaches the command by itself; a SIGTERM is for us to hand on.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Env = append(os.Environ(), "PGTEST_URL="+server.URL())
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = cmd.Run()
	if failed := new(exec.ExitError); errors.As(err, &failed) {
		return max(failed.ExitCode(), 1), nil
	}
	return 0, err
}
