package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/funchost/envsettings"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/secret"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

func newMigrate() *cobra.Command {
	var roles bool
	var passwords string
	var wait time.Duration
	cmd := &cobra.Command{
		Use: "migrate", Args: exactly(0),
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
				return usage("--passwords goes with --roles")
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
				if err := migrations.Up(cmd.Context(), urls.Of(set.Functions[0]), set); err != nil {
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

// schemaState says how a database that was just migrated compares with this version.
func schemaState(ctx context.Context, url string, set migrations.Set) (string, error) {
	database, own, err := migrations.Versions(ctx, url, set)
	if err != nil || database <= own {
		return "up to date", err
	}
	return fmt.Sprintf("newer than this version of jobweaver: it has migration %d, and this version knows those up to %d."+
		" It stays as it is", database, own), nil
}

// waitFlag is for a command that may begin before the server that it is for.
func waitFlag(cmd *cobra.Command, wait *time.Duration) {
	cmd.Flags().DurationVar(wait, "wait", time.Minute, "how long to wait for a server that does not answer yet")
}

func serverURL() (string, error) {
	server, err := givenURL()
	if err == nil && server == "" {
		err = usage("DATABASE_URL is not set: which server?")
	}
	return server, err
}

// givenURL is DATABASE_URL, or what stands in the file DATABASE_URL_FILE, as in a pod; empty: neither is given.
func givenURL() (string, error) {
	var own struct {
		URL secret.Text `envconfig:"DATABASE_URL"`
	}
	if err := envsettings.Load(&own); err != nil {
		return "", err
	}
	return own.URL.Reveal(), nil
}

func newTopics() *cobra.Command {
	var wait time.Duration
	create := &cobra.Command{
		Use: "create", Args: exactly(0),
		Short: "Create the topics that are missing on KAFKA_BROKERS, for the queues in QUEUES",
		RunE: func(cmd *cobra.Command, _ []string) error {
			var cfg kafkaevent.Config
			if err := envsettings.Load(&cfg); err != nil {
				return err
			}
			names, err := queues()
			if err != nil {
				return err
			}
			list := jobevent.Topics(names)
			if err := createTopics(cmd.Context(), cfg, list, wait); err != nil {
				return err
			}
			for _, topic := range list {
				fmt.Fprintf(cmd.OutOrStdout(), "%s is there\n", topic.Name)
			}
			return nil
		},
	}
	waitFlag(create, &wait)
	var yes bool
	empty := &cobra.Command{
		Use: "empty", Args: exactly(0),
		Short: "Delete the topics on KAFKA_BROKERS with all their records, and create them again",
		Long: `Delete the topics on KAFKA_BROKERS with all their records, and create them again.

After a restore, functions must not consume newer events than the databases. Stop all
functions first; when they start, they publish again what the databases hold.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !yes {
				return usage("this deletes all events: add --yes if that is meant")
			}
			var cfg kafkaevent.Config
			if err := envsettings.Load(&cfg); err != nil {
				return err
			}
			names, err := queues()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), 2*time.Minute)
			defer cancel()
			if err := kafkaevent.EmptyTopics(ctx, cfg, jobevent.Topics(names)); err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), "all topics are empty")
			return nil
		},
	}
	empty.Flags().BoolVar(&yes, "yes", false, "confirm that all events may be deleted")
	topics := &cobra.Command{Use: "topics", Short: "Manage the Kafka topics"}
	topics.AddCommand(create, empty)
	return topics
}

// createTopics tries again for as long as wait: a cluster that starts may not answer yet, or have too few brokers.
func createTopics(ctx context.Context, cfg kafkaevent.Config, list []jobevent.Topic, wait time.Duration) error {
	if _, err := kafkaevent.NewPulse(cfg); err != nil {
		return err // of the settings: no waiting helps
	}
	began, trouble := time.Now(), telemetry.Trouble{What: "create topics"}
	for {
		err := kafkaevent.CreateTopics(ctx, cfg, list)
		if err != nil && time.Since(began) > wait {
			return err
		}
		trouble.Note(ctx, err, "patience", wait.String())
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(time.Second):
		}
	}
}

func queues() ([]string, error) {
	text, set := os.LookupEnv("QUEUES")
	if !set {
		return []string{"default", "pull"}, nil
	}
	list := splitList(text)
	if len(list) == 0 {
		return nil, errors.New("QUEUES: names no queue")
	}
	return list, jobspec.CheckQueues(list)
}

func splitList(text string) []string {
	var list []string
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list
}
