package steercmd

import (
	"io"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
	"github.com/jobweaver/jobweaver/shared/client"
)

// NewControls makes the command controls.
func NewControls() *cobra.Command {
	return cli.Verb("controls", "List pauses and limits", 0, func(cmd *cobra.Command, _ []string) error {
		return cli.Show(cmd, cli.Path("controls"), func(w io.Writer, page struct{ Controls []client.Control }) error {
			return showControls(w, page.Controls)
		})
	})
}

// NewPauseOrResume makes the command that pauses or resumes a queue, a job type, an owner or a fairness key. The
// limits stay.
func NewPauseOrResume(name, short string) *cobra.Command {
	return cli.Verb(name+" queue|type|owner|fairnessKey NAME", short, 2, func(cmd *cobra.Command, args []string) error {
		if err := checkKind(args[0]); err != nil {
			return err
		}
		return cli.Call(cmd, http.MethodPost, cli.Path("controls", args[0], args[1], name), nil, showControl)
	})
}

// NewLimit makes the command limit.
func NewLimit() *cobra.Command {
	var running, weight int
	var perSecond float64
	var none bool
	short := "Limit concurrency and start rate of a queue, a job type, an owner or a fairness key"
	cmd := cli.Verb("limit queue|type|owner|fairnessKey NAME", short, 2,
		func(cmd *cobra.Command, args []string) error {
			if err := checkKind(args[0]); err != nil {
				return err
			}
			limits := [2]bool{cmd.Flags().Changed("max-running"), cmd.Flags().Changed("starts-per-second")}
			weighs := cmd.Flags().Changed("weight")
			if weighs && args[0] != "fairnessKey" {
				return cli.Usage("only a fairnessKey has a --weight")
			}
			if any := limits[0] || limits[1]; none && any || !none && !any && !weighs {
				return cli.Usage("which limit? Give --max-running, --starts-per-second, --weight, or --none")
			}
			at := cli.Path("controls", args[0], args[1])
			var now client.Control
			_, tag, err := cli.API(cmd).Read(cmd.Context(), at, &now)
			if err != nil {
				return err
			}
			if limits[0] || none {
				now.MaxRunning = nil
			}
			if limits[1] || none {
				now.StartsPerSecond = nil
			}
			if limits[0] {
				now.MaxRunning = &running
			}
			if limits[1] {
				now.StartsPerSecond = &perSecond
			}
			if weighs {
				now.Weight = &weight
			}
			body := map[string]any{
				"paused": now.Paused, "maxRunning": now.MaxRunning, "startsPerSecond": now.StartsPerSecond,
			}
			if now.Weight != nil {
				body["weight"] = now.Weight
			}
			return cli.Call(cmd, http.MethodPut, at, body, showControl, "If-Match", tag)
		})
	cmd.Flags().IntVar(&running, "max-running", 0, "maximum number of attempts at the same time")
	cmd.Flags().Float64Var(&perSecond, "starts-per-second", 0, "maximum number of starts per second")
	cmd.Flags().IntVar(&weight, "weight", 1, "share of a fairness key, 1 to 100")
	cmd.Flags().BoolVar(&none, "none", false, "remove the limits")
	return cmd
}

func checkKind(kind string) error {
	if kind != "queue" && kind != "type" && kind != "owner" && kind != "fairnessKey" {
		return cli.Usage("the first argument must be queue, type, owner or fairnessKey, not %q", kind)
	}
	return nil
}

func showControl(w io.Writer, c client.Control) error { return showControls(w, []client.Control{c}) }

func showControls(w io.Writer, controls []client.Control) error {
	head := "KIND\tNAME\tPAUSED\tMAX RUNNING\tSTARTS/S\tWEIGHT\tAPPLIED"
	return cli.Table(w, head, "nothing is paused or limited", len(controls),
		func(i int) []any {
			c := controls[i]
			return []any{c.Kind, c.Name, c.Paused, cli.OrDash(c.MaxRunning), cli.OrDash(c.StartsPerSecond),
				cli.OrDash(c.Weight), c.Applied}
		})
}
