package viewcmd

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
	"github.com/jobweaver/jobweaver/shared/client"
)

// NewWorkers makes the command workers.
func NewWorkers() *cobra.Command {
	about := "List the workers, and the job types that none of them runs"
	return cli.Verb("workers", about, 0, func(cmd *cobra.Command, _ []string) error {
		return cli.Show(cmd, cli.Path("workers"), func(w io.Writer, page client.WorkerList) error {
			head := "WORKER\tLIVE\tDRAINING\tQUEUES\tBUSY\tSLOTS\tRATE\tSEEN"
			err := cli.Table(w, head, "no workers", len(page.Workers), func(i int) []any {
				x := page.Workers[i]
				return []any{x.WorkerID, x.Live && !x.Stopping, drainOf(x.Draining, x.Drained), strings.Join(x.Queues, ","),
					cli.OrDash(x.Busy), x.Slots, rate(x.Rate), cli.At(&x.SeenAt)}
			})
			if err != nil || len(page.WithoutWorker) == 0 {
				return err
			}
			fmt.Fprintln(w)
			return cli.Table(w, "WITHOUT A WORKER\tQUEUE\tPENDING", "", len(page.WithoutWorker), func(i int) []any {
				x := page.WithoutWorker[i]
				return []any{x.JobType, x.Queue, x.Jobs}
			})
		})
	})
}

func rate(perSecond *float64) string {
	if perSecond == nil {
		return "-"
	}
	return strconv.FormatFloat(*perSecond, 'f', 1, 64)
}

func drainOf(draining, drained bool) string {
	switch {
	case drained:
		return "drained"
	case draining:
		return "yes"
	}
	return "-"
}
