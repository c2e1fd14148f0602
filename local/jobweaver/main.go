// Command jobweaver is the one binary for people: the whole house on a laptop, and a client for one
// that runs elsewhere.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/shared/funchost"
)

// exitCode is an error that only sets the exit code: what there is to say was said.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	err := newRoot().ExecuteContext(ctx)
	stop()
	var code exitCode
	switch {
	case err == nil:
	case errors.As(err, &code):
		os.Exit(int(code))
	case errors.Is(err, context.Canceled):
		os.Exit(130)
	default:
		fmt.Fprintln(os.Stderr, "jobweaver: "+printable(err.Error()+advice(err)))
		os.Exit(1)
	}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "jobweaver",
		Short:         "Hand over work by HTTP, and walk away",
		Version:       funchost.Version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	output := formatText
	root.PersistentFlags().VarP(&output, "output", "o", "how to print answers: text, json (as the API answers) or name (ids alone)")
	root.PersistentFlags().String("url", "", "the gateway; overrides JOBWEAVER_URL (default \""+defaultURL+"\")")
	root.AddCommand(newDev(), newMigrate(), newTopics(), newAfterRestore(), newKeyset(), newSecrets(), newSubmit(),
		newGet(), newList(), newWatch(), newLogs(), newDead(),
		newCommand("cancel", "Cancel a job that has not ended", nil),
		newCommand("retry", "Run a failed or cancelled job again", nil),
		newCommand("reschedule", "Have a waiting job run at another time", rescheduleFlags),
		newCommand("delete", "Delete a job that has ended", nil),
		newCallback(), newOperations(), newSchedules(), newDeliveries(), newAudit(), newControls(), newLimit(),
		newPauseOrResume("pause", "Have nothing more of it start"), newPauseOrResume("resume", "Have it start again"),
		newKeys(), newWebhookSecrets(), newWorkers(), newTypes(), newStats())
	return root
}
