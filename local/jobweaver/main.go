// Command jobweaver is the binary for people: it runs a complete installation on a laptop, and is a client of
// installations elsewhere.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/jobweaver/accesscmd"
	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
	"github.com/jobweaver/jobweaver/local/jobweaver/initcmd"
	"github.com/jobweaver/jobweaver/local/jobweaver/installcmd"
	"github.com/jobweaver/jobweaver/local/jobweaver/jobcmd"
	"github.com/jobweaver/jobweaver/local/jobweaver/steercmd"
	"github.com/jobweaver/jobweaver/local/jobweaver/viewcmd"
	"github.com/jobweaver/jobweaver/local/jobweaver/workcmd"
	"github.com/jobweaver/jobweaver/shared/funchost"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	root := newRoot()
	err := cli.Execute(ctx, root)
	stop()
	cli.PrintError(os.Stderr, cli.FormatOf(root), err)
	os.Exit(cli.CodeOf(err))
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "jobweaver",
		Short:         "The command line of JobWeaver: submit, watch and manage jobs, and run an installation",
		Version:       funchost.Version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	output := cli.FormatText
	root.PersistentFlags().VarP(&output, "output", "o",
		"output format: text, json (the API's response), yaml (the same) or name (only ids)")
	root.PersistentFlags().String("url", "", "the gateway; overrides JOBWEAVER_URL (default \""+cli.DefaultURL+"\")")
	root.AddCommand(
		jobcmd.NewSubmit(), jobcmd.NewEvent(), jobcmd.NewGet(), jobcmd.NewList(), jobcmd.NewWatch(), jobcmd.NewLogs(),
		jobcmd.NewDead(),
		jobcmd.NewCommand("cancel", "Cancel a job that has not ended"),
		jobcmd.NewCommand("retry", "Run a failed or cancelled job again"),
		jobcmd.NewCommand("delete", "Delete a job that has ended"),
		jobcmd.NewReschedule(), jobcmd.NewChange(), jobcmd.NewRunAgain(), jobcmd.NewCallback(), jobcmd.NewOperations(),
		jobcmd.NewBatch(), jobcmd.NewFlow(),
		workcmd.NewWork(),
		steercmd.NewSchedules(), steercmd.NewAlerts(), steercmd.NewQueue(), steercmd.NewControls(), steercmd.NewLimit(),
		steercmd.NewPauseOrResume("pause", "Pause a queue, a job type, an owner or a fairness key: no job of it starts"),
		steercmd.NewPauseOrResume("resume", "Resume a queue, a job type, an owner or a fairness key"),
		steercmd.NewDrain(), steercmd.NewDeliveries(), steercmd.NewRejected(),
		viewcmd.NewStats(), viewcmd.NewLag(), viewcmd.NewShares(), viewcmd.NewWorkers(), viewcmd.NewTypes(),
		viewcmd.NewAudit(), viewcmd.NewHooks(), viewcmd.NewMCP(),
		accesscmd.NewKeys(), accesscmd.NewWebhookSecrets(), accesscmd.NewKeyset(),
		initcmd.New(), installcmd.NewDev(), installcmd.NewServe(), installcmd.NewFunction(), installcmd.NewHealthcheck(),
		installcmd.NewMigrate(), installcmd.NewDoctor(), installcmd.NewTopics(), installcmd.NewOutbox(),
		installcmd.NewSecrets(), installcmd.NewAfterRestore(), newVersion())
	arrange(root)
	completions(root)
	return root
}
