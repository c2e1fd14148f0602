// Command peers runs a job system that JobWeaver is compared with, behind a minimal HTTP server, with handlers that do
// nothing. It is a module of its own so that these systems never become dependencies of JobWeaver.
//
//	peers asynq --dir DIR
//	peers faktory --dir DIR --server FAKTORY
//
// It starts the servers that they need: Debian's redis-server, with its data in DIR, and the program FAKTORY.
//
// The programs in node/ serve the same requests:
//
//	POST /jobs     {"jobs": [payload, …]}: 200 once all of them are stored
//	GET  /state    {"open": true}: whether a job has not ended, and "ran": how many handlers ran
//	GET  /starts   microseconds since 1970 at which handlers of payloads {"num": n} began, by n
//
// Faktory has a network protocol, so its jobs do not pass HTTP: POST /load {"jobs", "clients", "batch"} pushes them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// peer is one of the job systems.
type peer interface {
	store(ctx context.Context, payloads [][]byte) error
	load(ctx context.Context, l load) error
	open() (bool, error)
	stop()
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("usage: peers asynq|faktory")
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	dir := flags.String("dir", ".", "folder of the data")
	server := flags.String("server", "faktory", "program of the Faktory server")
	slots := flags.Int("slots", 64, "handlers at once")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	ran := &handlers{}
	var p peer
	var err error
	switch args[0] {
	case "asynq":
		p, err = startAsynq(*dir, *slots, ran)
	case "faktory":
		p, err = startFaktory(*server, *dir, *slots, ran)
	default:
		err = fmt.Errorf("there is no %q", args[0])
	}
	if err != nil {
		return err
	}
	defer p.stop()
	return serve(ctx, p, ran)
}

func serve(ctx context.Context, p peer, ran *handlers) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	server := &http.Server{Handler: routes(p, ran), ReadHeaderTimeout: time.Minute}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	fmt.Println("ready http://" + listener.Addr().String())
	select {
	case <-ctx.Done():
		return server.Close()
	case err := <-ended:
		return err
	}
}
