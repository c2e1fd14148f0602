package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/jobweaver/yamldoc"
	"github.com/jobweaver/jobweaver/shared/client"
)

// The exit codes. A job that failed or was cancelled has its own, which no other trouble has.
const (
	exitFailed      = 1 // also of commands that are about no job: dev, migrate, topics …
	exitCancelled   = 2
	exitRefused     = 3
	exitUnreached   = 4
	exitUsage       = 64  // EX_USAGE of sysexits.h
	exitNotYet      = 124 // as timeout(1) has it
	exitInterrupted = 130
)

// exitCode is an error that only sets the exit code: everything was printed before.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// usageError is a command line that is wrong. The API was not called.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }

func (e usageError) Unwrap() error { return e.err }

func usage(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// execute runs the command line. What fails before a command has begun is its arguments or its flags.
func execute(ctx context.Context, root *cobra.Command) error {
	began := false
	each(root, func(cmd *cobra.Command) {
		if run := cmd.RunE; run != nil {
			cmd.RunE = func(cmd *cobra.Command, args []string) error {
				began = true
				return run(cmd, args)
			}
		}
	})
	err := root.ExecuteContext(ctx)
	if err != nil && !began {
		return usageError{err}
	}
	return err
}

// errorBody is an error in JSON: the fields of the API's error body, where the API has refused, and the exit code.
type errorBody struct {
	Status    int    `json:"status,omitempty"`
	ErrorCode string `json:"errorCode,omitempty"`
	Message   string `json:"message"`
	TraceID   string `json:"traceId,omitempty"`
	Details   any    `json:"details,omitempty"`
	ExitCode  int    `json:"exitCode"`
}

// printError prints what went wrong as --output wants it. Of an exit code alone everything was printed before.
func printError(w io.Writer, form format, err error) {
	var code exitCode
	var wrong usageError
	if errors.As(err, &wrong) {
		err = wrong // without the request that was not sent
	}
	if err == nil || errors.As(err, &code) || errors.Is(err, context.Canceled) {
		return
	}
	if form != formatJSON && form != formatYAML {
		fmt.Fprintln(w, "jobweaver: "+printable(err.Error()+advice(err)))
		return
	}
	body := errorBody{Message: err.Error(), ExitCode: codeOf(err)}
	if refused := (*client.Error)(nil); errors.As(err, &refused) {
		body.Status, body.ErrorCode, body.TraceID = refused.Status, refused.ErrorCode, refused.TraceID
		if body.Message = refused.Message; len(refused.Details) > 0 {
			body.Details = refused.Details
		}
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return // not of texts and numbers
	}
	if form == formatYAML {
		_ = yamldoc.Write(w, raw)
	} else {
		_ = showJSON(w, raw)
	}
}

// each visits a command and all below it.
func each(cmd *cobra.Command, visit func(*cobra.Command)) {
	visit(cmd)
	for _, below := range cmd.Commands() {
		each(below, visit)
	}
}

// codeOf is the exit code for an error.
func codeOf(err error) int {
	var code exitCode
	var refused *client.Error
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.As(err, new(usageError)):
		return exitUsage
	case client.Unreached(err):
		return exitUnreached
	case errors.As(err, &refused):
		return exitRefused
	}
	return exitFailed
}
