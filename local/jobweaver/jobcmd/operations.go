package jobcmd

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
	"github.com/jobweaver/jobweaver/shared/client"
)

// operate starts an operation, and with wait follows it to its end.
func operate(cmd *cobra.Command, body map[string]any, wait bool) error {
	if !wait {
		return cli.Call(cmd, http.MethodPost, cli.Path("operations"), body, showOperation)
	}
	sent, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("write request: %w", err)
	}
	gateway, o := cli.API(cmd), client.Operation{}
	to := cli.Path("operations")
	if _, err := gateway.Do(cmd.Context(), http.MethodPost, to, "application/json", sent, &o); err != nil {
		return err
	}
	return followOperation(cmd, gateway, o.OperationID)
}

func followOperation(cmd *cobra.Command, gateway *client.Client, id string) error {
	progress := newOperationProgress(cmd)
	for {
		var o client.Operation
		at := fmt.Sprintf("%s?wait=%dms", cli.Path("operations", id), progress.wait().Milliseconds())
		var raw json.RawMessage
		err := gateway.Through(cmd.Context(), cli.Retrying(cmd), func() (err error) {
			raw, err = gateway.Do(cmd.Context(), http.MethodGet, at, "", nil, &o)
			return err
		})
		if err == nil {
			err = progress.show(o)
		}
		if err != nil {
			return err
		}
		if o.FinishedAt != nil {
			return cli.Present(cmd, raw, func(w io.Writer) error { return showOperation(w, o) })
		}
	}
}

// NewOperations makes the command operations.
func NewOperations() *cobra.Command {
	cursor := ""
	list := cli.Verb("list", "List operations, newest first", 0, func(cmd *cobra.Command, _ []string) error {
		values := url.Values{}
		if cursor != "" {
			values.Set("cursor", cursor)
		}
		type page struct {
			Operations []client.Operation
			NextCursor *string
		}
		return cli.Show(cmd, cli.Path("operations")+"?"+values.Encode(), func(w io.Writer, p page) error {
			defer cli.MoreOf(cmd, p.NextCursor)
			return showOperations(w, p.Operations)
		})
	})
	list.Flags().StringVar(&cursor, "cursor", "", "the next page: the cursor that the previous page printed")
	return cli.Group("operations", "Show operations: commands for many jobs",
		list,
		cli.Verb("get ID", "Show an operation, and what it skipped", 1, func(cmd *cobra.Command, args []string) error {
			return cli.Show(cmd, cli.Path("operations", args[0]), showOperation)
		}),
		cli.Verb("watch ID", "Wait until an operation has ended", 1, func(cmd *cobra.Command, args []string) error {
			return followOperation(cmd, cli.API(cmd), args[0])
		}),
		cli.Verb("abort ID", "Abort an operation: it sends no more commands", 1,
			func(cmd *cobra.Command, args []string) error {
				return cli.Call(cmd, http.MethodPost, cli.Path("operations", args[0], "abort"), nil, showOperation)
			}))
}

func showOperation(w io.Writer, o client.Operation) error {
	if err := showOperations(w, []client.Operation{o}); err != nil {
		return err
	}
	for _, r := range o.Reasons {
		if _, err := fmt.Fprintf(w, "skipped %d: %s\n", r.Jobs, cli.Line(r.Reason)); err != nil {
			return err
		}
	}
	return nil
}

func showOperations(w io.Writer, operations []client.Operation) error {
	head := "OPERATION\tCOMMAND\tSTATUS\tMATCHED\tASKED\tAPPLIED\tREFUSED\tSKIPPED\tCREATED\tFINISHED"
	return cli.Table(w, head, "no client.Operations", len(operations), func(i int) []any {
		o := operations[i]
		p := o.Progress
		return []any{
			o.OperationID, o.Command, o.Status, p.Matched, p.Asked, p.Applied, p.Refused, p.Skipped,
			cli.At(&o.CreatedAt), cli.AtOrDash(o.FinishedAt),
		}
	})
}
