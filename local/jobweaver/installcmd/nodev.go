//go:build nodev

package installcmd

import (
	"errors"

	"github.com/spf13/cobra"
)

// NewDev makes the command dev of the image, which only returns an error: dev is for laptops, and
// downloads a PostgreSQL.
func NewDev() *cobra.Command {
	return &cobra.Command{
		Use: "dev", Hidden: true, Args: cobra.ArbitraryArgs, DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error {
			return errors.New("this jobweaver was built without dev: make run, or docker compose up")
		},
	}
}
