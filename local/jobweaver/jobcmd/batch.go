package jobcmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
	"github.com/jobweaver/jobweaver/shared/client"
)

// batchWait is how long one request waits for the end of a batch.
const batchWait = 30 * time.Second

// NewBatch makes the command batch.
func NewBatch() *cobra.Command {
	return cli.Group("batch", "Create, close and show batches: jobs that end together",
		newBatchCreate(), newBatchList(), newBatchGet(),
		cli.Verb("close ID", "Close a batch: it takes no more jobs", 1, func(cmd *cobra.Command, args []string) error {
			return cli.Call(cmd, http.MethodPost, cli.Path("batches", args[0], "close"), nil, showBatchState)
		}),
		batchOperation("cancel ID", "Close a batch and cancel its jobs"),
		batchOperation("retry ID", "Run the failed and cancelled jobs of a batch again"))
}

func batchOperation(use, short string) *cobra.Command {
	wait := false
	var verb *cobra.Command
	verb = cli.Verb(use, short, 1, func(cmd *cobra.Command, args []string) error {
		var kept struct{ OperationID string }
		gateway := cli.API(cmd)
		raw, err := gateway.Do(cmd.Context(), http.MethodPost, cli.Path("batches", args[0], verb.Name()), "", nil, &kept)
		if err != nil {
			return err
		}
		if wait {
			return followOperation(cmd, gateway, kept.OperationID)
		}
		return cli.Present(cmd, raw, func(w io.Writer) error {
			_, err := fmt.Fprintln(w, "operation", kept.OperationID)
			return err
		})
	})
	verb.Flags().BoolVar(&wait, "wait", false, "follow the operation to its end")
	return verb
}

func newBatchCreate() *cobra.Command {
	file, texts := "", map[string]*string{}
	closed, wait := false, false
	create := cli.Verb("create", "Create a batch, and print its id", 0, func(cmd *cobra.Command, _ []string) error {
		batch := map[string]any{}
		if file != "" {
			if err := readJSON(cmd, file, &batch); err != nil {
				return err
			}
		}
		for flag, value := range texts {
			if !cmd.Flags().Changed(flag) {
				continue
			}
			if name := followUpOf[flag]; name != "" {
				var job map[string]any
				if err := readJSON(cmd, *value, &job); err != nil {
					return err
				}
				batch[name] = job
			} else {
				batch[map[string]string{
					"name": "name", "expires-at": "expiresAt", "key": "idempotencyKey", "owner": "ownerId",
				}[flag]] = *value
			}
		}
		if closed {
			batch["closed"] = true
		}
		if !wait {
			return cli.Call(cmd, http.MethodPost, cli.Path("batches"), batch, showBatchState)
		}
		return createAndWait(cmd, batch)
	})
	flags := create.Flags()
	flags.StringVar(&file, "file", "", "a batch as JSON, perhaps with its jobs; - for standard input")
	for flag, usage := range map[string]string{
		"name":        "a name for people",
		"expires-at":  "cancel what waits if it has not ended by then (RFC 3339)",
		"key":         "idempotency key",
		"owner":       "owner of the batch; only where authentication is off",
		"on-complete": "file of the job that follows when all jobs have completed",
		"on-failure":  "file of the job that follows when the batch ends in another way",
	} {
		texts[flag] = flags.String(flag, "", usage)
	}
	flags.BoolVar(&closed, "closed", false, "it takes no jobs but those of the file")
	flags.BoolVar(&wait, "wait", false, "wait until it has ended")
	return create
}

var followUpOf = map[string]string{"on-complete": "onComplete", "on-failure": "onFailure"}

func readJSON(cmd *cobra.Command, name string, into *map[string]any) error {
	text, err := cli.ReadFile(cmd, name)
	if err != nil {
		return err
	}
	if json.Unmarshal(text, into) != nil {
		return cli.Usage("%s is not a JSON object", name)
	}
	return nil
}

func createAndWait(cmd *cobra.Command, batch map[string]any) error {
	body, err := json.Marshal(batch)
	if err != nil {
		return fmt.Errorf("write batch: %w", err)
	}
	var made client.Batch
	_, err = cli.API(cmd).Do(cmd.Context(), http.MethodPost, cli.Path("batches"), "application/json", body, &made)
	if err != nil {
		return err
	}
	return awaitBatch(cmd, made.BatchID)
}

func awaitBatch(cmd *cobra.Command, id string) error {
	return awaitEnd(cmd, cli.Path("batches", id), func(b client.Batch) client.Batch { return b }, showBatch)
}

// awaitEnd waits until a batch or a flow has ended, and shows it. The exit code is that of a job with the same end.
func awaitEnd[T any](
	cmd *cobra.Command, path string, batchOf func(T) client.Batch, show func(io.Writer, T) error,
) error {
	gateway := cli.API(cmd)
	for {
		var shown T
		var raw json.RawMessage
		err := gateway.Through(cmd.Context(), cli.Retrying(cmd), func() error {
			return client.Held(batchWait, func(wait time.Duration) (err error) {
				at := fmt.Sprintf("%s?wait=%dms", path, wait.Milliseconds())
				raw, err = gateway.Do(cmd.Context(), http.MethodGet, at, "", nil, &shown)
				return err
			})
		})
		if err != nil {
			return err
		}
		batch := batchOf(shown)
		if batch.FinishedAt == nil {
			continue
		}
		if err := cli.Present(cmd, raw, func(w io.Writer) error { return show(w, shown) }); err != nil {
			return err
		}
		return exitOf(batch.Status)
	}
}

// exitOf is the exit code for a batch or a flow that has ended.
func exitOf(status string) error {
	switch status {
	case client.Completed:
		return nil
	case client.Cancelled:
		return cli.ExitCode(cli.ExitCancelled)
	}
	return cli.ExitCode(cli.ExitFailed)
}

func newBatchGet() *cobra.Command {
	wait := false
	const short = "Show a batch with the counts of its jobs"
	get := cli.Verb("get ID", short, 1, func(cmd *cobra.Command, args []string) error {
		if wait {
			return awaitBatch(cmd, args[0])
		}
		return cli.Show(cmd, cli.Path("batches", args[0]), showBatch)
	})
	get.Flags().BoolVar(&wait, "wait", false, "wait until it has ended")
	return get
}

func newBatchList() *cobra.Command {
	type page struct {
		Batches    []client.Batch
		NextCursor *string
	}
	return newGroupList("batches", func(cmd *cobra.Command, w io.Writer, p page) error {
		defer cli.MoreOf(cmd, p.NextCursor)
		return showBatches(w, p.Batches)
	})
}

// newGroupList makes the command that lists batches, or flows.
func newGroupList[P any](what string, show func(*cobra.Command, io.Writer, P) error) *cobra.Command {
	var status, owner, cursor *string
	list := cli.Verb("list", "List "+what+", newest first", 0, func(cmd *cobra.Command, _ []string) error {
		values := url.Values{}
		for name, value := range map[string]*string{"status": status, "ownerId": owner, "cursor": cursor} {
			if *value != "" {
				values.Set(name, *value)
			}
		}
		return cli.Show(cmd, cli.Path(what)+"?"+values.Encode(), func(w io.Writer, p P) error { return show(cmd, w, p) })
	})
	status = list.Flags().String("status", "", what+" in this state")
	owner = list.Flags().String("owner", "", what+" of this owner")
	cursor = list.Flags().String("cursor", "", "the next page: the cursor that the previous page printed")
	return list
}

func showBatchState(w io.Writer, b client.Batch) error {
	_, err := fmt.Fprintf(w, "batch %s is %s\n", b.BatchID, b.Status)
	return err
}

func showBatch(w io.Writer, b client.Batch) error {
	err := showBatches(w, []client.Batch{b})
	for _, state := range cli.Statuses {
		if n := b.Counts[state]; n > 0 {
			_, more := fmt.Fprintf(w, "%s %d\n", state, n)
			err = errors.Join(err, more)
		}
	}
	return errors.Join(err, showRefusal(w, b))
}

// showRefusal writes why the job that follows a batch was refused, if it was.
func showRefusal(w io.Writer, b client.Batch) (err error) {
	if b.FollowUpError != "" {
		_, err = fmt.Fprintln(w, "the job that follows was refused:", cli.Line(b.FollowUpError))
	}
	return err
}

func showBatches(w io.Writer, batches []client.Batch) error {
	return showBatchesAs(w, "BATCH", "no batches", batches)
}

func showBatchesAs(w io.Writer, what, none string, batches []client.Batch) error {
	head := what + "\tNAME\tSTATUS\tPERCENT\tJOBS\tCREATED\tFINISHED\tFOLLOWED BY"
	return cli.Table(w, head, none, len(batches), func(i int) []any {
		b := &batches[i]
		percent, total := any(b.Percent), any(b.Total)
		if b.Counts == nil {
			percent, total = "-", "-"
		}
		return []any{
			b.BatchID, cli.DashIfEmpty(cli.Line(b.Name)), b.Status, percent, total, cli.At(&b.CreatedAt),
			cli.AtOrDash(b.FinishedAt), cli.DashIfEmpty(b.FollowUpJobID),
		}
	})
}
