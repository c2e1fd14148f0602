package steercmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
	"github.com/jobweaver/jobweaver/shared/client"
)

// NewQueue makes the command queue.
func NewQueue() *cobra.Command {
	cmd := &cobra.Command{Use: "queue", Short: "List, create and remove queues"}
	cmd.AddCommand(
		cli.Verb("list", "List the queues", 0, func(cmd *cobra.Command, _ []string) error {
			return cli.Show(cmd, cli.Path("queues"), func(w io.Writer, page struct{ Queues []client.Queue }) error {
				return showQueues(w, page.Queues)
			})
		}),
		cli.Verb("get NAME", "Show a queue", 1, func(cmd *cobra.Command, args []string) error {
			return cli.Show(cmd, cli.Path("queues", args[0]), showQueue)
		}),
		newQueueCreate(), newQueueRemove())
	return cmd
}

func newQueueCreate() *cobra.Command {
	var workers string
	cmd := cli.Verb("create NAME", "Create a queue; workers serve it within seconds", 1,
		func(cmd *cobra.Command, args []string) error {
			body := map[string]any{}
			if cmd.Flags().Changed("workers") {
				body["workers"] = workers
			}
			return cli.Call(cmd, http.MethodPut, cli.Path("queues", args[0]), body, showQueue)
		})
	cmd.Flags().StringVar(&workers, "workers", "runjob", "which workers serve it: runjob, or pull for pull workers")
	return cmd
}

func newQueueRemove() *cobra.Command {
	var drain, wait bool
	var timeout time.Duration
	cmd := cli.Verb("remove NAME", "Remove a queue that was created: it takes no new jobs, and ends when it is empty", 1,
		func(cmd *cobra.Command, args []string) error {
			switch {
			case timeout <= 0:
				return cli.Usage("--timeout must be more than 0")
			case cmd.Flags().Changed("timeout") && !wait:
				return cli.Usage("--timeout needs --wait")
			}
			at := cli.Path("queues", args[0])
			if drain {
				at += "?drain=true"
			}
			if err := cli.Call(cmd, http.MethodDelete, at, nil, showQueue); err != nil || !wait {
				return err
			}
			return awaitRemoved(cmd, args[0], timeout)
		})
	cmd.Flags().BoolVar(&drain, "drain", false, "also if it has jobs that have not ended: they run first")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until it is gone")
	cmd.Flags().DurationVar(&timeout, "timeout", 10*time.Minute, "how long to wait; then the exit code is 124")
	return cmd
}

// awaitRemoved waits until a queue is gone.
func awaitRemoved(cmd *cobra.Command, name string, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
	defer cancel()
	for {
		now, err := cli.API(cmd).Queues.Get(ctx, name)
		switch {
		case errors.Is(err, client.ErrNotFound):
			return report(cmd, name, "is gone")
		case err != nil && ctx.Err() == nil:
			return err
		case err == nil && now.State == client.QueueActive:
			fmt.Fprintf(cmd.ErrOrStderr(), "the removal of %s was taken back\n", cli.Line(name))
			return cli.ExitCode(cli.ExitFailed)
		}
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
			if err := cmd.Context().Err(); err != nil {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "%s is still there after %v\n", cli.Line(name), timeout)
			return cli.ExitCode(cli.ExitNotYet)
		}
	}
}

func showQueue(w io.Writer, q client.Queue) error { return showQueues(w, []client.Queue{q}) }

func showQueues(w io.Writer, queues []client.Queue) error {
	head := "QUEUE\tORIGIN\tSTATE\tSERVED BY\tLIVE WORKERS\tWAITING\tRUNNING\tPAUSED\tCREATED BY"
	return cli.Table(w, head, "there is no queue", len(queues), func(i int) []any {
		q := queues[i]
		return []any{q.Queue, q.Origin, q.State, cmp.Or(q.Workers, "-"), q.LiveWorkers, q.Waiting, q.Running, q.Paused,
			cmp.Or(q.CreatedBy, "-")}
	})
}
