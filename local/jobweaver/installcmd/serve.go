//go:build !windows

package installcmd

import (
	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
	"github.com/jobweaver/jobweaver/local/serve"
)

// NewServe makes the command serve.
func NewServe() *cobra.Command {
	var o serve.Options
	cmd := &cobra.Command{
		Use: "serve", Args: cli.Exactly(0),
		Short: "Run an installation, or some of its functions, in this process, in production",
		Long: `Run an installation, or some of its functions, in this process, in production.

DATABASE_URL names a PostgreSQL server. serve creates the three databases there and brings them up to date, if the user
may; otherwise the error has the commands for an administrator. Without KAFKA_BROKERS the events pass through a broker
in this process, in memory: what is lost with it is published again from the databases. A second serve on the same
databases then stands by, and takes over within 10 s. With KAFKA_BROKERS all processes share the work, and each may run
some functions only: api stands for gateway, projection, bulk, cron and notify, scheduler for ingest, dispatch, outcome,
command, watchdog and retention, and worker for runjob.

PORT has the API, the probes and the metrics of all functions. Each request needs an API key: the first one is printed
at the first start, or written to --key-file. The settings are those of the functions (docs/settings.md).`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			// Without the pool each UUID is a system call. No UUID may be made before, see functions/gateway/cmd.
			uuid.EnableRandPool()
			o.Out = cmd.OutOrStdout()
			return serve.Run(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&o.Functions, "functions", nil,
		"functions to run, or api, scheduler or worker for several; by default all that the settings have work for")
	flags.BoolVar(&o.NoMigrate, "no-migrate", false, "leave databases and roles as jobweaver migrate has made them")
	flags.StringVar(&o.KeyFile, "key-file", "", "file for the first API key, instead of printing it")
	return cmd
}
