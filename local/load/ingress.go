package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/load/ingress"
	"github.com/jobweaver/jobweaver/local/load/rig"
)

// newIngress makes the command that stands for a Knative Broker, in a process of its own.
func newIngress() *cobra.Command {
	var cfg ingress.Config
	cmd := &cobra.Command{
		Use: "ingress", Args: cobra.NoArgs, Hidden: true, Short: "A broker like Knative's, in a process of its own",
		RunE: func(cmd *cobra.Command, _ []string) error {
			broker, err := ingress.New(cfg)
			if err != nil {
				return err
			}
			return errors.Join(serveIngress(cmd.Context(), broker), broker.Close())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&cfg.Manifests, "manifests", "knative/base", "folder of the Triggers")
	flags.StringToStringVar(&cfg.Functions, "function", nil, "name=URL of a function")
	flags.StringSliceVar(&cfg.Brokers, "kafka", nil, "brokers of the KafkaSinks")
	return cmd
}

func serveIngress(ctx context.Context, handler http.Handler) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	fmt.Println(rig.Ready + "http://" + listener.Addr().String())
	select {
	case <-ctx.Done():
		return server.Close()
	case err := <-ended:
		return err
	}
}
