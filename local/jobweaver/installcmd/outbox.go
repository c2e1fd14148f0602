package installcmd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
	"github.com/jobweaver/jobweaver/shared/outboxdb"
)

// NewOutbox makes the command outbox.
func NewOutbox() *cobra.Command {
	outbox := cli.Group("outbox", "Manage the outbox in your own PostgreSQL, from which relays submit jobs")
	outbox.Long = `Manage the outbox in your own PostgreSQL, from which relays submit jobs.

select jobweaver.enqueue('EMAIL', '{"to": "…"}') keeps a job with the transaction that it runs in, and returns the
job's id. URL is the address of that database, such as postgres://shop@db.example:5432/shop; the password may be in
PGPASSWORD or in ~/.pgpass, where other users of this machine do not see it.`
	outbox.AddCommand(newOutboxSQL(), newOutboxInstall(), newOutboxList(),
		changeRejected("retry", "Submit rejected jobs again, all of them or those with these ids",
			"%d rejected jobs wait again\n", outboxdb.Retry),
		changeRejected("discard", "Delete rejected jobs, all of them or those with these ids",
			"%d rejected jobs are deleted\n", outboxdb.Discard))
	return outbox
}

func outboxRoles(flags *pflag.FlagSet) *outboxdb.Roles {
	var roles outboxdb.Roles
	flags.StringArrayVar(&roles.Enqueue, "enqueue-role", nil,
		"a role of the database that may insert jobs and do nothing else")
	flags.StringArrayVar(&roles.Relay, "relay-role", nil,
		"a role of the database for relays, and for outbox list, retry and discard")
	return &roles
}

func newOutboxSQL() *cobra.Command {
	var roles *outboxdb.Roles
	cmd := cli.Verb("sql", "Print the SQL that installs the outbox, for your own migrations", 0,
		func(cmd *cobra.Command, _ []string) error {
			_, err := io.WriteString(cmd.OutOrStdout(), outboxdb.SQL(*roles))
			return err
		})
	roles = outboxRoles(cmd.Flags())
	return cmd
}

func newOutboxInstall() *cobra.Command {
	var roles *outboxdb.Roles
	cmd := cli.Verb("install URL", "Install the outbox, or bring it up to date", 1,
		func(cmd *cobra.Command, args []string) error {
			if err := outboxdb.Install(cmd.Context(), args[0], *roles); err != nil {
				return err
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "the outbox is installed")
			return err
		})
	roles = outboxRoles(cmd.Flags())
	return cmd
}

func newOutboxList() *cobra.Command {
	var rejected bool
	var limit int
	cmd := cli.Verb("list URL", "List the jobs that were rejected, newest first, and those that wait, oldest first", 1,
		func(cmd *cobra.Command, args []string) error {
			rows, err := outboxdb.List(cmd.Context(), args[0], rejected, limit)
			if err != nil {
				return err
			}
			raw, err := json.Marshal(map[string]any{"rows": append([]outboxdb.Entry{}, rows...)})
			if err != nil {
				return fmt.Errorf("write rows: %w", err)
			}
			return cli.Present(cmd, raw, func(w io.Writer) error { return outboxTable(w, rows) })
		})
	cmd.Flags().BoolVar(&rejected, "rejected", false, "only the rejected ones")
	cmd.Flags().IntVar(&limit, "limit", 50, "how many of each at most")
	return cmd
}

func outboxTable(w io.Writer, rows []outboxdb.Entry) error {
	return cli.Table(w, "JOB\tTYPE\tENQUEUED\tREJECTED\tERROR", "the outbox is empty", len(rows), func(i int) []any {
		r := &rows[i]
		why := "-"
		if r.Error != nil {
			why = fmt.Sprintf("%d %s: %s", *r.Status, *r.ErrorCode, *r.Error)
		}
		return []any{r.JobID, r.JobType, cli.At(&r.CreatedAt), cli.AtOrDash(r.RejectedAt), why}
	})
}

// changeRejected makes a command for rejected rows.
func changeRejected(
	name, short, done string, change func(context.Context, string, []uuid.UUID) (int, error),
) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: name + " URL [ID…]", Short: short,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || all == (len(args) > 1) {
				return cli.Usage("give the URL, and the ids of jobs or --all: %s", cmd.UseLine())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			var ids []uuid.UUID
			for _, arg := range args[1:] {
				id, err := uuid.Parse(arg)
				if err != nil {
					return cli.Usage("%q is not the id of a job", arg)
				}
				ids = append(ids, id)
			}
			n, err := change(cmd.Context(), args[0], ids)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), done, n)
			return err
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "all rejected jobs")
	return cmd
}
