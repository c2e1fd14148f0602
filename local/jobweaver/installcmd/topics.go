package installcmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/IBM/sarama"
	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
	"github.com/jobweaver/jobweaver/shared/funchost/envsettings"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// NewTopics makes the command topics.
func NewTopics() *cobra.Command {
	var wait time.Duration
	var partitions int32
	create := &cobra.Command{
		Use: "create", Args: cli.Exactly(0),
		Short: "Create the topics that are missing on KAFKA_BROKERS, for the queues in QUEUES",
		Long: `Create the topics that are missing on KAFKA_BROKERS, for the queues in QUEUES.

With --run-partitions it adds partitions to topics that exist. It changes nothing else of them: it prints how the
partitions, the replication, cleanup.policy, max.message.bytes and the retention of each differ from what JobWeaver
needs, and fails if events would be lost. Its user needs the rights Describe and DescribeConfigs on the topics, and
Create if one is missing.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if partitions < jobevent.RunPartitions || partitions > jobevent.MaxRunPartitions {
				return cli.Usage("--run-partitions must be from %d to %d", jobevent.RunPartitions, jobevent.MaxRunPartitions)
			}
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
			if partitions > jobevent.RunPartitions {
				if err := kafkaevent.GrowTopics(cmd.Context(), cfg, runTopics(names, partitions)); err != nil {
					return err
				}
			}
			return report(cmd, cfg, list)
		},
	}
	waitFlag(create, &wait)
	create.Flags().Int32Var(&partitions, "run-partitions", jobevent.RunPartitions,
		"partitions of the topic of each queue in QUEUES, and so its most workers; existing topics grow to it")
	var yes bool
	empty := &cobra.Command{
		Use: "empty", Args: cli.Exactly(0),
		Short: "Delete the topics on KAFKA_BROKERS with all their records, and create them again",
		Long: `Delete the topics on KAFKA_BROKERS with all their records, and create them again.

After a restore, functions must not consume newer events than the databases. Stop all
functions first; when they start, they publish again what the databases hold.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !yes {
				return cli.Usage("this deletes all events: add --yes if that is meant")
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

// report prints the topics, and how they differ from what JobWeaver needs. A harmful difference is an error.
func report(cmd *cobra.Command, cfg kafkaevent.Config, list []jobevent.Topic) error {
	ctx, cancel := context.WithTimeout(cmd.Context(), time.Minute)
	defer cancel()
	all, err := kafkaevent.CompareTopics(ctx, cfg, list)
	if err != nil {
		return err
	}
	for _, topic := range list {
		fmt.Fprintf(cmd.OutOrStdout(), "%s is there\n", cfg.AtBrokers(topic.Name))
		for _, d := range all {
			if d.Topic == topic.Name {
				fmt.Fprintf(cmd.OutOrStdout(), "  %s\n", d.Is)
			}
		}
	}
	if kafkaevent.Harmful(all) {
		return errors.New("a topic would lose events: change its settings, " +
			"or delete it while nothing runs and create it again")
	}
	return nil
}

// runTopics returns the topics of queues, with this many partitions.
func runTopics(queues []string, partitions int32) []jobevent.Topic {
	topics := make([]jobevent.Topic, len(queues))
	for i, queue := range queues {
		topics[i] = jobevent.Topic{Name: jobevent.RunTopic(queue), Partitions: partitions}
	}
	return topics
}

// createTopics tries again until wait is over: a cluster that starts may not respond yet, or have too few brokers.
func createTopics(ctx context.Context, cfg kafkaevent.Config, list []jobevent.Topic, wait time.Duration) error {
	if _, err := kafkaevent.NewPulse(cfg); err != nil {
		return err // an error in the settings, which waiting does not change
	}
	began, trouble := time.Now(), telemetry.Trouble{What: "create topics"}
	for {
		err := kafkaevent.CreateTopics(ctx, cfg, list)
		refused := errors.Is(err, sarama.ErrTopicAuthorizationFailed) || errors.Is(err, sarama.ErrClusterAuthorizationFailed)
		if err != nil && (refused || time.Since(began) > wait) {
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
