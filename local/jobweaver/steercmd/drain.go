package steercmd

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
	"github.com/jobweaver/jobweaver/shared/client"
)

const lookEvery = time.Second // heartbeats come every 1 to 3 s

// NewDrain makes the command drain.
func NewDrain() *cobra.Command {
	var undo, wait bool
	var timeout time.Duration
	short := "Let a worker finish what it runs and start nothing more, until it ends"
	cmd := cli.Verb("drain WORKER", short, 1, func(cmd *cobra.Command, args []string) error {
		switch {
		case undo && wait:
			return cli.Usage("give --undo or --wait, not both")
		case timeout <= 0:
			return cli.Usage("--timeout must be more than 0")
		case cmd.Flags().Changed("timeout") && !wait:
			return cli.Usage("--timeout needs --wait")
		}
		method := http.MethodPut
		if undo {
			method = http.MethodDelete
		}
		if err := cli.Call(cmd, method, cli.Path("workers", args[0], "drain"), nil, showDrain); err != nil || !wait {
			return err
		}
		return awaitDrained(cmd, args[0], timeout)
	})
	cmd.Flags().BoolVar(&undo, "undo", false, "let the worker take attempts again")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until nothing of it runs")
	cmd.Flags().DurationVar(&timeout, "timeout", 10*time.Minute, "how long to wait; then the exit code is 124")
	return cmd
}

func showDrain(w io.Writer, d client.WorkerDrain) error {
	state := "takes attempts"
	if d.Draining {
		state = "drains"
	}
	if !d.Applied {
		state += " as soon as the scheduler has applied it"
	}
	_, err := fmt.Fprintf(w, "%s %s\n", cli.Line(d.WorkerID), state)
	return err
}

// awaitDrained waits until a worker has nothing left. A worker that has left runs nothing, and one that is silent has
// lost its attempts to others.
func awaitDrained(cmd *cobra.Command, workerID string, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
	defer cancel()
	for {
		list, err := cli.API(cmd).Workers.List(ctx)
		if err != nil && ctx.Err() == nil {
			return err
		}
		at := -1
		if err == nil {
			at = slices.IndexFunc(list.Workers, func(w client.WorkerInfo) bool { return w.WorkerID == workerID })
		}
		switch {
		case err != nil: // out of time
		case at < 0:
			return report(cmd, workerID, "has left")
		case !list.Workers[at].Live:
			return report(cmd, workerID, "is silent; its attempts run elsewhere")
		case list.Workers[at].Drained:
			return report(cmd, workerID, "is drained")
		case !list.Workers[at].Draining:
			fmt.Fprintf(cmd.ErrOrStderr(), "the drain of %s was undone\n", cli.Line(workerID))
			return cli.ExitCode(cli.ExitFailed)
		}
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
			if err := cmd.Context().Err(); err != nil {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "%s still runs attempts after %v\n", cli.Line(workerID), timeout)
			return cli.ExitCode(cli.ExitNotYet)
		}
	}
}

func report(cmd *cobra.Command, workerID, state string) error {
	if cli.FormatOf(cmd) != cli.FormatText {
		return nil
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s %s\n", cli.Line(workerID), state)
	return err
}
