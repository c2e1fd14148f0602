package installcmd

import (
	"slices"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/functions"
	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/funchost"
)

// NewFunction makes the command function, by which Knative runs each function from the one image.
// Why: docs/decisions/code.md#one-image-has-all-functions
func NewFunction() *cobra.Command {
	cmd := cli.Verb("function NAME", "Run one function, as its own binary does", 1,
		func(cmd *cobra.Command, args []string) error {
			name := args[0]
			wire := functions.Find(name)
			if wire == nil {
				return cli.Usage("there is no function %q", name)
			}
			uuid.EnableRandPool() // as in functions/gateway/cmd
			needs := funchost.Needs{Database: slices.Contains(withDatabase(), name)}
			if err := funchost.RunAlone(cmd.Context(), name, needs, wire); err != nil {
				return cli.ExitCode(cli.ExitFailed) // it is logged
			}
			return nil
		})
	cmd.Long = `Run one function, as its own binary does.

It takes its settings from the environment (docs/settings.md): DATABASE_URL is the function's own database, with the
function's role. Events come from Kafka topics, or over HTTP from a Knative Trigger. Use serve outside Knative.`
	return cmd
}

// FunctionNames are the arguments that the command function takes.
func FunctionNames() (names []string) {
	for _, f := range functions.All {
		names = append(names, f.Name)
	}
	return names
}

func withDatabase() []string {
	return slices.Concat(migrations.API.Functions, migrations.Scheduler.Functions, migrations.Worker.Functions)
}

// NewHealthcheck makes the command healthcheck: images have no other program that could check.
func NewHealthcheck() *cobra.Command {
	return cli.Verb("healthcheck", "Check whether serve or function is ready that runs with the same environment", 0,
		func(cmd *cobra.Command, _ []string) error { return funchost.Healthcheck(cmd.Context()) })
}
