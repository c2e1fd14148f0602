package jobcmd

import (
	"encoding/json"
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
		newFlowCreate(), newFlowList(), newFlowGet(),
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

func newFlowGet() *cobra.Command {
	wait := false
	get := cli.Verb("get ID", "Show a flow, and the states of its jobs", 1, func(cmd *cobra.Command, args []string) error {
		if !wait {
			return cli.Show(cmd, cli.Path("flows", args[0]), showFlow)
		}
		return awaitFlow(cmd, args[0])
	})
	get.Flags().BoolVar(&wait, "wait", false, "wait until it has ended")
	return get
}

// awaitFlow shows a flow once it has ended. The exit code is that of a job that ended so.
func awaitFlow(cmd *cobra.Command, id string) error {
	gateway := cli.API(cmd)
	at := fmt.Sprintf("%s?wait=%dms", cli.Path("flows", id), batchWait.Milliseconds())
	for {
		var flow client.Flow
		var raw json.RawMessage
		err := gateway.Through(cmd.Context(), cli.Retrying(cmd), func() (err error) {
			raw, err = gateway.Do(cmd.Context(), http.MethodGet, at, "", nil, &flow)
			return err
		})
		if err != nil {
			return err
		}
		if flow.FinishedAt == nil {
			continue
		}
		if err := cli.Present(cmd, raw, func(w io.Writer) error { return showFlow(w, flow) }); err != nil {
			return err
		}
		return exitOf(flow.Status)
	}
}

func newFlowList() *cobra.Command {
	cursor := ""
	list := cli.Verb("list", "List flows, newest first", 0, func(cmd *cobra.Command, _ []string) error {
		at := cli.Path("flows")
		if cursor != "" {
			at += "?cursor=" + cursor
		}
		type page struct {
			Flows      []client.Flow
			NextCursor *string
		}
		return cli.Show(cmd, at, func(w io.Writer, p page) error {
			defer cli.MoreOf(cmd, p.NextCursor)
			return showFlows(w, p.Flows)
		})
	})
	list.Flags().StringVar(&cursor, "cursor", "", "the next page: the cursor that the previous page printed")
	return list
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
			names[i], job.JobID, job.JobType, cli.DashIfEmpty(job.Status), cli.DashIfEmpty(strings.Join(after, ", ")),
		}
	})
	if flow.FollowUpError != "" {
		_, more := fmt.Fprintln(w, "the job that follows was refused:", cli.Line(flow.FollowUpError))
		err = errors.Join(err, more)
	}
	return err
}
