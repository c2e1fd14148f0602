package jobcmd

import (
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
)

// NewGet makes the command get.
func NewGet() *cobra.Command {
	var wait time.Duration
	cmd := &cobra.Command{
		Use: "get ID", Short: "Show a job", Args: cli.Exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			job, err := cli.API(cmd).Await(cmd.Context(), args[0], wait, cli.Retrying(cmd))
			if err != nil {
				return err
			}
			return cli.Present(cmd, job.Raw, func(w io.Writer) error { return showJob(w, job) })
		},
	}
	cmd.Flags().DurationVar(&wait, "wait", 0, "wait until the job has ended, at most this long")
	return cmd
}
