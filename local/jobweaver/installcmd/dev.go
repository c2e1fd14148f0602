//go:build !nodev

package installcmd

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/demo"
	"github.com/jobweaver/jobweaver/local/dev"
	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
	"github.com/jobweaver/jobweaver/local/mailcatch"
	"github.com/jobweaver/jobweaver/shared/funchost/envsettings"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// NewDev makes the command dev.
func NewDev() *cobra.Command {
	var o dev.Options
	var withDemo, exit bool
	var logLevel string
	var mails mailcatch.Config
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run a complete installation on this machine",
		Long: `Run a complete installation on this machine: a private PostgreSQL, a broker that speaks Kafka's protocol, and
all functions in one process. It needs nothing but this binary. DATABASE_URL or KAFKA_BROKERS, when set, name a server
that is used instead. --dir keeps the data and the secrets that sign results and callbacks, for the next run.`,
		Args: cli.Exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if exit && !withDemo {
				return cli.Usage("--exit goes with --demo: it ends dev when the demo has ended")
			}
			if err := fromEnvironment(&o); err != nil {
				return err
			}
			logger, err := telemetry.NewLogger(cmd.ErrOrStderr(), logLevel, "text")
			if err != nil {
				return err
			}
			telemetry.SetDefault(logger)
			o.Out = cmd.OutOrStdout()
			mails.OrAnother = !cmd.Flags().Changed("mail-port") && !cmd.Flags().Changed("mail-page-port")
			if o.Mails, err = catchMails(mails, o); err != nil {
				return err
			}
			if o.Mails != nil {
				defer func() { err = errors.Join(err, o.Mails.Close()) }()
			}
			err = dev.Run(cmd.Context(), o, func(ctx context.Context, url string) error {
				welcome(o, url)
				printPaused(ctx, o, url)
				if withDemo {
					err := runDemo(ctx, o, url)
					if exit {
						return err
					}
					if err != nil && ctx.Err() == nil {
						fmt.Fprintln(os.Stderr, "jobweaver: "+err.Error())
					}
					if ctx.Err() == nil {
						fmt.Fprintln(o.Out, "\nThe gateway stays at "+url+". Ctrl-C stops everything.")
					}
				}
				<-ctx.Done()
				fmt.Fprintln(o.Out, "\nstopping; the data stays in "+o.Dir)
				return nil
			})
			if errors.Is(err, context.Canceled) || err != nil && cmd.Context().Err() != nil {
				err = context.Canceled
				fmt.Fprintln(o.Out, "\nstopped before everything was up")
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&withDemo, "demo", false, "submit sample jobs and follow them to their ends")
	flags.BoolVar(&exit, "exit", false, "exit after the demo; exit code 0 only if every sample ended as expected")
	flags.StringVar(&o.Dir, "dir", ".jobweaver", "where the data is kept")
	flags.StringVar(&o.Host, "host", "localhost",
		"address on which the gateway listens; except on loopback, each request needs an API key")
	flags.IntVar(&o.Port, "port", 8080, "port of the gateway; 0 takes a free one")
	flags.StringVar(&o.Kafka, "kafka", "embedded",
		"embedded, or apache: Apache Kafka itself, which needs Java 17 and Maven")
	flags.StringSliceVar(&o.Only, "only", nil,
		"start only these of postgres,kafka and print the settings for the functions' own binaries")
	flags.StringSliceVar(&o.WorkerQueues, "worker-queues", nil,
		"queues that the built-in worker serves, if not all; the others are for a worker of your own")
	flags.StringArrayVar(&o.Relay, "relay", nil,
		"address of a database of yours that has an outbox: submit the jobs that are enqueued there (several times)")
	flags.IntVar(&o.PostgresPort, "postgres-port", 0, "port of the private PostgreSQL; 0 takes a free one")
	flags.IntVar(&o.KafkaPort, "kafka-port", 0, "port of the private broker; 0 takes a free one")
	flags.IntVar(&mails.Port, "mail-port", mailcatch.DefaultPort,
		"port of the mail server that catches mails, if SMTP_HOST is not set; 0, or a default that is in use: a free one")
	flags.IntVar(&mails.PagePort, "mail-page-port", mailcatch.DefaultPagePort,
		"port of the page that shows the mails; chosen like --mail-port")
	flags.StringVar(&logLevel, "log-level", "warn", "log level of the functions: debug, info, warn or error")
	return cmd
}

// catchMails starts the mail server that catches the mails of this installation, unless the environment names another
// one.
func catchMails(cfg mailcatch.Config, o dev.Options) (*mailcatch.Server, error) {
	_, named := os.LookupEnv("SMTP_HOST")
	_, inFile := os.LookupEnv("SMTP_HOST_FILE")
	if named || inFile || len(o.Only) > 0 {
		return nil, nil
	}
	return mailcatch.Start(cfg)
}

func runDemo(ctx context.Context, o dev.Options, url string) error {
	installation := demo.Installation{Traces: tracesOf(o), TraceURL: os.Getenv("TRACE_URL")}
	if o.Mails != nil {
		installation.MailPage = o.Mails.URL()
	}
	key, err := dev.AdminKey(o)
	if err != nil {
		return err
	}
	return demo.Run(ctx, cli.NewClient(url, key), installation, o.Out)
}

// printPaused prints the controls that an earlier run has paused: their jobs wait, and nothing else would show why.
func printPaused(ctx context.Context, o dev.Options, url string) {
	key, err := dev.AdminKey(o)
	if err != nil {
		return // not an error: the installation has started with these settings
	}
	var page struct {
		Controls []struct {
			Kind, Name string
			Paused     bool
		}
	}
	if _, err := cli.NewClient(url, key).Do(ctx, http.MethodGet, cli.Path("controls"), "", nil, &page); err != nil {
		return
	}
	for _, c := range page.Controls {
		if c.Paused {
			fmt.Fprintf(o.Out, "%s %s is paused; bin/jobweaver resume %[1]s %[2]s\n", cli.Line(c.Kind), cli.Line(c.Name))
		}
	}
}

// fromEnvironment reads the settings that dev shares with the functions' own processes.
func fromEnvironment(o *dev.Options) error {
	o.DatabaseURL = os.Getenv("DATABASE_URL")
	o.Brokers = splitList(os.Getenv("KAFKA_BROKERS"))
	layout, err := cli.Layout()
	if err != nil {
		return err
	}
	o.Layout = layout
	names, err := queues()
	if err != nil {
		return err
	}
	o.Queues = names
	if o.JobTypes = splitList(os.Getenv("JOB_TYPES")); len(o.JobTypes) == 0 {
		o.JobTypes = []string{"*"} // a pull worker of any type can be tried at once
	}
	for _, cfg := range []any{&o.TLS, &o.Trace} {
		if err := envsettings.Load(cfg); err != nil {
			return err
		}
	}
	if o.DatabaseURL != "" && slices.Contains(o.Only, "postgres") {
		return cli.Usage("--only postgres starts a server, and DATABASE_URL names one already")
	}
	if len(o.Brokers) > 0 && slices.Contains(o.Only, "kafka") {
		return cli.Usage("--only kafka starts a broker, and KAFKA_BROKERS names one already")
	}
	return nil
}

// tracesOf returns the address to which traces are sent; empty: none.
func tracesOf(o dev.Options) string {
	if !o.Trace.On() {
		return ""
	}
	target, err := o.Trace.Target()
	if err != nil {
		return "" // the installation reports the error when it starts
	}
	return target.Redacted()
}

func welcome(o dev.Options, url string) {
	key := ""
	if needed, err := dev.AdminKey(o); err == nil && needed != "" {
		key = " \\\n    -H \"Authorization: Bearer $JOBWEAVER_API_KEY\""
	}
	mails := "sent by SMTP_HOST"
	if o.Mails != nil {
		mails = fmt.Sprintf("%s/  (caught on port %d, not sent on)", o.Mails.URL(), o.Mails.Port())
	}
	traces := ""
	if to := tracesOf(o); to != "" {
		traces = "\n  traces    sent to " + to
	}
	fmt.Fprintf(o.Out, `
JobWeaver is up.

  page      %[1]s/
  jobs      %[1]s/api/jobs
  contract  %[1]s/api/openapi.yaml
  mails     %[3]s%[5]s
  data      %[2]s

  curl -X POST %[1]s/api/jobs -H 'Content-Type: application/json'%[4]s \
    -d '{"jobType":"SIMULATION","payload":{"steps":[{"type":"LOG","message":"hi"}]}}'

`, url, o.Dir, mails, key, traces)
	if url != cli.DefaultURL && url != "http://127.0.0.1:8080" {
		fmt.Fprintf(o.Out, "For the command line in another terminal:\n\n  export JOBWEAVER_URL=%s\n\n", url)
	}
}
