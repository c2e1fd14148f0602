package main

import (
	"io"
	"net/http"

	"github.com/spf13/cobra"
)

type control struct {
	Kind            string   `json:"kind"`
	Name            string   `json:"name"`
	Paused          bool     `json:"paused"`
	MaxRunning      *int     `json:"maxRunning"`
	StartsPerSecond *float64 `json:"startsPerSecond"`
	Applied         bool     `json:"applied"`
}

func newControls() *cobra.Command {
	return verb("controls", "List pauses and limits", 0, func(cmd *cobra.Command, _ []string) error {
		return show(cmd, path("controls"), func(w io.Writer, page struct{ Controls []control }) error {
			return showControls(w, page.Controls)
		})
	})
}

// newPauseOrResume changes the pause of a queue, a job type or an owner, and no limit of it.
func newPauseOrResume(name, short string) *cobra.Command {
	return verb(name+" queue|type|owner NAME", short, 2, func(cmd *cobra.Command, args []string) error {
		if err := checkKind(args[0]); err != nil {
			return err
		}
		return call(cmd, http.MethodPost, path("controls", args[0], args[1], name), nil, showControl)
	})
}

func newLimit() *cobra.Command {
	var running int
	var perSecond float64
	var none bool
	cmd := verb("limit queue|type|owner NAME", "Limit concurrency and start rate of a queue, a job type or an owner", 2,
		func(cmd *cobra.Command, args []string) error {
			if err := checkKind(args[0]); err != nil {
				return err
			}
			limits := [2]bool{cmd.Flags().Changed("max-running"), cmd.Flags().Changed("starts-per-second")}
			if none == (limits[0] || limits[1]) {
				return usage("which limit? Give --max-running, --starts-per-second, or --none")
			}
			at := path("controls", args[0], args[1])
			var now control
			if _, err := api(cmd).Do(cmd.Context(), http.MethodGet, at, "", nil, &now); err != nil {
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
			return call(cmd, http.MethodPut, at, map[string]any{
				"paused": now.Paused, "maxRunning": now.MaxRunning, "startsPerSecond": now.StartsPerSecond,
			}, showControl)
		})
	cmd.Flags().IntVar(&running, "max-running", 0, "maximum number of attempts at the same time")
	cmd.Flags().Float64Var(&perSecond, "starts-per-second", 0, "maximum number of starts per second")
	cmd.Flags().BoolVar(&none, "none", false, "remove the limits")
	return cmd
}

func checkKind(kind string) error {
	if kind != "queue" && kind != "type" && kind != "owner" {
		return usage("the first argument must be queue, type or owner, not %q", kind)
	}
	return nil
}

func showControl(w io.Writer, c control) error { return showControls(w, []control{c}) }

func showControls(w io.Writer, controls []control) error {
	return table(w, "KIND\tNAME\tPAUSED\tMAX RUNNING\tSTARTS/S\tAPPLIED", "nothing is paused or limited", len(controls),
		func(i int) []any {
			c := controls[i]
			return []any{c.Kind, c.Name, c.Paused, orDash(c.MaxRunning), orDash(c.StartsPerSecond), c.Applied}
		})
}
