package installcmd

import (
	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
)

// NewDoctor makes the command doctor of Windows, where no function runs.
func NewDoctor() *cobra.Command {
	return cli.Unavailable("doctor", "doctor does not run on Windows: use Linux, macOS or a container")
}
