package dev

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/functions"
	"github.com/jobweaver/jobweaver/functions/gateway"
	"github.com/jobweaver/jobweaver/functions/gateway/pullworkers"
	"github.com/jobweaver/jobweaver/functions/pull"
	"github.com/jobweaver/jobweaver/functions/relay"
	"github.com/jobweaver/jobweaver/functions/runjob"
	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/funchost/envsettings"
	"github.com/jobweaver/jobweaver/shared/secret"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// grace is the grace period of the functions. A worker's handlers get most of it.
const grace = 15 * time.Second

// live runs all functions until use returns, ctx ends, or one of them fails.
func live(
	ctx context.Context, o Options, below *base, at addresses, public net.Listener,
	use func(ctx context.Context, url string) error,
) error {
	settings := defaults{
		callbackURL: o.url(public) + "/api/jobs/callback", reports: reportFolder(o.Dir), mails: o.Mails,
		onLoopback: o.onLoopback(),
		keyset:     o.Keyset,
	}
	if err := settings.furnishSecrets(o.Dir); err != nil {
		return err
	}
	running := &installation{o: o, at: at, settings: settings, brokers: below.brokers, public: public}
	defer running.close()
	if o.pullQueues() != nil {
		listener, err := net.Listen("tcp", "127.0.0.1:0") // for the gateway of this process only
		if err != nil {
			return fmt.Errorf("open the port of pull: %w", err)
		}
		defer func() { _ = listener.Close() }()
		running.pulls = listener
	}
	if o.Trace == (telemetry.TraceConfig{}) {
		if err := envsettings.Load(&o.Trace); err != nil {
			return err
		}
	}
	all, err := running.wire(ctx)
	if err != nil {
		return err
	}
	open, shut := context.WithCancel(ctx)
	group, open := errgroup.WithContext(open)
	for _, f := range all {
		cfg := f.env.Config
		cfg.Trace = o.Trace
		switch {
		case f.Name == pull.Name:
			cfg.NoListen, cfg.Listener = false, running.pulls
		case f.HTTP != nil:
			cfg.NoListen, cfg.Listener, cfg.TLS = false, public, o.TLS
		}
		group.Go(func() error {
			if err := funchost.Run(open, cfg, f.Function); err != nil {
				return fmt.Errorf("run %s: %w", f.Name, err)
			}
			return nil
		})
	}
	group.Go(func() error {
		defer shut()
		return use(open, o.url(public))
	})
	return group.Wait()
}

// installation has what the functions of an installation are wired with.
type installation struct {
	o        Options
	at       addresses // each function opens its database as its own role
	settings defaults
	brokers  []string
	public   net.Listener
	pulls    net.Listener // for pull; nil: pull is not run
	closing  []func()
}

func (i *installation) close() {
	for _, closing := range slices.Backward(i.closing) {
		closing()
	}
}

// wired is a function and the environment that it was built from.
type wired struct {
	funchost.Function

	env *funchost.Env
}

// wire builds the functions as their own processes do.
func (i *installation) wire(ctx context.Context) (all []wired, err error) {
	for _, w := range functions.All {
		if w.Name == pull.Name && i.pulls == nil || w.Name == relay.Name && len(i.o.Relay) == 0 {
			continue
		}
		env := funchost.NewEnv(funchost.Config{
			Kafka: i.o.kafkaConfig(i.brokers), Queues: i.o.Queues, ShutdownGrace: grace, NoListen: true,
			StatusEvents: funchost.StatusEvents(os.Getenv("STATUS_EVENTS")),
		}, i.at[w.Name], i.adjust)
		i.closing = append(i.closing, env.Close)
		switch w.Name {
		case runjob.Name:
			w.Wire = i.runjob
		case pull.Name:
			env.Metrics = prometheus.NewRegistry() // the other worker's metrics have the same names
		}
		function, err := w.Wire(ctx, env)
		if err != nil {
			return nil, err
		}
		all = append(all, wired{function, env})
	}
	return all, nil
}

// runjob wires the worker with further job types.
func (i *installation) runjob(ctx context.Context, env *funchost.Env) (funchost.Function, error) {
	if i.o.WorkerQueues != nil {
		env.Config.Queues = i.o.WorkerQueues
	}
	if i.o.Metrics != nil {
		env.Metrics = i.o.Metrics
	}
	lent := &lentRegisterer{Registerer: env.Metrics}
	env.Metrics = lent
	env.OnClose(lent.giveBack)
	types, err := runjob.Builtin(env)
	if err != nil {
		return funchost.Function{}, err
	}
	for _, name := range slices.Sorted(maps.Keys(i.o.Handlers)) {
		if err := types.Register(name, nil, i.o.Handlers[name]); err != nil {
			return funchost.Function{}, err
		}
	}
	return runjob.WireTypes(ctx, env, types)
}

// adjust sets what the functions of this installation have in common with no other, and the defaults of a laptop.
func (i *installation) adjust(cfg any) error {
	i.settings.apply(cfg)
	handling := grace - 5*time.Second
	switch cfg := cfg.(type) {
	case *gateway.Config:
		cfg.JobTypes = i.o.types()
		if cfg.Auth != gateway.AuthOff && !cfg.BootstrapKey.IsSet() {
			key, path, err := adminKey(i.o.Dir)
			if err != nil {
				return err
			}
			cfg.BootstrapKey = secret.Of(key.Reveal())
			i.o.show("An admin's API key is kept in " + path + ": export JOBWEAVER_API_KEY=\"$(cat '" + path + "')\"")
		}
	case *pullworkers.Config:
		if i.pulls != nil {
			cfg.URLs = []string{"http://" + i.pulls.Addr().String()}
		}
	case *runjob.Config:
		cfg.Grace = min(cfg.Grace, handling)
	case *pull.Config:
		cfg.Grace = min(cfg.Grace, handling)
	case *relay.Config:
		return i.adjustRelay(cfg)
	}
	return nil
}

func (i *installation) adjustRelay(cfg *relay.Config) error {
	cfg.Databases = secret.AllOf(i.o.Relay...)
	if unset("GATEWAY_URL") {
		cfg.GatewayURL = i.o.url(i.public)
	}
	if !i.o.onLoopback() && !cfg.APIKey.IsSet() {
		key, _, err := adminKey(i.o.Dir)
		if err != nil {
			return err
		}
		cfg.APIKey = secret.Of(key.Reveal())
	}
	return nil
}

// types returns the job types besides the built-in ones.
func (o *Options) types() []string {
	return slices.AppendSeq(slices.Clone(o.JobTypes), maps.Keys(o.Handlers))
}

// pullQueues returns the queues for pull workers; nil: none.
func (o *Options) pullQueues() []string {
	var cfg runjob.PullQueues
	if envsettings.Load(&cfg) != nil {
		return nil // the worker reports the error
	}
	return cfg.Of(o.Queues)
}

// lentRegisterer unregisters what a worker has registered, so that one process can run dev again.
type lentRegisterer struct {
	prometheus.Registerer
	registered []prometheus.Collector
}

// Register notes the collector.
func (l *lentRegisterer) Register(c prometheus.Collector) error {
	err := l.Registerer.Register(c)
	if err == nil {
		l.registered = append(l.registered, c)
	}
	return err
}

func (l *lentRegisterer) giveBack() {
	for _, c := range l.registered {
		l.Unregister(c)
	}
}
