package installcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/jobweaver/afterrestore"
	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/schedulerdb"
)

// NewAfterRestore makes the command after-restore.
func NewAfterRestore() *cobra.Command {
	return &cobra.Command{
		Use: "after-restore", Args: cli.Exactly(0),
		Short: "Make databases agree that were restored from backups of different moments",
		Long: `Make databases agree that were restored from backups of different moments.

Before, stop all functions, restore and migrate the databases, and empty the topics (jobweaver topics empty). If the two
databases differ about a job, the newer state counts; a job that only one of them has is added to the other. You can
run it again; if nothing differs, it changes nothing. It connects to the databases on the server DATABASE_URL as their
owner. If they are on separate servers, API_DATABASE_URL and SCHEDULER_DATABASE_URL name them.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			layout, err := cli.Layout()
			if err != nil {
				return err
			}
			apiURL, err := databaseURL("API_DATABASE_URL", layout, migrations.API)
			if err != nil {
				return err
			}
			schedulerURL, err := databaseURL("SCHEDULER_DATABASE_URL", layout, migrations.Scheduler)
			if err != nil {
				return err
			}
			report, err := afterRestore(cmd.Context(), apiURL, schedulerURL)
			if err != nil {
				return err
			}
			return printRestored(cmd.OutOrStdout(), report)
		},
	}
}

func databaseURL(setting string, layout migrations.Layout, set migrations.Set) (string, error) {
	if url := os.Getenv(setting); url != "" {
		if layout.Schemas {
			return layout.Address(url, set)
		}
		return url, nil
	}
	server, err := cli.DatabaseURL()
	if err != nil {
		return "", err
	}
	if server == "" {
		return "", cli.Usage("neither DATABASE_URL nor %s is set: where is %s?", setting, layout.Of(set).Database())
	}
	return layout.Address(server, set)
}

func afterRestore(ctx context.Context, apiURL, schedulerURL string) (report afterrestore.Report, err error) {
	for _, url := range []string{apiURL, schedulerURL} {
		if err := requireNoFunctions(ctx, url); err != nil {
			return report, err
		}
	}
	api, err := apidb.Open(ctx, apiURL)
	if err != nil {
		return report, err
	}
	defer api.Close()
	scheduler, err := schedulerdb.Open(ctx, schedulerURL, schedulerdb.Config{Lease: 1})
	if err != nil {
		return report, err
	}
	defer scheduler.Close()
	return afterrestore.Run(ctx, api, scheduler)
}

// goneWithin is how long the server may take to notice that a process has just ended.
const goneWithin = time.Second

// requireNoFunctions refuses a database to which a function is connected: the function would change rows during the
// comparison.
func requireNoFunctions(ctx context.Context, url string) (err error) {
	conn, err := pgpool.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	var database string
	for deadline := time.Now().Add(goneWithin); ; {
		last := time.Now().After(deadline) // there is a second look, however long the first one took
		var functions int
		err := conn.QueryRow(ctx, `
			select current_database(), count(*), pg_sleep(0.05) from pg_stat_activity
			where datname = current_database() and application_name like 'jobweaver-%'
				and current_schema() in ('public', split_part(application_name, '@', 2))
				and pid <> pg_backend_pid()`).Scan(&database, &functions, nil)
		if err != nil || functions == 0 {
			return err
		}
		if last {
			return fmt.Errorf("functions have %d connections to %s: stop all of them first", functions, database)
		}
	}
}

func printRestored(w io.Writer, r afterrestore.Report) error {
	_, err := fmt.Fprintf(w, `compared %d jobs
%6d  jobs updated in the scheduler's database, which was behind
%6d  ended jobs updated in the API's database, which was behind
%6d  missing jobs restored in the API's database
%6d  of them had been deleted, and are CANCELLED unless they had ended
%6d  jobs whose state the scheduler publishes again
%6d  jobs whose next command gets a higher number
%6d  pauses and limits that differed
`, r.Jobs, r.ToScheduler, r.ToAPI, r.BackInAPI, r.Cancelled, r.AskedAgain, r.Numbered, r.Controls)
	return err
}
