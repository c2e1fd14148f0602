package jobcmd

import (
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// jobCommand is a command for one job, or an operation for many: for jobs given by id, or for all that match a filter.
type jobCommand struct {
	name, short string
	flags       func(*pflag.FlagSet, map[string]any)
	check       func(body map[string]any) error // checks the flags; nil: any are valid
	dead        bool                            // for FAILED jobs, even without a filter
	body        map[string]any
	filter      filterFlags
	confirm     cli.ConfirmFlags
	wait        bool
}

// NewCommand makes a command for one job or for many, such as cancel.
func NewCommand(name, short string) *cobra.Command {
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
	c.confirm.Register(cmd)
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
	case len(ids) > 0 && (len(filter) > 0 || c.confirm.DryRun):
		return cli.Usage("either ids of jobs, or a filter (--dry-run goes with a filter)")
	case len(ids) == 1:
		return commandOne(cmd, c.name, ids[0], c.body)
	case len(ids) > 1:
		c.body["jobIds"] = ids
		return c.operate(cmd)
	case len(filter) == 0 && !c.dead:
		return cli.Usage("which jobs? Name some, or give a filter, such as --status FAILED or --all")
	case c.filter.all && len(filter) > 1:
		return cli.Usage("--all goes without another filter")
	}
	return c.many(cmd, filter)
}

// many sends the command to all jobs that match. It asks first, because a filter may match more jobs than intended.
func (c *jobCommand) many(cmd *cobra.Command, filter map[string]any) error {
	wide := len(filter) == 0 || c.filter.all || filter["q"] != nil || c.name == "delete"
	if _, chosen := filter["status"]; c.dead && !chosen {
		delete(filter, "all")
		filter["status"] = []string{string(jobstate.Failed)}
	}
	if c.confirm.DryRun {
		return showMatching(cmd, c.name, filter)
	}
	if wide {
		if ok, err := confirmMany(cmd, c.confirm, c.name, filter); err != nil || !ok {
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
	method, at := http.MethodPost, cli.Path("jobs", id, name)
	if name == "delete" {
		method, at = http.MethodDelete, cli.Path("jobs", id)
	}
	var sent any
	if len(body) > 0 {
		sent = body
	}
	return cli.Call(cmd, method, at, sent, func(w io.Writer, kept struct{ Command int }) error {
		_, err := fmt.Fprintf(w, "%s of %s is command %d\n", name, cli.Line(id), kept.Command)
		return err
	})
}

// NewReschedule makes the command reschedule.
func NewReschedule() *cobra.Command {
	c := &jobCommand{name: "reschedule", short: "Run a waiting job at another time", flags: rescheduleFlags}
	c.check = func(body map[string]any) error {
		if _, given := body["runAt"]; !given {
			return cli.Usage("when? Give --at INSTANT or --in DURATION")
		}
		return nil
	}
	cmd := c.cobra()
	cmd.MarkFlagsMutuallyExclusive("at", "in")
	return cmd
}

// rescheduleFlags are the flags for the new time.
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
