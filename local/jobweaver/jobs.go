package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/client"
)

func newGet() *cobra.Command {
	var wait time.Duration
	cmd := &cobra.Command{
		Use: "get ID", Short: "Show a job", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			asJSON, err := wantsJSON(cmd)
			if err != nil {
				return err
			}
			job, err := api().Get(cmd.Context(), args[0], wait)
			if err != nil {
				return err
			}
			if asJSON {
				return showJSON(cmd.OutOrStdout(), job.Raw)
			}
			return showJob(cmd.OutOrStdout(), job)
		},
	}
	cmd.Flags().DurationVar(&wait, "wait", 0, "hold the answer until the job ends, at most this long")
	return cmd
}

func newList() *cobra.Command {
	filter := map[string]*string{}
	cmd := &cobra.Command{
		Use: "list", Short: "List jobs, newest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			values := url.Values{}
			for name, value := range filter {
				if name == "ordering-key" {
					name = "orderingKey"
				}
				if *value != "" {
					values.Set(name, *value)
				}
			}
			return showPage(cmd, "/api/jobs?"+values.Encode())
		},
	}
	for name, usage := range map[string]string{
		"status": "only jobs in this state", "type": "only jobs of this type", "queue": "only jobs of this queue",
		"tag": "only jobs with this tag", "since": "only jobs created at or after this instant (RFC 3339)",
		"until": "only jobs created before this instant (RFC 3339)", "ordering-key": "only jobs of this ordering key",
		"limit":  "at most so many, up to 200",
		"cursor": "go on from here",
	} {
		filter[name] = cmd.Flags().String(name, "", usage)
	}
	return cmd
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
		Use: "watch ID", Args: cobra.ExactArgs(1),
		Short: "Follow a job until its end; exits 0 completed, 1 failed, 2 cancelled",
		RunE:  func(cmd *cobra.Command, args []string) error { return watch(cmd, args[0]) },
	}
}

// watch prints each move of a job, and ends with the job.
func watch(cmd *cobra.Command, id string) error {
	asJSON, err := wantsJSON(cmd)
	if err != nil {
		return err
	}
	job, err := client.Follow(cmd.Context(), api(), id, func(job *client.Job) {
		if asJSON {
			return
		}
		text := job.Status
		if job.LastError != nil && job.Status != "COMPLETED" {
			text += "  " + job.LastError.ErrorCode + ": " + job.LastError.Message
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s  attempt %d  %s\n", at(&job.UpdatedAt), job.Attempt, line(text))
	})
	if err != nil {
		return err
	}
	if asJSON {
		if err := showJSON(cmd.OutOrStdout(), job.Raw); err != nil {
			return err
		}
	}
	switch job.Status {
	case "COMPLETED":
		return nil
	case "CANCELLED":
		return exitCode(2)
	default:
		return exitCode(1)
	}
}

func newSubmit() *cobra.Command {
	var request requestFlags
	var follow bool
	cmd := &cobra.Command{
		Use:   "submit [FILE|-]",
		Short: "Hand in a job: a JobRequest, or {\"jobs\": […]}, from a file or standard input, or by flags",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			body, err := request.body(cmd, args)
			if err != nil {
				return err
			}
			return submit(cmd, body, follow)
		},
	}
	request.register(cmd)
	cmd.Flags().BoolVar(&follow, "watch", false, "follow the job until its end")
	return cmd
}

func submit(cmd *cobra.Command, body []byte, follow bool) error {
	asJSON, err := wantsJSON(cmd)
	if err != nil {
		return err
	}
	var batch struct{ Jobs []json.RawMessage }
	if json.Unmarshal(body, &batch) == nil && batch.Jobs != nil {
		return submitBatch(cmd.Context(), cmd.OutOrStdout(), body)
	}
	accepted, err := api().Submit(cmd.Context(), body)
	if err != nil {
		return err
	}
	switch {
	case follow:
		if !asJSON {
			fmt.Fprintln(cmd.OutOrStdout(), "accepted "+line(accepted.JobID))
		}
		return watch(cmd, accepted.JobID)
	case asJSON:
		return json.NewEncoder(cmd.OutOrStdout()).Encode(accepted)
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), line(accepted.JobID))
	return err
}

func submitBatch(ctx context.Context, w io.Writer, body []byte) error {
	var answer struct {
		Results []struct {
			Status int           `json:"status"`
			JobID  string        `json:"jobId"`
			Error  *client.Error `json:"error"`
		} `json:"results"`
	}
	if _, err := api().Do(ctx, http.MethodPost, "/api/jobs/batch", "application/json", body, &answer); err != nil {
		return err
	}
	refused := 0
	for i, result := range answer.Results {
		if result.Error != nil {
			refused++
			fmt.Fprintf(os.Stderr, "job %d refused: %s\n", i, printable(result.Error.Error()))
			continue
		}
		fmt.Fprintln(w, line(result.JobID))
	}
	if refused > 0 {
		return fmt.Errorf("%d of %d jobs refused", refused, len(answer.Results))
	}
	return nil
}

// requestFlags build a JobRequest on the command line.
type requestFlags struct {
	jobType, payload, queue, key  string
	orderingKey, onFailure, runAt string
	expiresAt, callbackURL        string
	priority, retries             int
	delay, timeout                time.Duration
	tags, after                   []string
}

func (f *requestFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.jobType, "type", "", "job type")
	flags.StringVar(&f.payload, "payload", "{}", "payload, as JSON")
	flags.StringVar(&f.queue, "queue", "", "queue")
	flags.StringVar(&f.key, "key", "", "idempotency key")
	flags.IntVar(&f.priority, "priority", 0, "priority, 0 to 9")
	flags.IntVar(&f.retries, "retries", 3, "how many retries a failing job gets")
	flags.DurationVar(&f.delay, "delay", 0, "run after this time")
	flags.DurationVar(&f.timeout, "timeout", 0, "end an attempt after this time")
	flags.StringSliceVar(&f.tags, "tag", nil, "tag, may be repeated")
	flags.StringVar(&f.runAt, "run-at", "", "run then (RFC 3339)")
	flags.StringVar(&f.expiresAt, "expires-at", "", "cancel it when it has not started by then (RFC 3339)")
	flags.StringVar(&f.callbackURL, "callback-url", "", "where to POST its end to")
	flags.StringVar(&f.orderingKey, "ordering-key", "", "jobs of one key run one after another")
	flags.StringSliceVar(&f.after, "after", nil, "id of a job that has to complete first, may be repeated")
	flags.StringVar(&f.onFailure, "on-dependency-failure", "", "cancel, or run all the same")
}

func (f *requestFlags) body(cmd *cobra.Command, args []string) ([]byte, error) {
	switch {
	case f.jobType != "" && len(args) > 0:
		return nil, fmt.Errorf("either --type or a file, not both")
	case f.jobType != "":
		return f.encode(cmd)
	case len(args) == 0:
		return nil, fmt.Errorf("what to submit? name a file, - for standard input, or --type")
	}
	body, err := readFile(cmd, args[0])
	return bytes.TrimSpace(body), err
}

func (f *requestFlags) encode(cmd *cobra.Command) ([]byte, error) {
	if !json.Valid([]byte(f.payload)) {
		return nil, fmt.Errorf("--payload is not JSON")
	}
	request := map[string]any{
		"jobType": f.jobType, "payload": json.RawMessage(f.payload), "maxRetryCount": f.retries, "priority": f.priority,
	}
	for _, field := range []struct {
		flag, name string
		value      any
	}{
		{"queue", "queue", f.queue},
		{"key", "idempotencyKey", f.key},
		{"delay", "delayMs", f.delay.Milliseconds()},
		{"timeout", "timeoutMs", f.timeout.Milliseconds()},
		{"tag", "tags", f.tags},
		{"run-at", "runAt", f.runAt},
		{"expires-at", "expiresAt", f.expiresAt},
		{"ordering-key", "orderingKey", f.orderingKey},
		{"callback-url", "callbackUrl", f.callbackURL},
		{"after", "after", f.after},
		{"on-dependency-failure", "onDependencyFailure", f.onFailure},
	} {
		if cmd.Flags().Changed(field.flag) {
			request[field.name] = field.value
		}
	}
	return json.Marshal(request)
}
