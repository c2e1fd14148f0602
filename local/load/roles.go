package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/infra/laptop/localkafka"
	"github.com/jobweaver/jobweaver/local/dev"
	"github.com/jobweaver/jobweaver/local/load/rig"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// newSystem makes the command that runs all functions in one process, as in make run, with the bench's job
// types. Its worker leaves rig.Queue to other workers.
func newSystem() *cobra.Command {
	o := dev.Options{
		Kafka: "embedded", Queues: []string{jobevent.DefaultQueue, rig.Queue},
		WorkerQueues: []string{jobevent.DefaultQueue}, JobTypes: []string{"*"}, Out: io.Discard,
	}
	var pulls bool
	var handler time.Duration
	cmd := &cobra.Command{
		Use: "system", Args: cobra.NoArgs, Hidden: true,
		Short: "An installation on the server of DATABASE_URL and the broker of KAFKA_BROKERS, or an embedded one",
		RunE: func(cmd *cobra.Command, _ []string) error {
			logger, err := telemetry.NewLogger(os.Stderr, "warn", "text")
			if err != nil {
				return err
			}
			telemetry.SetDefault(logger)
			uuid.EnableRandPool() // as the gateway's own main does
			o.DatabaseURL = os.Getenv("DATABASE_URL")
			if brokers := os.Getenv("KAFKA_BROKERS"); brokers != "" {
				o.Brokers = strings.Split(brokers, ",")
			}
			if pulls {
				o.Queues = append(o.Queues, rig.PullQueue)
			}
			o.Handlers = jobTypes(handler, func() {})
			return dev.Run(cmd.Context(), o, func(ctx context.Context, url string) error {
				fmt.Println(rig.Ready + url)
				<-ctx.Done()
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&o.Dir, "dir", ".", "where the broker's data is kept")
	cmd.Flags().DurationVar(&handler, "handler", 0, "how long the handler of no-ops sleeps")
	cmd.Flags().BoolVar(&pulls, "pull", false, "with the function pull and its queue")
	return cmd
}

// newBroker makes the command that runs a broker in a process of its own, so that its use of the machine can be
// measured separately.
func newBroker() *cobra.Command {
	var kind, dir string
	cmd := &cobra.Command{
		Use: "broker", Args: cobra.NoArgs, Hidden: true, Short: "A broker in a process of its own",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg := localkafka.Config{
				Dir: filepath.Join(dir, "kafka-"+kind), Progress: func(line string) { fmt.Fprintln(os.Stderr, line) },
			}
			var server *localkafka.Server
			var err error
			switch kind {
			case "embedded":
				server, err = localkafka.StartEmbedded(cfg)
			case "apache":
				server, err = localkafka.StartApache(cmd.Context(), cfg)
			default:
				err = fmt.Errorf("--kind is embedded or apache, not %q", kind)
			}
			if err != nil {
				return err
			}
			fmt.Println(rig.Ready + strings.Join(server.Brokers(), ","))
			<-cmd.Context().Done()
			return server.Stop()
		},
	}
	cmd.Flags().StringVar(&kind, "kind", "embedded", "embedded or apache")
	cmd.Flags().StringVar(&dir, "dir", ".", "where its data is kept")
	return cmd
}
