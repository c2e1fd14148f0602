package cli

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

// The exit codes. A job that failed or was cancelled has a code that no other error has.
const (
	ExitFailed      = 1 // also for commands that are not about a job: dev, migrate, topics …
	ExitCancelled   = 2
	ExitRefused     = 3
	ExitUnreached   = 4
	ExitUsage       = 64  // EX_USAGE of sysexits.h
	ExitNotYet      = 124 // the exit code of timeout(1)
	ExitInterrupted = 130
)

// ExitCode is an error that only sets the exit code: all output was printed before.
type ExitCode int

func (e ExitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// usageError is an error in the command line. The API was not called.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }

func (e usageError) Unwrap() error { return e.err }

// Usage makes an error for a wrong command line.
func Usage(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// Execute runs the command line. An error before the command has begun is one in its arguments or flags.
func Execute(ctx context.Context, root *cobra.Command) error {
	began := false
	Each(root, func(cmd *cobra.Command) {
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

// errorBody is an error in JSON: the fields of the API's error body, if the API has refused the request, and the exit
// code.
type errorBody struct {
	Status    int    `json:"status,omitempty"`
	ErrorCode string `json:"errorCode,omitempty"`
	Message   string `json:"message"`
	TraceID   string `json:"traceId,omitempty"`
	Details   any    `json:"details,omitempty"`
	ExitCode  int    `json:"exitCode"`
}

// PrintError prints an error in the format of --output. It prints nothing for an ExitCode, whose command has printed
// everything.
func PrintError(w io.Writer, form Format, err error) {
	var code ExitCode
	var wrong usageError
	if errors.As(err, &wrong) {
		err = wrong // without the URL of the request that was not sent
	}
	if err == nil || errors.As(err, &code) || errors.Is(err, context.Canceled) {
		return
	}
	if form != FormatJSON && form != FormatYAML {
		fmt.Fprintln(w, "jobweaver: "+Printable(err.Error()+Advice(err)))
		return
	}
	body := errorBody{Message: err.Error(), ExitCode: CodeOf(err)}
	if refused := (*client.Error)(nil); errors.As(err, &refused) {
		body.Status, body.ErrorCode, body.TraceID = refused.Status, refused.ErrorCode, refused.TraceID
		if body.Message = refused.Message; len(refused.Details) > 0 {
			body.Details = refused.Details
		}
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return // cannot happen with texts and numbers
	}
	if form == FormatYAML {
		_ = yamldoc.Write(w, raw)
	} else {
		_ = showJSON(w, raw)
	}
}

// Each visits a command and all below it.
func Each(cmd *cobra.Command, visit func(*cobra.Command)) {
	visit(cmd)
	for _, below := range cmd.Commands() {
		Each(below, visit)
	}
}

// CodeOf returns the exit code for an error.
func CodeOf(err error) int {
	var code ExitCode
	var refused *client.Error
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	case errors.Is(err, context.Canceled):
		return ExitInterrupted
	case errors.As(err, new(usageError)):
		return ExitUsage
	case client.Unreached(err):
		return ExitUnreached
	case errors.As(err, &refused):
		return ExitRefused
	}
	return ExitFailed
}
