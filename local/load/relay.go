package main

import (
	"context"
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
			funchost.MainWithoutDatabase(relay.Name, func(ctx context.Context, env *funchost.Env) (funchost.Function, error) {
				var cfg relay.Config
				if err := env.Load(&cfg); err != nil {
					return funchost.Function{}, err
				}
				function, err := relay.New(ctx, cfg)
				if err != nil {
					return funchost.Function{}, err
				}
				env.OnClose(function.Close)
				return function.Host(), nil
			})
		},
	}
}
