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

// Main is a function's whole process: it reads the environment, has the function built, and runs it
// until SIGTERM or SIGINT. It exits with 0 after a clean drain, and with 1 and one line on stderr, in the form of
// LOG_FORMAT, when it cannot start. A second signal ends the process at once. With the argument healthcheck it asks
// the function of the same environment whether it is ready, and exits with 0 or 1. --help and --version are
// answered; any other argument ends it with 64.
func Main(name string, build func(ctx context.Context, env *Env) (Function, error)) {
	process(name, needs{database: true}, build)
}

// MainWithoutDatabase is Main of a function that has no database of this installation, nor topics: it reads neither
// DATABASE_URL nor anything of Kafka.
func MainWithoutDatabase(name string, build func(ctx context.Context, env *Env) (Function, error)) {
	process(name, needs{}, build)
}

func process(name string, needs needs, build func(ctx context.Context, env *Env) (Function, error)) {
	if len(os.Args) > 1 && !wantsHealthcheck() {
		os.Exit(answerArguments(name, os.Args[1:], os.Stdout, os.Stderr))
	}
	ctx := untilSignal(context.Background())
	if wantsHealthcheck() {
		if err := runHealthcheck(ctx); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %s\n", name, oneLine(err))
			os.Exit(1)
		}
		return
	}
	if err := runProcess(ctx, name, needs, build); err != nil {
		logFailure(os.Stderr, name, err)
		os.Exit(1)
	}
}

// healthcheck is the argument by which a function's binary asks the function that runs with the same environment
// whether it is ready.
const healthcheck = "healthcheck"

func wantsHealthcheck() bool { return len(os.Args) == 2 && os.Args[1] == healthcheck }

func runHealthcheck(ctx context.Context) error {
	var cfg Config
	for _, part := range []any{&cfg, &cfg.TLS} {
		if err := envsettings.Load(part); err != nil {
			return err
		}
	}
	return probe.AskReady(ctx, cfg.Host, cfg.Port, cfg.TLS.CertFile != "")
}

// logFailure writes the one line with the reason why a process ends with 1, in the form of the other lines: a pipeline
// of logs would drop it otherwise. The settings may be what is wrong, so of them it reads only LOG_FORMAT.
func logFailure(w io.Writer, name string, err error) {
	logger, wrong := telemetry.NewLogger(w, "", os.Getenv("LOG_FORMAT"))
	if wrong != nil {
		logger, _ = telemetry.NewLogger(w, "", "")
	}
	logger.Error("function failed", telemetry.FieldService, name, "error", oneLine(err))
}

// oneLine joins what errors.Join and pgx write in several lines.
func oneLine(err error) string {
	return strings.NewReplacer(":\n\t", ": ", "\n\t", "; ", "\n", "; ").Replace(err.Error())
}

func runProcess(
	ctx context.Context, name string, needs needs, build func(context.Context, *Env) (Function, error),
) error {
	env, err := loadEnv(needs)
	if err != nil {
		return err
	}
	if err := env.Config.insist(env.Config.plain()); err != nil {
		return err // before anything is opened
	}
	logger, err := telemetry.NewLogger(os.Stdout, env.Config.LogLevel, env.Config.LogFormat)
	if err != nil {
		return err
	}
	telemetry.SetDefault(logger.With(telemetry.FieldService, name))
	defer env.close()
	envsettings.WarnOfNearMisses(ctx)
	f, err := build(ctx, env)
	if err != nil {
		return err
	}
	if err := Run(telemetry.WithLogger(ctx, logger), env.Config, f); err != nil {
		return err
	}
	telemetry.Logger(ctx).InfoContext(ctx, "function stopped")
	return nil
}

// untilSignal is a context that ends with the first signal to stop.
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
