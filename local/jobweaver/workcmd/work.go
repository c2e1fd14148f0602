//go:build !windows

// Package workcmd has the command work: a pull worker that runs a program for each attempt.
package workcmd

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
	"github.com/jobweaver/jobweaver/local/jobweaver/program"
	"github.com/jobweaver/jobweaver/shared/client/worker"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

const workHelp = `Claim attempts of job types from the gateway, and run a program for each. The key needs the role work.

The program
  reads       the payload as JSON from standard input
  has         JOBWEAVER_JOB_ID, _ATTEMPT, _TOKEN (both together: fence side effects with it), _JOB_TYPE, _QUEUE,
              _TRACE_ID and _DEADLINE, where there is one _OWNER_ID, _CHECKPOINT and _EVENT, and where it may wait for
              an outside system _CALLBACK_URL and _CALLBACK_SECRET as environment variables; not the API key of this
              command
  writes      its output to standard output: JSON of at most 256 KiB. Other text becomes a JSON string, of which the
              last 64 KiB are kept; with --json it fails the attempt
  logs        by lines to standard error
  ends with   0 completed, 64 or 65 failed for good (the arguments or the payload are wrong), any other code, such as
              75, failed, to be retried. The end of standard error is the message

Lines on file descriptor 3, such as echo progress 40 >&3:
  progress PERCENT [MESSAGE]
  log LEVEL TEXT           a line with the level debug, info, warn or error
  checkpoint JSON          saved for the next attempt of the job, which has it as JOBWEAVER_CHECKPOINT; at most 64 KiB
  snooze DURATION          with exit code 0: run again after 10s, 5m or 1h; no retry is counted
  wait DURATION            with exit code 0: an outside system ends the attempt by a callback within this time
  code CODE                with another exit code: the error code, such as RESIZE.NO_IMAGE
  retry-after DURATION     with another exit code: the delay of the retry

When the attempt is cancelled, times out or is lost, the program and its children get SIGTERM, and after --kill-after
SIGKILL. Children in its process group that still run 2 s after the program are killed. Ctrl-C, or SIGTERM, lets
programs go on for --grace and then ends them; their jobs run again at once, and no retry is counted. A second Ctrl-C
kills them.`

type workFlags struct {
	types     []string
	options   worker.Options
	killAfter time.Duration
	json      bool
	logLevel  string
}

// NewWork makes the command work.
func NewWork() *cobra.Command {
	var f workFlags
	cmd := &cobra.Command{
		Use:   "work --type TYPE -- PROGRAM [ARGUMENT…]",
		Short: "Run a program of yours for each attempt of a job type",
		Long:  workHelp,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Usage("which program? Give it after --: %s", cmd.UseLine())
			}
			return nil
		},
		RunE: f.run,
	}
	flags := cmd.Flags()
	flags.SetInterspersed(false) // flags after the program are the program's
	flags.StringSliceVar(&f.types, "type", nil, "job types whose attempts the program runs: several times, or with commas")
	flags.StringSliceVar(&f.options.Queues, "queue", nil, "only attempts of these queues: several times, or with commas")
	flags.IntVar(&f.options.Slots, "slots", 1, "programs that run at once, at most 500")
	flags.StringVar(&f.options.Name, "name", "", "name of this pull worker (default the machine's and something random)")
	flags.DurationVar(&f.options.Grace, "grace", 25*time.Second, "how long programs may go on after Ctrl-C or SIGTERM")
	flags.DurationVar(&f.killAfter, "kill-after", 5*time.Second, "how long a program may go on after it got SIGTERM")
	flags.BoolVar(&f.json, "json", false, "output that is not JSON, or too large, fails the attempt")
	flags.StringVar(&f.logLevel, "log-level", "info", "what is logged here: debug, info, warn or error")
	_ = cmd.MarkFlagRequired("type")
	return cmd
}

func (f *workFlags) run(cmd *cobra.Command, args []string) error {
	path, err := exec.LookPath(args[0])
	if err != nil {
		return cli.Usage("%w", err)
	}
	if f.options.Slots < 1 || f.options.Slots > 500 {
		return cli.Usage("--slots: %d is not within 1 and 500", f.options.Slots)
	}
	logger, err := telemetry.NewLogger(cmd.ErrOrStderr(), f.logLevel, "text")
	if err != nil {
		return cli.Usage("--log-level: %w", err)
	}
	// 0 would mean the default of the worker kit.
	f.options.Logger, f.options.Grace = logger, max(f.options.Grace, time.Nanosecond)
	hideEnvironment(logger)
	now := make(chan struct{})
	p := &program.Program{Path: path, Args: args[1:], KillAfter: f.killAfter, Strict: f.json, Now: now}
	w := worker.New(cli.API(cmd), f.options)
	for _, name := range f.types {
		worker.Handle(w, name, func(ctx context.Context, a *worker.Attempt, in json.RawMessage) (json.RawMessage, error) {
			return logged(ctx, logger, p, a, in)
		})
	}
	stopped := make(chan struct{})
	defer close(stopped)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	go f.untilSecond(signals, stopped, logger, now)
	logger.InfoContext(cmd.Context(), "claiming attempts, Ctrl-C stops", "types", strings.Join(f.types, ","))
	if err := w.Run(cmd.Context()); err != nil {
		return err
	}
	select {
	case <-now:
		return cli.ExitCode(cli.ExitInterrupted)
	default:
		return nil
	}
}

// lastMoment is how long the worker waits for the results of programs that a second signal has killed.
const lastMoment = 2 * time.Second

// untilSecond closes now at the second signal. The first signal ends the command's context.
func (f *workFlags) untilSecond(
	signals <-chan os.Signal, stopped <-chan struct{}, logger *slog.Logger, now chan<- struct{},
) {
	for n := range 2 {
		select {
		case <-stopped:
			return
		case <-signals:
		}
		if n == 0 {
			logger.Info("stopping when the programs have ended, a second signal kills them", "grace", f.options.Grace)
		}
	}
	close(now)
	select {
	case <-stopped:
	case <-time.After(lastMoment):
		os.Exit(cli.ExitInterrupted) // the attempts are lost after 15 s, and run again
	}
}

func logged(
	ctx context.Context, logger *slog.Logger, p *program.Program, a *worker.Attempt, payload json.RawMessage,
) (json.RawMessage, error) {
	logger = logger.With("jobId", a.JobID, "attempt", a.Attempt, "type", a.JobType)
	logger.DebugContext(ctx, "program starts")
	start := time.Now()
	output, err := p.Run(ctx, &a.WorkAttempt, a.Checkpoint, payload, a.Log, a.Progress)
	took := time.Since(start).Round(time.Millisecond)
	if err != nil {
		logger.WarnContext(ctx, "program did not complete the attempt", "took", took, "why", err)
	} else {
		logger.InfoContext(ctx, "program completed the attempt", "took", took)
	}
	return output, err
}
