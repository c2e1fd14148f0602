// Package workcmd has the command work, which runs programs for jobs.
package workcmd

import (
	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
)

// NewWork makes the command work of Windows, where a program gets no further pipes and no signals.
func NewWork() *cobra.Command {
	return cli.Unavailable("work", "work does not run on Windows: use Linux, macOS or a container")
}
