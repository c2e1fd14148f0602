package cli

import (
	"github.com/spf13/cobra"
)

// ConfirmFlags are the flags of a command that may affect more than its user intended.
type ConfirmFlags struct{ Yes, DryRun bool }

// Register adds the flags to a command.
func (f *ConfirmFlags) Register(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.Yes, "yes", false, "with a filter: do not ask")
	cmd.Flags().BoolVar(&f.DryRun, "dry-run", false, "with a filter: print how many match, and do nothing")
}
