// Command jobweaver is the one binary for people: the whole house on a laptop, and a client for one
// that runs elsewhere.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/client"
	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/tlsfiles"
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
		fmt.Fprintln(os.Stderr, "jobweaver: "+printable(err.Error()))
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
	root.PersistentFlags().StringP("output", "o", "text", "text or json")
	root.AddCommand(newDev(), newMigrate(), newTopics(), newKeyset(), newSubmit(), newGet(), newList(), newWatch(),
		newLogs(), newDead(),
		newCommand("cancel", "Cancel a job that has not ended", nil),
		newCommand("retry", "Run a failed or cancelled job again", nil),
		newCommand("reschedule", "Have a waiting job run at another time", rescheduleFlags),
		newCommand("delete", "Delete a job that has ended", nil),
		newCallback(), newOperations(), newSchedules(), newDeliveries(), newAudit(), newControls(), newLimit(),
		newPauseOrResume("pause", "Have nothing more of it start"), newPauseOrResume("resume", "Have it start again"),
		newKeys(), newWorkers(), newTypes(), newStats())
	return root
}

func api() *client.Client {
	base := os.Getenv("JOBWEAVER_URL")
	if base == "" {
		base = "http://localhost:8080"
	}
	return reach(base, os.Getenv("JOBWEAVER_API_KEY"))
}

// reach is the API at an address that is known by JOBWEAVER_CA_FILE, where that is set, and shown JOBWEAVER_CERT_FILE
// where it asks for one.
func reach(base, key string) *client.Client {
	file := func(setting string) tlsfiles.File { return tlsfiles.File{Setting: setting, Path: os.Getenv(setting)} }
	trust, err := tlsfiles.NewClient(
		file("JOBWEAVER_CA_FILE"), file("JOBWEAVER_CERT_FILE"), file("JOBWEAVER_KEY_FILE"))
	if err != nil {
		return client.New(base, key).Over(noWay{err})
	}
	return client.New(base, key).Over(trust.Transport(nil))
}

// noWay says why there is none.
type noWay struct{ error }

func (w noWay) RoundTrip(*http.Request) (*http.Response, error) { return nil, w.error }

func wantsJSON(cmd *cobra.Command) (bool, error) {
	format, err := cmd.Flags().GetString("output")
	if err != nil {
		return false, err
	}
	if format != "text" && format != "json" {
		return false, fmt.Errorf("--output is text or json, not %q", format)
	}
	return format == "json", nil
}
