// Package jobcmd has the commands about jobs: submit, get, list, watch, logs, commands for one job or for many, and
// operations.
package jobcmd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
	"github.com/jobweaver/jobweaver/shared/client"
)

// NewSubmit makes the command submit.
func NewSubmit() *cobra.Command {
	var request requestFlags
	var follow followFlags
	cmd := &cobra.Command{
		Use:   "submit [FILE|-]",
		Short: "Submit a job: a JobRequest, or {\"jobs\": […]}, from a file or standard input, or by flags",
		Args:  cli.Between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			body, err := request.body(cmd, args)
			if err != nil {
				return err
			}
			if err := follow.check(); err != nil {
				return err
			}
			var batch struct{ Jobs []json.RawMessage }
			if json.Unmarshal(body, &batch) == nil && batch.Jobs != nil {
				return submitBatch(cmd, body)
			}
			return follow.submit(cmd, cli.Path("jobs"), body)
		},
	}
	request.register(cmd)
	follow.register(cmd)
	return cmd
}

// followFlags select what a command does after it has submitted a job.
type followFlags struct {
	watch bool
	wait  time.Duration
}

func (f *followFlags) register(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.watch, "watch", false, "follow the job until its end")
	cmd.Flags().DurationVar(&f.wait, "wait", 0, "wait until the job has ended, at most this long, and print it")
}

func (f *followFlags) check() error {
	if f.watch && f.wait > 0 {
		return cli.Usage("either --watch or --wait")
	}
	if f.wait < 0 {
		return cli.Usage("--wait must not be negative")
	}
	return nil
}

// submit sends a request that makes one job, and follows the job if a flag asks for it.
func (f *followFlags) submit(cmd *cobra.Command, to string, body []byte) error {
	var accepted client.Accepted
	gateway := cli.API(cmd)
	raw, err := gateway.Do(cmd.Context(), http.MethodPost, to, "application/json", body, &accepted)
	if err != nil {
		return err
	}
	if f.wait > 0 {
		job, err := gateway.Await(cmd.Context(), accepted.JobID, f.wait, cli.Retrying(cmd))
		if err == nil {
			err = cli.Present(cmd, job.Raw, func(w io.Writer) error { return showJob(w, job) })
		}
		if err != nil {
			return err
		}
		return endOf(job)
	}
	if !f.watch {
		return cli.Present(cmd, raw, func(w io.Writer) error { return cli.ShowNames(w, raw) })
	}
	if cli.FormatOf(cmd) == cli.FormatText {
		fmt.Fprintln(cmd.OutOrStdout(), "accepted "+cli.Line(accepted.JobID))
	}
	return watch(cmd, gateway, accepted.JobID)
}

func submitBatch(cmd *cobra.Command, body []byte) error {
	var answer struct {
		Results []struct {
			Error *client.Error `json:"error"`
		} `json:"results"`
	}
	raw, err := cli.API(cmd).Do(cmd.Context(), http.MethodPost, "/api/jobs/batch", "application/json", body, &answer)
	if err != nil {
		return err
	}
	refused := 0
	for i, result := range answer.Results {
		if result.Error != nil {
			refused++
			fmt.Fprintf(cmd.ErrOrStderr(), "job %d refused: %s\n", i, cli.Printable(result.Error.Error()))
		}
	}
	if refused < len(answer.Results) || cli.FormatOf(cmd) == cli.FormatJSON || cli.FormatOf(cmd) == cli.FormatYAML {
		if err := cli.Present(cmd, raw, func(w io.Writer) error { return cli.ShowNames(w, raw) }); err != nil {
			return err
		}
	}
	if refused > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "%d of %d jobs refused\n", refused, len(answer.Results))
		return cli.ExitCode(cli.ExitRefused)
	}
	return nil
}

// requestFlags are the flags from which a JobRequest is made.
type requestFlags struct {
	jobType, payload, queue, key               string
	orderingKey, fairnessKey, onFailure, runAt string
	expiresAt, callbackURL, batch              string
	owner, retryPolicy                         string
	unique, uniqueWhile, throttle              string
	singleton, singletonElse, debounce         string
	debounceDelay, debounceMax                 time.Duration
	keepBuild                                  bool
	priority, retries                          int
	delay, timeout, uniqueFor, throttlePer     time.Duration
	tags, after                                []string
}

func (f *requestFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.jobType, "type", "", "job type")
	flags.StringVar(&f.payload, "payload", "{}", "payload: JSON, @FILE, or - for standard input")
	flags.StringVar(&f.queue, "queue", "", "queue")
	flags.StringVar(&f.owner, "owner", "", "owner of the job; only where authentication is off")
	flags.StringVar(&f.retryPolicy, "retry-policy", "", `JSON such as {"type":"fixed","delayMs":5000}`)
	flags.StringVar(&f.key, "key", "", "idempotency key")
	flags.IntVar(&f.priority, "priority", 0, "priority, 0 to 9")
	flags.IntVar(&f.retries, "retries", 3, "number of retries after failed attempts")
	flags.DurationVar(&f.delay, "delay", 0, "run after this time")
	flags.DurationVar(&f.timeout, "timeout", 0, "end an attempt after this time")
	flags.StringArrayVar(&f.tags, "tag", nil, "tag, may be repeated; a comma is part of it")
	flags.StringVar(&f.runAt, "run-at", "", "run at this instant (RFC 3339)")
	flags.StringVar(&f.expiresAt, "expires-at", "", "cancel it if it has not started by then (RFC 3339)")
	flags.StringVar(&f.callbackURL, "callback-url", "", "POST the result to this URL")
	flags.StringVar(&f.orderingKey, "ordering-key", "", "jobs of one key run one at a time")
	flags.BoolVar(&f.keepBuild, "keep-build", false, "run retries on the build that began the job, while it lives")
	flags.StringVar(&f.fairnessKey, "fairness-key", "", "share the queue by this key instead of by the owner")
	flags.StringVar(&f.batch, "batch", "", "id of the open batch that the job joins")
	flags.StringVar(&f.unique, "unique", "", "make no job while another one has this key")
	flags.DurationVar(&f.uniqueFor, "unique-for", 0, "of --unique: only jobs accepted within this time count")
	flags.StringVar(&f.uniqueWhile, "unique-while", "", "of --unique: only jobs that are WAITING or ACTIVE count")
	flags.StringVar(&f.throttle, "throttle", "", "jobs of this key are due --throttle-per apart")
	flags.DurationVar(&f.throttlePer, "throttle-per", 0, "of --throttle")
	flags.StringVar(&f.singleton, "singleton", "", "jobs of this key run one at a time")
	flags.StringVar(&f.singletonElse, "singleton-else", "", "of --singleton: queue a further job, or drop it")
	flags.StringVar(&f.debounce, "debounce", "", "requests of this key change one job, until none comes for a time")
	flags.DurationVar(&f.debounceDelay, "debounce-delay", 0, "of --debounce: this time")
	flags.DurationVar(&f.debounceMax, "debounce-max", 0, "of --debounce: the longest delay from the first request on")
	flags.StringSliceVar(&f.after, "after", nil, "id of a job that has to complete first, may be repeated")
	flags.StringVar(&f.onFailure, "on-dependency-failure", "", "when such a job fails: cancel, or run")
}

func (f *requestFlags) body(cmd *cobra.Command, args []string) ([]byte, error) {
	switch {
	case f.jobType != "" && len(args) > 0:
		return nil, cli.Usage("either --type or a file, not both")
	case f.jobType != "":
		return f.encode(cmd)
	case len(args) == 0:
		return nil, cli.Usage("what to submit? Name a file, - for standard input, or give --type")
	}
	body, err := cli.ReadFile(cmd, args[0])
	if err == nil && !json.Valid(body) {
		err = cli.Usage("%s is not JSON", args[0])
	}
	return bytes.TrimSpace(body), err
}

func (f *requestFlags) encode(cmd *cobra.Command) ([]byte, error) {
	request, err := f.given(cmd)
	if err != nil {
		return nil, err
	}
	if _, given := request["payload"]; !given {
		request["payload"] = json.RawMessage(f.payload)
	}
	request["maxRetryCount"], request["priority"] = f.retries, f.priority
	return json.Marshal(request)
}

// given returns the members of a request whose flags are given.
func (f *requestFlags) given(cmd *cobra.Command) (map[string]any, error) {
	payload := []byte(f.payload)
	if name, named := strings.CutPrefix(f.payload, "@"); named || name == "-" {
		var err error
		if payload, err = cli.ReadFile(cmd, name); err != nil {
			return nil, err
		}
	}
	if cmd.Flags().Changed("payload") && !json.Valid(payload) {
		return nil, cli.Usage("--payload is not JSON; @FILE reads a file, - standard input")
	}
	if cmd.Flags().Changed("retry-policy") && !json.Valid([]byte(f.retryPolicy)) {
		return nil, cli.Usage("--retry-policy is not JSON")
	}
	request, err := f.policies(cmd)
	if err != nil {
		return nil, err
	}
	for _, field := range []struct {
		flag, name string
		value      any
	}{
		{"type", "jobType", f.jobType},
		{"payload", "payload", json.RawMessage(payload)},
		{"queue", "queue", f.queue},
		{"owner", "ownerId", f.owner},
		{"priority", "priority", f.priority},
		{"retries", "maxRetryCount", f.retries},
		{"retry-policy", "retryPolicy", json.RawMessage(f.retryPolicy)},
		{"key", "idempotencyKey", f.key},
		{"delay", "delayMs", f.delay.Milliseconds()},
		{"timeout", "timeoutMs", f.timeout.Milliseconds()},
		{"tag", "tags", f.tags},
		{"run-at", "runAt", f.runAt},
		{"expires-at", "expiresAt", f.expiresAt},
		{"ordering-key", "orderingKey", f.orderingKey},
		{"fairness-key", "fairnessKey", f.fairnessKey},
		{"keep-build", "keepBuild", f.keepBuild},
		{"callback-url", "callbackUrl", f.callbackURL},
		{"batch", "batchId", f.batch},
		{"after", "after", f.after},
		{"on-dependency-failure", "onDependencyFailure", f.onFailure},
	} {
		if cmd.Flags().Changed(field.flag) {
			request[field.name] = field.value
		}
	}
	return request, nil
}

// policies returns the submit policies of a request, each of which is an object with a key.
func (f *requestFlags) policies(cmd *cobra.Command) (map[string]any, error) {
	request := map[string]any{}
	for _, field := range []struct {
		flag, member, name string
		value              any
	}{
		{"unique", "unique", "key", f.unique},
		{"unique-for", "unique", "for", f.uniqueFor.String()},
		{"unique-while", "unique", "while", f.uniqueWhile},
		{"throttle", "throttle", "key", f.throttle},
		{"throttle-per", "throttle", "perMs", f.throttlePer.Milliseconds()},
		{"singleton", "singleton", "key", f.singleton},
		{"singleton-else", "singleton", "else", f.singletonElse},
		{"debounce", "debounce", "key", f.debounce},
		{"debounce-delay", "debounce", "delayMs", f.debounceDelay.Milliseconds()},
		{"debounce-max", "debounce", "maxDelayMs", f.debounceMax.Milliseconds()},
	} {
		switch policy, _ := request[field.member].(map[string]any); {
		case !cmd.Flags().Changed(field.flag):
		case field.name == "key":
			request[field.member] = map[string]any{"key": field.value}
		case policy == nil:
			return nil, cli.Usage("--%s goes only with --%s", field.flag, field.member)
		default:
			policy[field.name] = field.value
		}
	}
	return request, nil
}
