// Package installcmd has the commands that install and run JobWeaver: dev, migrate, topics, outbox, secrets and
// after-restore.
package installcmd

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/pgpool"
)

// NewMigrate makes the command migrate.
func NewMigrate() *cobra.Command {
	var roles bool
	var passwords string
	var wait time.Duration
	cmd := &cobra.Command{
		Use: "migrate", Args: cli.Exactly(0),
		Short: "Create the three databases on the server DATABASE_URL, or bring them up to date",
		Long: `Create the three databases on the server DATABASE_URL, or bring them up to date.

With --roles each function gets a database role of its own, jobweaver_<function>, with the rights that it needs and no
others. Only these roles and the databases' owner may then connect. A new role has no password: set one yourself, or
give --passwords, or ROLES_PASSWORD for the roles without a file there. Use --roles each time, since a new version may
need other rights.`,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			server, err := serverURL()
			if err != nil {
				return err
			}
			if passwords != "" && !roles {
				return cli.Usage("--passwords goes with --roles")
			}
			var given map[string]string
			if roles {
				if given, err = rolePasswords(passwords); err != nil {
					return err
				}
			}
			if err := pgpool.AwaitServer(cmd.Context(), server, wait); err != nil {
				return err
			}
			urls, err := migrations.EnsureDatabases(cmd.Context(), server)
			if err != nil {
				return err
			}
			for _, set := range []migrations.Set{migrations.API, migrations.Scheduler, migrations.Worker} {
				begins := func(migration string) {
					fmt.Fprintf(cmd.OutOrStdout(), "%s: %s begins\n", set.Database(), migration)
				}
				if err := migrations.Up(cmd.Context(), urls.Of(set.Functions[0]), set, begins); err != nil {
					return err
				}
				state, err := schemaState(cmd.Context(), urls.Of(set.Functions[0]), set)
				if err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s is %s\n", set.Database(), state)
				if !roles {
					continue
				}
				if err := migrations.Grant(cmd.Context(), urls.Of(set.Functions[0]), set, given); err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s is open to %s\n", set.Database(), strings.Join(set.Roles(), ", "))
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&roles, "roles", false, "make a database role for each function, with the rights that it needs")
	cmd.Flags().StringVar(&passwords, "passwords", "",
		"a folder with the passwords, one file for each role, with its name; roles without a file get none")
	waitFlag(cmd, &wait)
	return cmd
}

// schemaState returns how a database that was just migrated compares with this version.
func schemaState(ctx context.Context, url string, set migrations.Set) (string, error) {
	database, own, err := migrations.Versions(ctx, url, set)
	if err != nil || database <= own {
		return "up to date", err
	}
	return fmt.Sprintf("newer than this version of jobweaver: it has migration %d, and this version knows those up to %d."+
		" It stays as it is", database, own), nil
}

// waitFlag registers --wait, for a command that may start before its server.
func waitFlag(cmd *cobra.Command, wait *time.Duration) {
	cmd.Flags().DurationVar(wait, "wait", time.Minute, "how long to wait for a server that does not answer yet")
}

func serverURL() (string, error) {
	server, err := cli.DatabaseURL()
	if err == nil && server == "" {
		err = cli.Usage("DATABASE_URL is not set: which server?")
	}
	return server, err
}
