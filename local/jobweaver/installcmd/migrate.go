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

// migration has the flags of the command migrate.
type migration struct {
	roles, services bool
	passwords       []string
	wait            time.Duration
}

// NewMigrate makes the command migrate.
func NewMigrate() *cobra.Command {
	var m migration
	cmd := &cobra.Command{
		Use: "migrate", Args: cli.Exactly(0),
		Short: "Create the three databases on the server DATABASE_URL, or bring them up to date",
		Long: `Create the three databases on the server DATABASE_URL, or bring them up to date. With DATABASE_SCHEMAS=true
they are three schemas of that database, and with INSTALLATION their names and those of roles begin with it.

With --roles each function gets a database role of its own, jobweaver_<function>, with the rights that it needs and no
others; with --services there are jobweaver_api, jobweaver_scheduler and jobweaver_worker, each with the rights of its
functions, for processes of serve. Only these roles and the databases' owner may then connect. A new role has no
password: set one yourself, or give --passwords, or ROLES_PASSWORD for the roles without a file there. Use the same
flags each time, since a new version may need other rights.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return m.run(cmd) },
	}
	cmd.Flags().BoolVar(&m.roles, "roles", false, "make a database role for each function, with the rights that it needs")
	cmd.Flags().BoolVar(&m.services, "services", false, "make a role for each of api, scheduler and worker, which logs in")
	cmd.Flags().StringSliceVar(&m.passwords, "passwords", nil,
		"a folder with the passwords, one file for each role, with its name; roles without a file get none; repeatable")
	waitFlag(cmd, &m.wait)
	return cmd
}

func (m migration) run(cmd *cobra.Command) error {
	server, err := serverURL()
	if err != nil {
		return err
	}
	layout, err := cli.Layout()
	if err != nil {
		return err
	}
	if len(m.passwords) > 0 && !m.roles && !m.services {
		return cli.Usage("--passwords goes with --roles or --services")
	}
	var given map[string]string
	if m.roles || m.services {
		if given, err = rolePasswords(m.passwords, m.made(layout)); err != nil {
			return err
		}
	}
	if err := pgpool.AwaitServer(cmd.Context(), server, m.wait); err != nil {
		return err
	}
	urls, err := layout.Ensure(cmd.Context(), server)
	if err != nil {
		return err
	}
	for _, set := range layout.Sets() {
		if err := m.bringUp(cmd, urls.Of(set.Functions[0]), set, given); err != nil {
			return err
		}
	}
	return nil
}

// made returns the roles that get passwords.
func (m migration) made(layout migrations.Layout) (roles []string) {
	for _, set := range layout.Sets() {
		if m.services {
			roles = append(roles, set.ServiceRole())
		}
		if m.roles {
			roles = append(roles, set.Roles()...)
		}
	}
	return roles
}

// bringUp migrates one database or schema, and makes its roles.
func (m migration) bringUp(cmd *cobra.Command, url string, set migrations.Set, passwords map[string]string) error {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	begins := func(migration string) { fmt.Fprintf(out, "%s: %s begins\n", set.Database(), migration) }
	if err := migrations.Up(ctx, url, set, begins); err != nil {
		return err
	}
	state, err := schemaState(ctx, url, set)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s is %s\n", set.Database(), state)
	var roles []string
	if m.roles {
		roles, err = set.Roles(), migrations.Grant(ctx, url, set, passwords)
	}
	if m.services && err == nil {
		roles, err = append(roles, set.ServiceRole()), migrations.GrantService(ctx, url, set, passwords)
	}
	if err == nil && len(roles) > 0 {
		fmt.Fprintf(out, "%s is open to %s\n", set.Database(), strings.Join(roles, ", "))
	}
	return err
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
