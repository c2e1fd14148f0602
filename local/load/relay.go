package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/functions/relay"
	"github.com/jobweaver/jobweaver/shared/funchost"
)

// newRelay makes the command that runs a relay in a process of its own.
func newRelay() *cobra.Command {
	return &cobra.Command{
		Use: "relay", Args: cobra.NoArgs, Hidden: true, Short: "A relay of RELAY_DATABASE_URL for GATEWAY_URL",
		Run: func(*cobra.Command, []string) {
			os.Args = os.Args[:1] // the other arguments are for this program
			funchost.MainWithoutDatabase(relay.Name, relay.Wire)
		},
	}
}
