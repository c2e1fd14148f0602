package jobcmd

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
	"github.com/jobweaver/jobweaver/shared/client"
)

// NewWatch makes the command watch.
func NewWatch() *cobra.Command {
	return &cobra.Command{
		Use: "watch ID", Args: cli.Exactly(1),
		Short: "Follow a job until its end; exits 0 completed, 1 failed, 2 cancelled",
		RunE:  func(cmd *cobra.Command, args []string) error { return watch(cmd, cli.API(cmd), args[0]) },
	}
}

// watch prints each transition of a job, and ends when the job ends.
func watch(cmd *cobra.Command, gateway *client.Client, id string) error {
	seen := func(job *client.Job) {
		if cli.FormatOf(cmd) != cli.FormatText {
			return
		}
		text := ""
		if job.LastError != nil && job.Status != "COMPLETED" {
			text += "  " + job.LastError.ErrorCode + ": " + job.LastError.Message
		}
		if waits := waitsFor(job); waits != "" {
			text += "  waits for " + waits
		}
		w := cmd.OutOrStdout()
		fmt.Fprintf(w, "%s  attempt %d  %s%s\n", cli.At(&job.UpdatedAt), job.Attempt,
			cli.Coloured(w, job.Status), cli.Line(text))
	}
	job, err := client.FollowThrough(cmd.Context(), gateway, id, seen, cli.Retrying(cmd))
	if err != nil {
		return err
	}
	if err := cli.Present(cmd, job.Raw, func(io.Writer) error { return nil }); err != nil {
		return err
	}
	return endOf(job)
}

// endOf returns the exit code for the end of a job.
func endOf(job *client.Job) error {
	switch job.Status {
	case "COMPLETED":
		return nil
	case "CANCELLED":
		return cli.ExitCode(cli.ExitCancelled)
	case "FAILED":
		return cli.ExitCode(cli.ExitFailed)
	default:
		return cli.ExitCode(cli.ExitNotYet)
	}
}
