package main

import (
	"fmt"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/load/rig"
)

// newPlot makes the command that runs the drawing program, which is a module of its own because of its libraries.
func newPlot() *cobra.Command {
	var results, to string
	cmd := &cobra.Command{
		Use: "plot", Args: cobra.NoArgs, Short: "Draw results that the bench has kept, an SVG for each part",
		RunE: func(cmd *cobra.Command, _ []string) error {
			root, err := rig.Root(cmd.Context())
			if err != nil {
				return err
			}
			results, errResults := filepath.Abs(results)
			to, errTo := filepath.Abs(to)
			if errResults != nil || errTo != nil {
				return fmt.Errorf("resolve paths: %w", errResults)
			}
			draw := exec.CommandContext(cmd.Context(),
				"go", "run", "-C", filepath.Join(root, "local", "load", "plots"), ".", results, to)
			draw.Stdout, draw.Stderr = cmd.OutOrStdout(), cmd.ErrOrStderr()
			return draw.Run()
		},
	}
	cmd.Flags().StringVar(&results, "json", "docs/performance/results.json", "what the bench has kept")
	cmd.Flags().StringVar(&to, "to", "docs/performance", "folder of the SVGs")
	return cmd
}
