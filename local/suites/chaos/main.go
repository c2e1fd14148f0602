// Command chaos proves that nothing is lost on a production-like installation: three Apache Kafka brokers, PostgreSQL
// with a synchronous standby, and two processes of every function. It submits jobs of every kind, makes faults, often
// two at a time, and checks the results against the records of a witness outside of JobWeaver. It prints a table, and
// exits with 1 if a promise was broken.
//
//	make chaos                       about ten minutes
//	make chaos CHAOS_SEED=7          with the faults of a run that printed this seed
//	make chaos CHAOS_FOR=60s         a short run
//	make chaos CHAOS_SERVE=1         a jobweaver serve and its standby, without brokers
//
// CHAOS_ONLY names the kinds of faults to make, separated by commas, and CHAOS_KEEP=1 keeps the folder of a good run.
package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// config is read from the environment.
type config struct {
	seed uint64
	span time.Duration // of the faults
	only string
	keep bool
	pair bool // a jobweaver serve and its standby, in place of the functions and the brokers
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	good, err := readAndRun(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
	}
	if !good {
		os.Exit(1)
	}
}

func readAndRun(ctx context.Context) (good bool, err error) {
	cfg := config{
		seed: rand.Uint64() >> 40, span: fitsAll, only: os.Getenv("CHAOS_ONLY"), keep: os.Getenv("CHAOS_KEEP") != "",
		pair: os.Getenv("CHAOS_SERVE") != "",
	}
	if text := os.Getenv("CHAOS_SEED"); text != "" {
		if cfg.seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			return false, fmt.Errorf("CHAOS_SEED: %q is not a whole number", text)
		}
	}
	if text := os.Getenv("CHAOS_FOR"); text != "" {
		if cfg.span, err = time.ParseDuration(text); err != nil {
			return false, fmt.Errorf("CHAOS_FOR: %w", err)
		}
	}
	return runOnce(ctx, cfg)
}

// logLine prints a line with the time.
func logLine(line string) {
	fmt.Fprintf(os.Stderr, "%s  %s\n", clockTime(time.Now()), line)
}

// chosen returns the kinds that CHAOS_ONLY names; all if it is empty.
func chosen(kinds []*kind, only string) (list []*kind) {
	for _, k := range kinds {
		for _, part := range strings.Split(only, ",") {
			if strings.Contains(k.name, strings.TrimSpace(part)) {
				list = append(list, k)
				break
			}
		}
	}
	return list
}
