package jobcmd

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
	"github.com/jobweaver/jobweaver/shared/client"
)

// NewFlow makes the command flow.
func NewFlow() *cobra.Command {
	return cli.Group("flow", "Submit, show and cancel flows: jobs that name each other",
		newFlowCreate(), newFlowList(), newFlowGet(), newFlowRetry(),
		cli.Verb("cancel ID", "Cancel the jobs of a flow", 1, func(cmd *cobra.Command, args []string) error {
			return cli.Call(cmd, http.MethodPost, cli.Path("flows", args[0], "cancel"), nil,
				func(w io.Writer, kept struct{ OperationID string }) error {
					_, err := fmt.Fprintln(w, "operation", kept.OperationID)
					return err
				})
		}))
}

func newFlowCreate() *cobra.Command {
	const short = "Submit a flow from a file with its JSON, and print its id; - is standard input"
	return cli.Verb("create FILE", short, 1, func(cmd *cobra.Command, args []string) error {
		var flow map[string]any
		if err := readJSON(cmd, args[0], &flow); err != nil {
			return err
		}
		return cli.Call(cmd, http.MethodPost, cli.Path("flows"), flow, func(w io.Writer, made client.MadeFlow) error {
			_, err := fmt.Fprintf(w, "flow %s has %d jobs\n", made.FlowID, len(made.Jobs))
			return err
		})
	})
}

func newFlowRetry() *cobra.Command {
	var again client.FlowRetry
	const short = "Run the failed and cancelled jobs of a flow again, in the order of its graph; or other ones anew"
	retry := cli.Verb("retry ID", short, 1, func(cmd *cobra.Command, args []string) error {
		var body any
		shown := "up to %d jobs run again\n"
		if again.All || len(again.From) > 0 {
			body, shown = again, "%d new jobs run\n"
		}
		return cli.Call(cmd, http.MethodPost, cli.Path("flows", args[0], "retry"), body,
			func(w io.Writer, kept struct{ Jobs int }) error {
				_, err := fmt.Fprintf(w, shown, kept.Jobs)
				return err
			})
	})
	retry.Flags().StringSliceVar(&again.From, "from", nil,
		"run the jobs with these names again, and all that come after them, as new jobs")
	retry.Flags().BoolVar(&again.All, "all", false, "run the whole flow again, as new jobs")
	retry.MarkFlagsMutuallyExclusive("from", "all")
	return retry
}

func newFlowGet() *cobra.Command {
	wait := false
	get := cli.Verb("get ID", "Show a flow, and the states of its jobs", 1, func(cmd *cobra.Command, args []string) error {
		if !wait {
			return cli.Show(cmd, cli.Path("flows", args[0]), showFlow)
		}
		return awaitEnd(cmd, cli.Path("flows", args[0]), func(f client.Flow) client.Batch { return f.Batch }, showFlow)
	})
	get.Flags().BoolVar(&wait, "wait", false, "wait until it has ended")
	return get
}

func newFlowList() *cobra.Command {
	type page struct {
		Flows      []client.Flow
		NextCursor *string
	}
	return newGroupList("flows", func(cmd *cobra.Command, w io.Writer, p page) error {
		defer cli.MoreOf(cmd, p.NextCursor)
		return showFlows(w, p.Flows)
	})
}

func showFlows(w io.Writer, flows []client.Flow) error {
	batches := make([]client.Batch, len(flows))
	for i, flow := range flows {
		batches[i] = flow.Batch
		batches[i].BatchID = flow.FlowID
	}
	return showBatchesAs(w, "FLOW", "no flows", batches)
}

func showFlow(w io.Writer, flow client.Flow) error {
	if err := showFlows(w, []client.Flow{flow}); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(flow.Jobs))
	err := cli.Table(w, "NAME\tJOB\tTYPE\tSTATUS\tAFTER", "no jobs", len(names), func(i int) []any {
		job := flow.Jobs[names[i]]
		after := make([]string, len(job.After))
		for at, d := range job.After {
			if after[at] = d.Name; d.Name == "" {
				after[at] = d.JobID
			}
			if d.On != client.OnCompleted {
				after[at] += " " + d.On
			}
		}
		return []any{
			names[i], job.JobID, job.JobType, statusOf(job), cli.DashIfEmpty(strings.Join(after, ", ")),
		}
	})
	return errors.Join(err, showRefusal(w, flow.Batch))
}

// statusOf returns the status of a job, and of a fan-out how many of its elements have ended.
func statusOf(job client.FlowJob) string {
	status := cli.DashIfEmpty(job.Status)
	if of := job.Elements; of != nil {
		ended := of.Counts[client.Completed] + of.Counts[client.Failed] + of.Counts[client.Cancelled]
		status += fmt.Sprintf(" %d/%d", ended, of.Total)
	}
	return status
}
