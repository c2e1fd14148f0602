package installcmd

import (
	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
)

// NewServe makes the command serve of Windows, where its broker and its files cannot be locked.
func NewServe() *cobra.Command {
	return cli.Unavailable("serve", "serve does not run on Windows: use Linux, macOS or a container")
}
