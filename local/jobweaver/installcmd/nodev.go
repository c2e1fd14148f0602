//go:build nodev

package installcmd

import (
	"errors"

	"github.com/spf13/cobra"
)

// NewDev is the command in the image, which has no dev: it would make the image twice as large.
func NewDev() *cobra.Command {
	return &cobra.Command{
		Use: "dev", Hidden: true, Args: cobra.ArbitraryArgs, DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error {
			return errors.New("this jobweaver was built without dev: make run, or docker compose up")
		},
	}
}
