// Package dev runs a complete installation on a laptop: a private PostgreSQL, a broker, and all functions in one
// process, which communicate over TCP as they do anywhere.
package dev

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/infra/laptop/folderlock"
	"github.com/jobweaver/jobweaver/local/mailcatch"
	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/funchost/envsettings"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// Options choose the installation to run.
type Options struct {
	Dir         string            // data, which the next run finds again
	Host        string            // where the gateway listens; empty: on loopback
	Port        int               // of the gateway; 0 takes a free one
	Kafka       string            // embedded or apache
	Only        []string          // postgres, kafka: start these and no function
	DatabaseURL string            // of a server that is used instead of a private one
	Brokers     []string          // of a cluster that is used instead of a private one
	Layout      migrations.Layout // of its databases, and the name at the brokers
	Queues      []string
	JobTypes    []string     // that may be submitted besides the built-in ones
	TLS         funchost.TLS // of the gateway
	Keyset      string       // used if ENCRYPTION_KEYSET_FILE is not set; empty: nothing is sealed

	Handlers     map[string]handlers.Handler // for further job types, which the worker runs
	Relay        []string                    // addresses of databases with an outbox; if there are none, no relay runs
	WorkerQueues []string                    // served by the worker here; nil: all

	Mails *mailcatch.Server // catches mails if SMTP_HOST is not set; nil: none are caught. The caller closes it

	PostgresPort, KafkaPort int // of the private servers; 0 takes free ones

	Trace telemetry.TraceConfig // zero: from the environment

	Out     io.Writer
	Metrics prometheus.Registerer // for the worker; nil: the process's, which has room for one worker
}

func (o Options) wants(part string) bool { return len(o.Only) == 0 || slices.Contains(o.Only, part) }

// url returns the gateway's URL on this machine.
func (o Options) url(listener net.Listener) string {
	address, scheme := listener.Addr().String(), "http://"
	if at, err := netip.ParseAddrPort(address); err == nil && at.Addr().IsUnspecified() {
		address = "127.0.0.1:" + strconv.Itoa(int(at.Port()))
	}
	if o.TLS.CertFile != "" {
		scheme = "https://"
	}
	return scheme + address
}

// listen opens the gateway's port.
func (o Options) listen() (net.Listener, error) {
	if o.host() == "localhost" {
		return listenOnLoopback(o.Port)
	}
	return net.Listen("tcp", net.JoinHostPort(o.host(), strconv.Itoa(o.Port)))
}

func (o Options) host() string { return cmp.Or(o.Host, "localhost") }

// onLoopback reports whether only this machine reaches the gateway.
func (o Options) onLoopback() bool {
	at, err := netip.ParseAddr(o.host())
	return o.host() == "localhost" || err == nil && at.Unmap().IsLoopback()
}

func (o Options) show(text string) { fmt.Fprintln(o.Out, text) }

// progress prints a line about a slow step, as a comment if the output is a script.
func (o Options) progress(text string) {
	if len(o.Only) > 0 {
		text = "# " + text
	}
	o.show(text)
}

func (o Options) check() error {
	for _, part := range o.Only {
		if part != "postgres" && part != "kafka" {
			return fmt.Errorf("--only takes postgres and kafka, not %q", part)
		}
	}
	if o.Kafka != "embedded" && o.Kafka != "apache" {
		return fmt.Errorf("--kafka is embedded or apache, not %q", o.Kafka)
	}
	return nil
}

// Run brings the installation up, calls use with the gateway's address, and takes the installation down again when
// use returns or ctx ends. With Only it starts just those parts, and prints how to run the rest.
func Run(ctx context.Context, o Options, use func(ctx context.Context, url string) error) (err error) {
	if err := o.check(); err != nil {
		return err
	}
	envsettings.WarnOfNearMisses(ctx)
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return fmt.Errorf("resolve folder: %w", err)
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	lock, err := folderlock.Take(o.Dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	var listener net.Listener
	if len(o.Only) == 0 {
		// The port first: it is most likely in use, and the other steps take time.
		listener, err = o.listen()
		if err != nil {
			return fmt.Errorf("open the gateway's port (another one by --port): %w", err)
		}
		defer func() { _ = listener.Close() }() // already closed if the installation has run
	}
	below, err := raise(ctx, o)
	if ctx.Err() != nil && err != nil {
		return ctx.Err() // it was stopped before it was ready
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, below.stop()) }()
	if len(o.Only) > 0 {
		return onlyBase(ctx, o, below)
	}
	at, err := furnish(ctx, o, below)
	if ctx.Err() != nil && err != nil {
		return ctx.Err()
	}
	if err != nil {
		return err
	}
	if o.WorkerQueues != nil {
		others := slices.DeleteFunc(slices.Clone(o.Queues), func(q string) bool { return slices.Contains(o.WorkerQueues, q) })
		o.show(fmt.Sprintf("A worker of your own, for the other queues:\nexport DATABASE_URL='%s' KAFKA_BROKERS=%s QUEUES=%s",
			at["runjob"], strings.Join(below.brokers, ","), strings.Join(others, ",")))
	}
	return live(ctx, o, below, at, listener, use)
}

// furnish makes the databases, their tables and roles, and the topics.
func furnish(ctx context.Context, o Options, below *base) (at addresses, err error) {
	defer func() { err = below.explain(err) }()
	urls, err := o.Layout.Ensure(ctx, below.database)
	if err != nil {
		return nil, fmt.Errorf("make databases: %w", err)
	}
	for _, d := range o.databases(urls) {
		if err := migrations.Up(ctx, d.url, d.set, nil); err != nil {
			return nil, err
		}
	}
	at, err = admit(ctx, o, below, urls)
	if err != nil || len(below.brokers) == 0 {
		return at, err
	}
	return at, kafkaevent.CreateTopics(ctx, o.kafkaConfig(below.brokers), jobevent.Topics(o.Queues))
}

type database struct {
	set migrations.Set
	url string
}

func (o Options) databases(urls migrations.URLs) (all []database) {
	for _, set := range o.Layout.Sets() {
		all = append(all, database{set, urls.Of(set.Functions[0])})
	}
	return all
}

func (o Options) kafkaConfig(brokers []string) kafkaevent.Config {
	return kafkaevent.Config{Installation: o.Layout.Installation, Brokers: brokers, ReplicationFactor: 1}
}

// sayDefaults prints dev's default settings for the functions, for a gateway on the port.
func sayDefaults(o Options, port int) error {
	if err := new(defaults).furnishSecrets(o.Dir); err != nil {
		return err
	}
	o.show("export WEBHOOK_SECRETS_FILE='" + filepath.Join(o.Dir, webhookFile) + "'")
	o.show("export CALLBACK_SECRETS_FILE='" + filepath.Join(o.Dir, callbackFile) + "'")
	o.show(fmt.Sprintf("export CALLBACK_URL=http://127.0.0.1:%d/api/jobs/callback", port))
	o.show("export REPORT_BUCKET='" + reportFolder(o.Dir) + "'")
	o.show("export JOB_TYPES='" + strings.Join(o.types(), ",") + "'")
	o.show("export OUTBOUND_ALLOW=" + strings.Join(loopback, ","))
	o.show("export HOST=127.0.0.1 AUTH=off # or AUTH=on, and the first key from: " +
		"DATABASE_URL=<bin/gateway's> bin/jobweaver keys bootstrap")
	o.show(fmt.Sprintf("export JOBWEAVER_URL=http://127.0.0.1:%d", port))
	return nil
}

// onlyBase prints, as a shell script, how to run each function's own binary beside the started parts.
func onlyBase(ctx context.Context, o Options, below *base) error {
	port := cmp.Or(o.Port, 8080) // the first function is the gateway
	o.show("# For another terminal, in the folder that make build fills:")
	if len(below.brokers) > 0 {
		o.show("export KAFKA_BROKERS=" + strings.Join(below.brokers, ","))
	}
	if err := sayDefaults(o, port); err != nil {
		return err
	}
	if below.database != "" {
		at, err := furnish(ctx, o, below)
		if err != nil {
			return err
		}
		for _, d := range o.databases(migrations.URLs{}) {
			for _, function := range d.set.Functions {
				o.show(fmt.Sprintf("PORT=%d DATABASE_URL='%s' bin/%s &", port, at[function], function))
				port++
			}
		}
	}
	o.show("# kill $(jobs -p) stops the functions. Here, Ctrl-C stops what --only has started.")
	<-ctx.Done()
	return nil
}
