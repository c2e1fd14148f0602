//go:build nodev

package installcmd

import (
	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
)

// NewDev makes the command dev of the image and of Windows: dev is for laptops, and downloads a PostgreSQL.
func NewDev() *cobra.Command {
	return cli.Unavailable("dev", "this jobweaver was built without dev: make run, or docker compose up")
}
