package jobcmd

import (
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
)

// filterFlags select jobs.
type filterFlags struct {
	status []string
	texts  map[string]*string
	noCode bool
	all    bool
}

var filterNames = []struct{ flag, name, usage string }{
	{"type", "type", "jobs of this type"}, {"queue", "queue", "jobs of this queue"}, {"tag", "tag", "jobs with this tag"},
	{"ordering-key", "orderingKey", "jobs of this ordering key"}, {"owner", "ownerId", "jobs of this owner"},
	{"error-code", "errorCode", "jobs whose last failure has this error code"},
	{"payload", "payload", "jobs with this value in their payload, such as order.id:17"},
	{"trace-id", "traceId", "jobs of this trace"}, {"key", "idempotencyKey", "the job with this idempotency key"},
	{"after", "after", "jobs that come after this job"}, {"batch", "batchId", "jobs of this batch"},
	{"fan-out", "fanOutId", "jobs of the elements of this fan-out"},
	{"search", "q", "jobs with this id, trace id, idempotency key, error code or tag, or this text in their last error"},
	{"since", "since", "jobs accepted at this instant or later: RFC 3339, or an age such as 90m or 3d"},
	{"until", "until", "jobs accepted before this instant"},
	{"ended-since", "endedSince", "jobs that ended at this instant or later"},
	{"ended-until", "endedUntil", "jobs that ended before this instant"},
}

func (f *filterFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&f.status, "status", nil, "jobs in these states: several times, or with commas")
	f.registerTexts(cmd)
}

// registerTexts registers all filters but the states.
func (f *filterFlags) registerTexts(cmd *cobra.Command) {
	f.texts = map[string]*string{}
	for _, n := range filterNames {
		f.texts[n.flag] = cli.QueryFlag(cmd, n.flag, n.usage)
	}
	cmd.Flags().BoolVar(&f.noCode, "no-error-code", false,
		"jobs whose last failure has no error code, and those without one")
	cmd.MarkFlagsMutuallyExclusive("error-code", "no-error-code")
}

func (f *filterFlags) values(cmd *cobra.Command) map[string]any {
	values := map[string]any{}
	if len(f.status) > 0 {
		for i, status := range f.status {
			f.status[i] = strings.ToUpper(status)
		}
		values["status"] = f.status
	}
	for _, n := range filterNames {
		if cmd.Flags().Changed(n.flag) {
			values[n.name] = *f.texts[n.flag]
		}
	}
	if f.noCode {
		values["noErrorCode"] = true
	}
	if f.all {
		values["all"] = true
	}
	return values
}

// queryOf returns a filter as parameters for the list of jobs.
func queryOf(filter map[string]any) url.Values {
	values := url.Values{}
	for name, value := range filter {
		switch value := value.(type) {
		case string:
			values.Set(name, value)
		case []string:
			values[name] = value
		case bool:
			if name != "all" { // a list without a filter has all jobs
				values.Set(name, "true")
			}
		}
	}
	return values
}
