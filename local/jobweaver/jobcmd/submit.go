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
	"github.com/spf13/pflag"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
	"github.com/jobweaver/jobweaver/shared/client"
)

// NewSubmit makes the command submit.
func NewSubmit() *cobra.Command {
	var follow followFlags
	cmd := &cobra.Command{
		Use:   "submit [FILE|-]",
		Short: "Submit a job: a JobRequest, or {\"jobs\": […]}, from a file or standard input, or by flags",
		Args:  cli.Between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			body, err := requestBody(cmd, args)
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
	registerRequest(cmd.Flags())
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

// requestFlag is a flag that gives a member of a JobRequest.
type requestFlag struct {
	name, member string // of a policy with the policy's name: unique.for
	otherwise    any
	usage        string
}

// texts are values of a flag that is repeated; a comma is part of one.
type texts []string

// requestFlags are the flags from which a JobRequest is made. The key of a policy comes before its other members.
var requestFlags = []requestFlag{
	{"type", "jobType", "", "job type"},
	{"payload", "payload", "{}", "payload: JSON, @FILE, or - for standard input"},
	{"queue", "queue", "", "queue"},
	{"owner", "ownerId", "", "owner of the job; only where authentication is off"},
	{"retry-policy", "retryPolicy", "", `JSON such as {"type":"fixed","delayMs":5000}`},
	{"key", "idempotencyKey", "", "idempotency key"},
	{"priority", "priority", 0, "priority, 0 to 9"},
	{"retries", "maxRetryCount", 3, "number of retries after failed attempts"},
	{"delay", "delayMs", time.Duration(0), "run after this time"},
	{"timeout", "timeoutMs", time.Duration(0), "end an attempt after this time"},
	{"tag", "tags", texts{}, "tag, may be repeated; a comma is part of it"},
	{"run-at", "runAt", "", "run at this instant (RFC 3339)"},
	{"expires-at", "expiresAt", "", "cancel it if it has not started by then (RFC 3339)"},
	{"callback-url", "callbackUrl", "", "POST the result to this URL"},
	{"ordering-key", "orderingKey", "", "jobs of one key run one at a time"},
	{"keep-build", "keepBuild", false, "run retries on the build that began the job, while it lives"},
	{"fairness-key", "fairnessKey", "", "share the queue by this key instead of by the owner"},
	{"batch", "batchId", "", "id of the open batch that the job joins"},
	{"unique", "unique.key", "", "make no job while another one has this key"},
	{"unique-for", "unique.for", time.Duration(0), "of --unique: only jobs accepted within this time count"},
	{"unique-while", "unique.while", "", "of --unique: only jobs that are WAITING or ACTIVE count"},
	{"throttle", "throttle.key", "", "jobs of this key are due --throttle-per apart"},
	{"throttle-per", "throttle.perMs", time.Duration(0), "of --throttle"},
	{"singleton", "singleton.key", "", "jobs of this key run one at a time"},
	{"singleton-else", "singleton.else", "", "of --singleton: queue a further job, or drop it"},
	{"debounce", "debounce.key", "", "requests of this key change one job, until none comes for a time"},
	{"debounce-delay", "debounce.delayMs", time.Duration(0), "of --debounce: this time"},
	{"debounce-max", "debounce.maxDelayMs", time.Duration(0),
		"of --debounce: the longest delay from the first request on"},
	{"after", "after", []string{}, "id of a job that has to complete first, may be repeated"},
	{"on-dependency-failure", "onDependencyFailure", "", "when such a job fails: cancel, or run"},
}

func registerRequest(flags *pflag.FlagSet) {
	for _, f := range requestFlags {
		switch otherwise := f.otherwise.(type) {
		case string:
			flags.String(f.name, otherwise, f.usage)
		case int:
			flags.Int(f.name, otherwise, f.usage)
		case bool:
			flags.Bool(f.name, otherwise, f.usage)
		case time.Duration:
			flags.Duration(f.name, otherwise, f.usage)
		case texts:
			flags.StringArray(f.name, nil, f.usage)
		case []string:
			flags.StringSlice(f.name, nil, f.usage)
		}
	}
}

// requestBody returns the body of a request: from a file, or from flags.
func requestBody(cmd *cobra.Command, args []string) ([]byte, error) {
	switch typed := cmd.Flags().Lookup("type").Value.String() != ""; {
	case typed && len(args) > 0:
		return nil, cli.Usage("either --type or a file, not both")
	case typed:
		return encodeRequest(cmd)
	case len(args) == 0:
		return nil, cli.Usage("what to submit? Name a file, - for standard input, or give --type")
	}
	body, err := cli.ReadFile(cmd, args[0])
	if err == nil && !json.Valid(body) {
		err = cli.Usage("%s is not JSON", args[0])
	}
	return bytes.TrimSpace(body), err
}

func encodeRequest(cmd *cobra.Command) ([]byte, error) {
	request, err := givenMembers(cmd)
	if err != nil {
		return nil, err
	}
	for _, f := range requestFlags {
		switch f.name {
		case "payload", "retries", "priority":
			if _, given := request[f.member]; !given {
				request[f.member] = json.RawMessage(cmd.Flags().Lookup(f.name).DefValue)
			}
		}
	}
	return json.Marshal(request)
}

// givenMembers returns the members of a request whose flags are given.
func givenMembers(cmd *cobra.Command) (map[string]any, error) {
	request := map[string]any{}
	for _, f := range requestFlags {
		if !cmd.Flags().Changed(f.name) {
			continue
		}
		value, err := f.value(cmd)
		if err != nil {
			return nil, err
		}
		policy, name, isOfPolicy := strings.Cut(f.member, ".")
		switch members, _ := request[policy].(map[string]any); {
		case !isOfPolicy:
			request[f.member] = value
		case name == "key":
			request[policy] = map[string]any{name: value}
		case members == nil:
			return nil, cli.Usage("--%s goes only with --%s", f.name, policy)
		default:
			members[name] = value
		}
	}
	return request, nil
}

// value returns the member that the flag gives.
func (f requestFlag) value(cmd *cobra.Command) (any, error) {
	value := cmd.Flags().Lookup(f.name).Value
	text := value.String()
	switch f.otherwise.(type) {
	case int, bool:
		return json.RawMessage(text), nil
	case texts, []string:
		return value.(pflag.SliceValue).GetSlice(), nil
	case time.Duration:
		if d, err := time.ParseDuration(text); strings.HasSuffix(f.member, "Ms") {
			return d.Milliseconds(), err
		}
	}
	switch f.name {
	case "payload":
		return payloadOf(cmd, text)
	case "retry-policy":
		if !json.Valid([]byte(text)) {
			return nil, cli.Usage("--retry-policy is not JSON")
		}
		return json.RawMessage(text), nil
	}
	return text, nil
}

func payloadOf(cmd *cobra.Command, text string) (any, error) {
	payload := []byte(text)
	if name, named := strings.CutPrefix(text, "@"); named || name == "-" {
		var err error
		if payload, err = cli.ReadFile(cmd, name); err != nil {
			return nil, err
		}
	}
	if !json.Valid(payload) {
		return nil, cli.Usage("--payload is not JSON; @FILE reads a file, - standard input")
	}
	return json.RawMessage(payload), nil
}
