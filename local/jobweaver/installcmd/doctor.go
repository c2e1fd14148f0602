//go:build !windows

package installcmd

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/doctor"
	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// exitUnread is the exit code of doctor when it has checked nothing.
const exitUnread = 2

// NewDoctor makes the command doctor.
func NewDoctor() *cobra.Command {
	var folder string
	var skip []string
	var verbose bool
	cmd := &cobra.Command{
		Use: "doctor", Args: cli.Exactly(0),
		Short: "Check an installation against the checklist for production",
		Long: `Check an installation against the checklist for production, and print what to do.

It reads the settings from the environment, as serve does, or with --env-dir from the files of systemd units: all.env
and <function>.env. It changes nothing, prints no secret, and ends within 10 s. It sees most with the settings of the
user that owns the databases; what it cannot see it prints as "not seen". Run it on each machine: two machines with
different secrets have different fingerprints (--verbose).

The checks are ` + strings.Join(checkNames(), ", ") + `.

Exit codes: 0 nothing to do, 1 it found something, 2 the settings name no installation.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			skipped := map[string]bool{}
			for _, name := range skip {
				if !slices.Contains(checkNames(), name) {
					return cli.Usage("--skip: there is no check %q", name)
				}
				skipped[name] = true
			}
			installation, err := readInstallation(folder)
			if err != nil {
				cli.PrintError(cmd.ErrOrStderr(), cli.FormatOf(cmd), err)
				return cli.ExitCode(exitUnread)
			}
			quiet := telemetry.WithLogger(cmd.Context(), slog.New(slog.DiscardHandler))
			return present(cmd, doctor.Run(quiet, installation, skipped), verbose)
		},
	}
	cmd.Flags().StringVar(&folder, "env-dir", "", "folder with all.env and <function>.env, instead of the environment")
	cmd.Flags().StringSliceVar(&skip, "skip", nil, "checks to leave out")
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "print what each check has seen, too")
	return cmd
}

func checkNames() (names []string) {
	for _, check := range doctor.Checks {
		names = append(names, check.Name)
	}
	return names
}

func readInstallation(folder string) (*doctor.Installation, error) {
	if folder != "" {
		return doctor.LoadFolder(folder)
	}
	return doctor.Load()
}

// present prints the results. Findings set the exit code.
func present(cmd *cobra.Command, results []doctor.Result, verbose bool) error {
	findings := 0
	for _, r := range results {
		findings += len(r.Findings)
	}
	raw, err := json.Marshal(map[string]any{"findings": findings, "checks": results})
	if err != nil {
		return err
	}
	err = cli.Present(cmd, raw, func(w io.Writer) error { return printResults(w, results, findings, verbose) })
	if err == nil && findings > 0 {
		err = cli.ExitCode(cli.ExitFailed)
	}
	return err
}

func printResults(w io.Writer, results []doctor.Result, findings int, verbose bool) error {
	for _, r := range results {
		state := "ok"
		if len(r.Findings) > 0 {
			state = "FOUND"
		} else if r.Partial {
			state = "UNSEEN"
		}
		fmt.Fprintf(w, "%-6s %-13s %s\n", state, r.Check, r.Looks)
		for _, f := range r.Findings {
			fmt.Fprintf(w, "       - %s: %s\n         do: %s\n", cli.Line(f.Where), cli.Line(f.What), cli.Line(f.Do))
		}
		for _, what := range r.Unseen {
			fmt.Fprintf(w, "       not seen: %s\n", cli.Line(what))
		}
		if verbose {
			for _, fact := range r.Facts {
				fmt.Fprintf(w, "       %s\n", cli.Line(fact))
			}
		}
	}
	_, err := fmt.Fprintf(w, "%d findings\n", findings)
	return err
}
