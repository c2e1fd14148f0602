// Command river measures River, with which JobWeaver is compared, with the settings of River's own bench command. It is
// a module of its own so that River never becomes a dependency of JobWeaver.
//
//	DATABASE_URL=… river throughput --jobs 100000
//	DATABASE_URL=… river latency --rate 100 --for 30s
//
// It makes the database river_bench on the server of DATABASE_URL, and drops an older one. It prints one line when the
// timed part begins and one line of JSON at its end.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "river:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("usage: river throughput|latency")
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	jobs := flags.Int("jobs", 100_000, "how many, timed")
	warm := flags.Int("warm", 5_000, "how many before them, untimed")
	rate := flags.Int("rate", 100, "jobs a second")
	duration := flags.Duration("for", 30*time.Second, "how long")
	pool := flags.Int("pool", 0, "connections; 0 is pgx's default, which River's own bench takes too")
	pad := flags.Int("pad", 0, "bytes by which the arguments of a job are larger")
	handler := flags.Duration("handler", 0, "how long each job of throughput sleeps")
	workers := flags.Int("workers", 2_000, "how many, as in River's own bench")
	stay := flags.Bool("stay", false, "keep the sessions with PostgreSQL open after the result, until a signal")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	b, err := open(ctx, os.Getenv("DATABASE_URL"), *pool, *workers, *handler)
	if err != nil {
		return err
	}
	defer b.close()
	b.pad = strings.Repeat("x", *pad)
	var result any
	switch args[0] {
	case "throughput":
		result, err = b.throughput(ctx, *jobs, *warm)
	case "latency":
		result, err = b.latency(ctx, *rate, *duration)
	default:
		err = fmt.Errorf("there is no %q", args[0])
	}
	if err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(result); err != nil || !*stay {
		return err
	}
	<-ctx.Done()
	return nil
}
