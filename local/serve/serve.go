// Package serve runs functions of an installation in one process, in production: all of them, or some. Without brokers
// of its own an installation uses a broker within this process, and a second process stands by.
package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"github.com/jobweaver/jobweaver/infra/laptop/localkafka"
	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/funchost/envsettings"
	"github.com/jobweaver/jobweaver/shared/funchost/httpserver"
	"github.com/jobweaver/jobweaver/shared/funchost/probe"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// Options choose what a process runs.
type Options struct {
	Functions []string // names, and names of groups; empty: all
	NoMigrate bool     // the databases and roles are as jobweaver migrate has made them
	KeyFile   string   // takes the first API key; empty: it is printed
	Out       io.Writer
}

// process is what serve runs.
type process struct {
	Options
	Settings

	cfg     funchost.Config
	chosen  []string // functions
	at      addresses
	secrets secrets
	server  *localkafka.Server // nil: KAFKA_BROKERS names the brokers
}

// Run runs the functions until ctx ends and all are drained, or one of them fails, or another process has taken over.
// After that last error the functions still run: the caller has to end the process.
func Run(ctx context.Context, o Options) error {
	p, err := configure(o)
	if err != nil {
		return err
	}
	logger, err := telemetry.NewLogger(o.Out, p.cfg.LogLevel, p.cfg.LogFormat)
	if err != nil {
		return err
	}
	telemetry.SetDefault(logger)
	envsettings.WarnOfNearMisses(ctx)
	waiting, err := p.waitAtPort()
	if err != nil {
		return err
	}
	place, err := p.prepare(ctx)
	waiting()
	if ctx.Err() != nil {
		return nil // it was stopped before it ran
	}
	if err != nil {
		return err
	}
	return p.runWhile(ctx, place)
}

// configure reads the settings.
func configure(o Options) (*process, error) {
	p := &process{Options: o}
	var err error
	if p.cfg, err = funchost.LoadConfig(); err != nil {
		return nil, err
	}
	if unset("QUEUES") {
		p.cfg.Queues = []string{jobevent.DefaultQueue, "pull"}
	}
	if p.Settings, err = loadSettings(); err != nil {
		return nil, err
	}
	if p.BrokerMemory < leastMemory {
		return nil, fmt.Errorf("BROKER_MEMORY: %d is less than %d", p.BrokerMemory, leastMemory)
	}
	if err := check(p.cfg); err != nil {
		return nil, err
	}
	if p.chosen, err = choose(o.Functions, p.cfg.Queues); err != nil {
		return nil, err
	}
	if p.ownBroker() {
		if err := needsAll(p.chosen); err != nil {
			return nil, err
		}
	}
	p.at, err = places(p.Settings, p.chosen)
	return p, err
}

// leastMemory is the smallest BROKER_MEMORY, in MiB: some of the largest events.
const leastMemory = 16

// ownBroker reports whether the functions use a broker within this process.
func (p *process) ownBroker() bool { return len(p.cfg.Kafka.Brokers) == 0 }

// prepare makes the databases, and what the functions share, and returns when this process has its place in the
// installation.
func (p *process) prepare(ctx context.Context) (_ *holder, err error) {
	if p.Database.IsSet() && !p.NoMigrate {
		if err := migrate(ctx, p.layout, p.Database.Reveal()); err != nil {
			return nil, err
		}
	}
	place := newHolder(p.at[migrations.API.Name], !p.ownBroker())
	defer func() {
		if err != nil {
			place.close()
		}
	}()
	if err := place.await(ctx); err != nil {
		return nil, err
	}
	if p.secrets, err = keepSecrets(ctx, p.at[migrations.Worker.Name]); err != nil {
		return nil, err
	}
	if p.Database.IsSet() && !p.NoMigrate {
		if p.at, err = restrict(ctx, p.Settings, p.at); err != nil {
			return nil, err
		}
	}
	if slices.Contains(p.chosen, "gateway") {
		if err := firstKey(ctx, p.at[migrations.API.Name], p.KeyFile, p.Out); err != nil {
			return nil, err
		}
	}
	err = p.openBroker(ctx)
	debug.FreeOSMemory() // that migrations needed: measured, a tenth of what an idle process has
	return place, err
}

// openBroker starts the process's own broker, if there is no other, and makes the topics.
func (p *process) openBroker(ctx context.Context) (err error) {
	if p.ownBroker() {
		if p.server, err = localkafka.StartInMemory(int64(p.BrokerMemory) << 20); err != nil {
			return err
		}
		p.cfg.Kafka.Brokers, p.cfg.Kafka.Dial = p.server.Brokers(), p.server.Dial
		p.cfg.StatusEvents = funchost.NoStatus // no consumer of others reaches this broker
		// Clients have no other process until this one has ended: it neither sends them away nor waits for the last.
		p.cfg.Alone, p.cfg.ShutdownDelay = true, 0
	}
	return kafkaevent.CreateTopics(ctx, p.cfg.Kafka, jobevent.Topics(p.cfg.Queues))
}

// runWhile runs the functions while this process has its place.
func (p *process) runWhile(ctx context.Context, place *holder) error {
	holding, release := context.WithCancel(context.WithoutCancel(ctx))
	defer release()
	lost, ended := make(chan error, 1), make(chan error, 1)
	go func() { lost <- place.hold(holding) }()
	go func() { ended <- p.run(pgpool.Sharing(ctx)) }()
	select {
	case err := <-lost:
		return err
	case err := <-ended:
		release()
		stillHeld := <-lost // from here on only this goroutine uses the connection
		place.close()
		return errors.Join(err, stillHeld)
	}
}

// waitAtPort answers at PORT until the functions do: a port in use is an error at once, and probes and clients learn
// that this process is not ready.
func (p *process) waitAtPort() (stop func(), err error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(p.cfg.Host, strconv.Itoa(p.cfg.Port)))
	if err != nil {
		return nil, fmt.Errorf("HOST and PORT: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+probe.LivenessPath, func(w http.ResponseWriter, _ *http.Request) { probe.Answer(w, nil) })
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", strconv.Itoa(int(time.Second.Seconds())))
		probe.Answer(w, errNotReady)
	})
	server := httpserver.Defaults.Server()
	server.Handler = httpserver.Protect(mux)
	if server.TLSConfig, err = p.cfg.TLS.Server(); err != nil {
		_ = listener.Close()
		return nil, err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if server.TLSConfig != nil {
			_ = server.ServeTLS(listener, "", "")
			return
		}
		_ = server.Serve(listener)
	}()
	return func() {
		_ = server.Close()
		<-ended
	}, nil
}
