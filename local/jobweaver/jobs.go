package main

import (
	"fmt"
	"io"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/shared/client"
)

func newGet() *cobra.Command {
	var wait time.Duration
	cmd := &cobra.Command{
		Use: "get ID", Short: "Show a job", Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			job, err := api(cmd).Await(cmd.Context(), args[0], wait, lost(cmd))
			if err != nil {
				return err
			}
			return present(cmd, job.Raw, func(w io.Writer) error { return showJob(w, job) })
		},
	}
	cmd.Flags().DurationVar(&wait, "wait", 0, "wait until the job has ended, at most this long")
	return cmd
}

func newList() *cobra.Command {
	var filter filterFlags
	var page pageFlags
	cmd := &cobra.Command{
		Use: "list", Short: "List jobs, newest first", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return showPage(cmd, "/api/jobs?"+page.in(queryOf(filter.values(cmd))).Encode())
		},
	}
	filter.register(cmd)
	page.register(cmd)
	return cmd
}

// pageFlags choose a page of a list.
type pageFlags struct{ limit, cursor string }

func (p *pageFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.limit, "limit", "", "length of the page, up to 200")
	cmd.Flags().StringVar(&p.cursor, "cursor", "", "the next page: the cursor that the previous page printed")
}

func (p *pageFlags) in(query url.Values) url.Values {
	if p.limit != "" {
		query.Set("limit", p.limit)
	}
	if p.cursor != "" {
		query.Set("cursor", p.cursor)
	}
	return query
}

// showPage prints a page of jobs.
func showPage(cmd *cobra.Command, path string) error {
	type page struct {
		Jobs       []client.Job
		NextCursor *string
	}
	return show(cmd, path, func(w io.Writer, p page) error {
		defer moreOf(cmd, p.NextCursor)
		return showJobs(w, p.Jobs)
	})
}

func newWatch() *cobra.Command {
	return &cobra.Command{
		Use: "watch ID", Args: exactly(1),
		Short: "Follow a job until its end; exits 0 completed, 1 failed, 2 cancelled",
		RunE:  func(cmd *cobra.Command, args []string) error { return watch(cmd, api(cmd), args[0]) },
	}
}

// watch prints each move of a job, and ends with the job.
func watch(cmd *cobra.Command, gateway *client.Client, id string) error {
	seen := func(job *client.Job) {
		if formatOf(cmd) != formatText {
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
		fmt.Fprintf(w, "%s  attempt %d  %s%s\n", at(&job.UpdatedAt), job.Attempt, coloured(w, job.Status), line(text))
	}
	job, err := client.FollowThrough(cmd.Context(), gateway, id, seen, lost(cmd))
	if err != nil {
		return err
	}
	if err := present(cmd, job.Raw, func(io.Writer) error { return nil }); err != nil {
		return err
	}
	return endOf(job)
}

// endOf is the exit code that tells how a job has ended.
func endOf(job *client.Job) error {
	switch job.Status {
	case "COMPLETED":
		return nil
	case "CANCELLED":
		return exitCode(exitCancelled)
	case "FAILED":
		return exitCode(exitFailed)
	default:
		return exitCode(exitNotYet)
	}
}

// lost prints that a command goes on when the gateway is there again.
func lost(cmd *cobra.Command) func(error) {
	return func(err error) {
		fmt.Fprintln(cmd.ErrOrStderr(), "the gateway is away, trying again: "+line(err.Error()))
	}
}
