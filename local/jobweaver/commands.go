package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// jobCommand is a command to one job, or as an operation to many: to those named, or to all that match.
type jobCommand struct {
	name, short string
	flags       func(*pflag.FlagSet, map[string]any)
	check       func(body map[string]any) error // of the flags; nil: all are good
	dead        bool                            // for FAILED jobs, which it means without a filter, too
	body        map[string]any
	filter      filterFlags
	confirm     confirmFlags
	wait        bool
}

func newCommand(name, short string) *cobra.Command {
	return (&jobCommand{name: name, short: short}).cobra()
}

func (c *jobCommand) cobra() *cobra.Command {
	c.body = map[string]any{}
	cmd := &cobra.Command{Use: c.name + " [ID…]", Short: c.short + ", or many by their ids or by a filter", RunE: c.run}
	if c.flags != nil {
		c.flags(cmd.Flags(), c.body)
	}
	c.filter.register(cmd)
	cmd.Flags().BoolVar(&c.filter.all, "all", false, "all jobs whose state allows the command")
	c.confirm.register(cmd)
	cmd.Flags().BoolVar(&c.wait, "wait", false, "with many jobs: wait until the operation has ended")
	return cmd
}

func (c *jobCommand) run(cmd *cobra.Command, ids []string) error {
	filter := c.filter.values(cmd)
	if c.check != nil {
		if err := c.check(c.body); err != nil {
			return err
		}
	}
	switch {
	case len(ids) > 0 && (len(filter) > 0 || c.confirm.dryRun):
		return usage("either ids of jobs, or a filter (--dry-run goes with a filter)")
	case len(ids) == 1:
		return commandOne(cmd, c.name, ids[0], c.body)
	case len(ids) > 1:
		c.body["jobIds"] = ids
		return c.operate(cmd)
	case len(filter) == 0 && !c.dead:
		return usage("which jobs? Name some, or give a filter, such as --status FAILED or --all")
	case c.filter.all && len(filter) > 1:
		return usage("--all goes without another filter")
	}
	return c.many(cmd, filter)
}

// many gives the command to all jobs that match, and asks before where a filter is easily wider than it was meant.
func (c *jobCommand) many(cmd *cobra.Command, filter map[string]any) error {
	wide := len(filter) == 0 || c.filter.all || filter["q"] != nil || c.name == "delete"
	if _, chosen := filter["status"]; c.dead && !chosen {
		delete(filter, "all")
		filter["status"] = []string{string(jobstate.Failed)}
	}
	if c.confirm.dryRun {
		return showMatching(cmd, c.name, filter)
	}
	if wide {
		if ok, err := c.confirm.confirm(cmd, c.name, filter); err != nil || !ok {
			return err
		}
	}
	c.body["filter"] = filter
	return c.operate(cmd)
}

func (c *jobCommand) operate(cmd *cobra.Command) error {
	c.body["command"] = c.name
	return operate(cmd, c.body, c.wait)
}

func commandOne(cmd *cobra.Command, name, id string, body map[string]any) error {
	method, at := http.MethodPost, path("jobs", id, name)
	if name == "delete" {
		method, at = http.MethodDelete, path("jobs", id)
	}
	var sent any
	if len(body) > 0 {
		sent = body
	}
	return call(cmd, method, at, sent, func(w io.Writer, kept struct{ Command int }) error {
		_, err := fmt.Fprintf(w, "%s of %s is command %d\n", name, line(id), kept.Command)
		return err
	})
}

func newReschedule() *cobra.Command {
	c := &jobCommand{name: "reschedule", short: "Run a waiting job at another time", flags: rescheduleFlags}
	c.check = func(body map[string]any) error {
		if _, given := body["runAt"]; !given {
			return usage("when? Give --at INSTANT or --in DURATION")
		}
		return nil
	}
	cmd := c.cobra()
	cmd.MarkFlagsMutuallyExclusive("at", "in")
	return cmd
}

// rescheduleFlags say when.
func rescheduleFlags(flags *pflag.FlagSet, body map[string]any) {
	flags.Func("at", "run at this instant (RFC 3339)", func(text string) error {
		at, err := time.Parse(time.RFC3339, text)
		body["runAt"] = at
		return err
	})
	flags.Func("in", "run after this time", func(text string) error {
		after, err := time.ParseDuration(text)
		body["runAt"] = time.Now().Add(after).UTC()
		return err
	})
}

// filterFlags choose jobs.
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
	{"trace-id", "traceId", "jobs of this trace"}, {"key", "idempotencyKey", "the job with this idempotency key"},
	{"after", "after", "jobs that come after this job"},
	{"search", "q", "jobs with this id, trace id, idempotency key, error code or tag, or this text in their last error"},
	{"since", "since", "jobs created at this instant or later: RFC 3339, or an age such as 90m or 3d"},
	{"until", "until", "jobs created before this instant"},
}

func (f *filterFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&f.status, "status", nil, "jobs in these states: several times, or with commas")
	f.registerTexts(cmd)
}

// registerTexts registers all but the states.
func (f *filterFlags) registerTexts(cmd *cobra.Command) {
	f.texts = map[string]*string{}
	for _, n := range filterNames {
		f.texts[n.flag] = queryFlag(cmd, n.flag, n.usage)
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

// queryOf is a filter as the list of jobs takes it.
func queryOf(filter map[string]any) url.Values {
	values := url.Values{}
	for name, value := range filter {
		switch value := value.(type) {
		case string:
			values.Set(name, value)
		case []string:
			values[name] = value
		case bool:
			if name != "all" { // a list without a filter has all
				values.Set(name, "true")
			}
		}
	}
	return values
}

// newDead lists dead jobs, and has them run again.
func newDead() *cobra.Command {
	var filter filterFlags
	var page pageFlags
	list := verb("dead", "List jobs that failed for good, newest first", 0, func(cmd *cobra.Command, _ []string) error {
		return showPage(cmd, "/api/jobs/dead?"+page.in(queryOf(filter.values(cmd))).Encode())
	})
	filter.registerTexts(list)
	page.register(list)
	redrive := (&jobCommand{name: "retry", short: "Run a dead job again", dead: true}).cobra()
	redrive.Use = "redrive [ID…]"
	list.AddCommand(redrive)
	return list
}
