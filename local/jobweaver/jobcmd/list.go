package jobcmd

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
	"github.com/jobweaver/jobweaver/shared/client"
)

// NewList makes the command list.
func NewList() *cobra.Command {
	var filter filterFlags
	var page cli.PageFlags
	var source, id *string
	cmd := &cobra.Command{
		Use: "list", Short: "List jobs, newest first", Args: cli.Exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			query := page.AddTo(queryOf(filter.values(cmd)))
			if cmd.Flags().Changed("event-id") {
				query.Set("eventSource", *source)
				query.Set("eventId", *id)
			}
			return showPage(cmd, "/api/jobs?"+query.Encode())
		},
	}
	filter.register(cmd)
	source = cli.QueryFlag(cmd, "event-source", "with --event-id: the job that the CloudEvent of this source has become")
	id = cli.QueryFlag(cmd, "event-id", "with --event-source: the id of that event")
	cmd.MarkFlagsRequiredTogether("event-source", "event-id")
	page.Register(cmd)
	return cmd
}

// showPage prints a page of jobs.
func showPage(cmd *cobra.Command, path string) error {
	type page struct {
		Jobs       []client.Job
		NextCursor *string
	}
	return cli.Show(cmd, path, func(w io.Writer, p page) error {
		defer cli.MoreOf(cmd, p.NextCursor)
		return showJobs(w, p.Jobs)
	})
}
