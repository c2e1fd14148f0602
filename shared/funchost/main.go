package funchost

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/jobweaver/jobweaver/shared/funchost/envsettings"
	"github.com/jobweaver/jobweaver/shared/funchost/probe"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// Main is a function's whole process: it reads the environment, builds the function, and runs it until SIGTERM or
// SIGINT. It exits with 0 after a clean drain, and with 1 and one line on stderr, in the form of LOG_FORMAT, if it
// cannot start. A second signal ends the process at once. With the argument healthcheck it checks whether the function
// with the same environment is ready, and exits with 0 or 1. It answers --help and --version, and exits with 64 on any
// other argument.
func Main(name string, build func(ctx context.Context, env *Env) (Function, error)) {
	process(name, Needs{Database: true}, build)
}

// MainWithoutDatabase is Main for a function that uses neither a database of this installation nor topics: it reads
// neither DATABASE_URL nor the settings of Kafka.
func MainWithoutDatabase(name string, build func(ctx context.Context, env *Env) (Function, error)) {
	process(name, Needs{}, build)
}

func process(name string, needs Needs, build func(ctx context.Context, env *Env) (Function, error)) {
	if len(os.Args) > 1 && !wantsHealthcheck() {
		os.Exit(answerArguments(name, os.Args[1:], os.Stdout, os.Stderr))
	}
	ctx := untilSignal(context.Background())
	if wantsHealthcheck() {
		if err := Healthcheck(ctx); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %s\n", name, oneLine(err))
			os.Exit(1)
		}
		return
	}
	if err := RunAlone(ctx, name, needs, build); err != nil {
		os.Exit(1)
	}
}

// RunAlone runs a function as Main does, until ctx ends, in a program that has read its own arguments. It has logged
// the error that it returns.
func RunAlone(
	ctx context.Context, name string, needs Needs, build func(context.Context, *Env) (Function, error),
) error {
	err := runProcess(ctx, name, needs, build)
	if err != nil {
		logFailure(os.Stderr, name, err)
	}
	return err
}

// healthcheck is the argument with which a function's binary checks whether the function that runs with the same
// environment is ready.
const healthcheck = "healthcheck"

func wantsHealthcheck() bool { return len(os.Args) == 2 && os.Args[1] == healthcheck }

// Healthcheck returns an error unless the process that runs with the same environment is ready.
func Healthcheck(ctx context.Context) error {
	var cfg Config
	for _, part := range []any{&cfg, &cfg.TLS} {
		if err := envsettings.Load(part); err != nil {
			return err
		}
	}
	return probe.AskReady(ctx, cfg.Host, cfg.Port, cfg.TLS.CertFile != "")
}

// logFailure writes the one line with the reason why a process exits with 1, in the form of other log lines: a log
// pipeline could drop another form. The settings themselves may be invalid, so it reads only LOG_FORMAT.
func logFailure(w io.Writer, name string, err error) {
	logger, wrong := telemetry.NewLogger(w, "", os.Getenv("LOG_FORMAT"))
	if wrong != nil {
		logger, _ = telemetry.NewLogger(w, "", "")
	}
	logger.Error("function failed", telemetry.FieldService, name, "error", oneLine(err))
}

// oneLine joins the lines of an error from errors.Join or pgx.
func oneLine(err error) string {
	return strings.NewReplacer(":\n\t", ": ", "\n\t", "; ", "\n", "; ").Replace(err.Error())
}

func runProcess(
	ctx context.Context, name string, needs Needs, build func(context.Context, *Env) (Function, error),
) error {
	env, err := loadEnv(needs)
	if err != nil {
		return err
	}
	if err := env.Config.insist(env.Config.plain()); err != nil {
		return err // before any resource is opened
	}
	logger, err := telemetry.NewLogger(os.Stdout, env.Config.LogLevel, env.Config.LogFormat)
	if err != nil {
		return err
	}
	telemetry.SetDefault(logger.With(telemetry.FieldService, name))
	defer env.Close()
	envsettings.WarnOfNearMisses(ctx)
	f, err := build(ctx, env)
	if err != nil && ctx.Err() != nil {
		return nil // it was stopped before it ran
	}
	if err != nil {
		return err
	}
	if err := Run(telemetry.WithLogger(ctx, logger), env.Config, f); err != nil {
		return err
	}
	telemetry.Logger(ctx).InfoContext(ctx, "function stopped")
	return nil
}

// untilSignal returns a context that ends with the first stop signal.
func untilSignal(ctx context.Context) context.Context {
	ctx, stop := context.WithCancel(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	go func() {
		<-signals
		stop()
		<-signals
		os.Exit(1)
	}()
	return ctx
}
