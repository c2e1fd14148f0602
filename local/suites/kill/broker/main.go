// Command broker is the embedded broker in a process of its own, so that it can be killed.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/jobweaver/jobweaver/infra/laptop/localkafka"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "broker:", err)
		os.Exit(1)
	}
}

func run() error {
	port, err := strconv.Atoi(os.Getenv("PORT"))
	if err != nil {
		return fmt.Errorf("read PORT: %w", err)
	}
	server, err := localkafka.StartEmbedded(localkafka.Config{Dir: os.Getenv("BROKER_DIR"), Port: port})
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	<-signals
	return server.Stop()
}
