package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// newCommand gives a command to one job, or as an operation to many: to those named, or to all that match.
func newCommand(name, short string, flags func(*pflag.FlagSet, map[string]any)) *cobra.Command {
	body, filter := map[string]any{}, filterFlags{}
	var wait bool
	cmd := &cobra.Command{
		Use: name + " [ID…]", Short: short + ", or many by their ids or by a filter",
		RunE: func(cmd *cobra.Command, ids []string) error {
			matching := filter.values(cmd)
			switch {
			case (len(ids) > 0) == (len(matching) > 0):
				return fmt.Errorf("which jobs? name some, or give a filter, as --status FAILED")
			case len(ids) == 1:
				return commandOne(cmd, name, ids[0], body)
			case len(ids) > 1:
				body["jobIds"] = ids
			default:
				body["filter"] = matching
			}
			body["command"] = name
			return operate(cmd, body, wait)
		},
	}
	if flags != nil {
		flags(cmd.Flags(), body)
	}
	filter.register(cmd)
	cmd.Flags().BoolVar(&wait, "wait", false, "of many: wait until the operation has ended")
	return cmd
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

// rescheduleFlags say when.
func rescheduleFlags(flags *pflag.FlagSet, body map[string]any) {
	flags.Func("at", "run then (RFC 3339)", func(text string) error {
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
	all    bool
}

var filterNames = []struct{ flag, name, usage string }{
	{"type", "type", "jobs of this type"}, {"queue", "queue", "jobs of this queue"}, {"tag", "tag", "jobs with this tag"},
	{"ordering-key", "orderingKey", "jobs of this ordering key"}, {"owner", "ownerId", "jobs of this owner"},
	{"since", "since", "jobs created at or after this instant (RFC 3339)"},
	{"until", "until", "jobs created before this instant (RFC 3339)"},
}

func (f *filterFlags) register(cmd *cobra.Command) {
	f.texts = map[string]*string{}
	cmd.Flags().StringSliceVar(&f.status, "status", nil, "jobs in these states")
	for _, n := range filterNames {
		f.texts[n.flag] = cmd.Flags().String(n.flag, "", n.usage)
	}
	cmd.Flags().BoolVar(&f.all, "all", false, "all jobs that the command can do something to")
}

func (f *filterFlags) values(cmd *cobra.Command) map[string]any {
	values := map[string]any{}
	if len(f.status) > 0 {
		values["status"] = f.status
	}
	for _, n := range filterNames {
		if cmd.Flags().Changed(n.flag) {
			values[n.name] = *f.texts[n.flag]
		}
	}
	if f.all {
		values["all"] = true
	}
	return values
}

// newDead lists dead jobs, and has them run again.
func newDead() *cobra.Command {
	flags := map[string]*string{}
	list := verb("dead", "List jobs that failed for good, newest first", 0, func(cmd *cobra.Command, _ []string) error {
		values := url.Values{}
		for name, value := range flags {
			if *value != "" {
				values.Set(name, *value)
			}
		}
		return showPage(cmd, "/api/jobs/dead?"+values.Encode())
	})
	for _, name := range []string{"type", "queue", "tag", "since", "until", "limit", "cursor"} {
		flags[name] = list.Flags().String(name, "", "as of list")
	}
	redrive := newCommand("retry", "Run a dead job again", nil)
	redrive.Use = "redrive [ID…]"
	run := redrive.RunE
	redrive.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 && !cmd.Flags().Changed("status") {
			if err := cmd.Flags().Set("status", "FAILED"); err != nil {
				return err
			}
		}
		return run(cmd, args)
	}
	list.AddCommand(redrive)
	return list
}
