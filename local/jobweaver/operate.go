package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
)

func newMigrate() *cobra.Command {
	return &cobra.Command{
		Use: "migrate", Args: cobra.NoArgs,
		Short: "Make the three databases on the server DATABASE_URL and bring them up to date",
		RunE: func(cmd *cobra.Command, _ []string) error {
			server := os.Getenv("DATABASE_URL")
			if server == "" {
				return errors.New("DATABASE_URL is not set: which server?")
			}
			urls, err := migrations.EnsureDatabases(cmd.Context(), server)
			if err != nil {
				return err
			}
			for _, d := range []struct {
				set migrations.Set
				url string
			}{{migrations.API, urls.API}, {migrations.Scheduler, urls.Scheduler}, {migrations.Worker, urls.Worker}} {
				if err := migrations.Up(cmd.Context(), d.url, d.set); err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s is up to date\n", d.set.Database())
			}
			return nil
		},
	}
}

func newTopics() *cobra.Command {
	topics := &cobra.Command{Use: "topics", Short: "Manage the Kafka topics"}
	topics.AddCommand(&cobra.Command{
		Use: "create", Args: cobra.NoArgs,
		Short: "Create the topics that are missing on KAFKA_BROKERS, for the queues in QUEUES",
		RunE: func(cmd *cobra.Command, _ []string) error {
			var cfg kafkaevent.Config
			if err := funchost.LoadConfig(&cfg); err != nil {
				return err
			}
			list := jobevent.Topics(queues())
			if err := kafkaevent.CreateTopics(cmd.Context(), cfg, list); err != nil {
				return err
			}
			for _, topic := range list {
				fmt.Fprintf(cmd.OutOrStdout(), "%s is there\n", topic.Name)
			}
			return nil
		},
	})
	return topics
}
