// Command jobweaver is the one binary for people: a complete installation on a laptop, and a client for one
// that runs elsewhere.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/shared/funchost"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	root := newRoot()
	err := execute(ctx, root)
	stop()
	printError(os.Stderr, formatOf(root), err)
	os.Exit(codeOf(err))
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "jobweaver",
		Short:         "The command line of JobWeaver: submit, watch and manage jobs, and run an installation",
		Version:       funchost.Version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	output := formatText
	root.PersistentFlags().VarP(&output, "output", "o",
		"output format: text, json (the API's response), yaml (the same) or name (only ids)")
	root.PersistentFlags().String("url", "", "the gateway; overrides JOBWEAVER_URL (default \""+defaultURL+"\")")
	root.AddCommand(newDev(), newMigrate(), newTopics(), newAfterRestore(), newKeyset(), newSecrets(),
		newOutbox(), newSubmit(),
		newGet(), newList(), newWatch(), newLogs(), newDead(),
		newCommand("cancel", "Cancel a job that has not ended"),
		newCommand("retry", "Run a failed or cancelled job again"),
		newReschedule(), newChange(), newRunAgain(),
		newCommand("delete", "Delete a job that has ended"),
		newCallback(), newOperations(), newSchedules(), newDeliveries(), newRejected(), newAudit(), newControls(), newLimit(),
		newPauseOrResume("pause", "Pause a queue, a job type or an owner: no job of it starts"),
		newPauseOrResume("resume", "Resume a queue, a job type or an owner"),
		newKeys(), newWebhookSecrets(), newWorkers(), newWork(), newTypes(), newStats(), newHooks(), newMCP(), newVersion())
	arrange(root)
	completions(root)
	return root
}
