package dev

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/functions/bulk"
	"github.com/jobweaver/jobweaver/functions/command"
	"github.com/jobweaver/jobweaver/functions/cron"
	"github.com/jobweaver/jobweaver/functions/dispatch"
	"github.com/jobweaver/jobweaver/functions/gateway"
	"github.com/jobweaver/jobweaver/functions/ingest"
	"github.com/jobweaver/jobweaver/functions/notify"
	"github.com/jobweaver/jobweaver/functions/outcome"
	"github.com/jobweaver/jobweaver/functions/projection"
	"github.com/jobweaver/jobweaver/functions/pull"
	"github.com/jobweaver/jobweaver/functions/relay"
	"github.com/jobweaver/jobweaver/functions/retention"
	"github.com/jobweaver/jobweaver/functions/runjob"
	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/functions/watchdog"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/funchost/envsettings"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/schedulerdb"
	"github.com/jobweaver/jobweaver/shared/secret"
	"github.com/jobweaver/jobweaver/shared/telemetry"
	"github.com/jobweaver/jobweaver/shared/workerdb"
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
		own:        append(slices.Clone(below.brokers), pgpool.Places(below.database)...),
	}
	if err := settings.furnishSecrets(o.Dir); err != nil {
		return err
	}
	stores := &stores{at: at, settings: settings, gatewayURL: o.url(public)}
	defer stores.close()
	if o.pullQueues() != nil {
		listener, err := net.Listen("tcp", "127.0.0.1:0") // for the gateway of this process only
		if err != nil {
			return fmt.Errorf("open the port of pull: %w", err)
		}
		defer func() { _ = listener.Close() }()
		stores.pulls = listener
	}
	if o.Trace == (telemetry.TraceConfig{}) {
		if err := settings.load(&o.Trace); err != nil {
			return err
		}
	}
	functions, err := stores.functions(ctx, o, below)
	if err != nil {
		return err
	}
	open, shut := context.WithCancel(ctx)
	all, open := errgroup.WithContext(open)
	for _, f := range functions {
		cfg := funchost.Config{
			Kafka: kafkaConfig(below.brokers), Queues: o.Queues,
			ShutdownGrace: grace, NoListen: true, Trace: o.Trace,
		}
		switch {
		case f.Name == pull.Name:
			cfg.NoListen, cfg.Listener = false, stores.pulls
		case f.HTTP != nil:
			cfg.NoListen, cfg.Listener, cfg.TLS = false, public, o.TLS
		}
		all.Go(func() error {
			if err := funchost.Run(open, cfg, f); err != nil {
				return fmt.Errorf("run %s: %w", f.Name, err)
			}
			return nil
		})
	}
	all.Go(func() error {
		defer shut()
		return use(open, o.url(public))
	})
	return all.Wait()
}

// stores are the databases, which each function opens as its own role.
type stores struct {
	at       addresses
	settings defaults
	pulls    net.Listener // for pull; nil: pull is not run
	closing  []func()

	gatewayURL string // on this machine
}

func (s *stores) api(ctx context.Context, function string) (*apidb.Store, error) {
	store, err := apidb.Open(ctx, s.at[function])
	if err == nil {
		s.closing = append(s.closing, store.Close)
	}
	return store, err
}

func (s *stores) scheduler(ctx context.Context, function string) (*schedulerdb.Store, error) {
	var cfg schedulerdb.Config
	if err := s.settings.load(&cfg); err != nil {
		return nil, err
	}
	store, err := schedulerdb.Open(ctx, s.at[function], cfg)
	if err == nil {
		s.closing = append(s.closing, store.Close)
	}
	return store, err
}

func (s *stores) close() {
	for _, closing := range slices.Backward(s.closing) {
		closing()
	}
}

func (s *stores) functions(ctx context.Context, o Options, below *base) ([]funchost.Function, error) {
	var all []funchost.Function
	for _, build := range []func(context.Context, Options, *base) (funchost.Function, error){
		s.gateway, s.projection, s.bulk, s.notify,
		s.scheduling(ingest.Name, func(store *schedulerdb.Store) funchost.Function { return ingest.New(store).Host() }),
		s.scheduling(dispatch.Name, func(store *schedulerdb.Store) funchost.Function { return dispatch.New(store).Host() }),
		s.scheduling(outcome.Name, func(store *schedulerdb.Store) funchost.Function { return outcome.New(store).Host() }),
		s.scheduling(command.Name, func(store *schedulerdb.Store) funchost.Function { return command.New(store).Host() }),
		s.scheduling(watchdog.Name, func(store *schedulerdb.Store) funchost.Function { return watchdog.New(store).Host() }),
		s.retention, s.cron, s.runjob, s.pull,
	} {
		function, err := build(ctx, o, below)
		if err != nil {
			return nil, err
		}
		if function.Name != "" {
			all = append(all, function)
		}
	}
	if len(o.Relay) == 0 {
		return all, nil // without an outbox no relay is needed
	}
	function, err := s.relay(ctx, o)
	return append(all, function), err
}

func (s *stores) relay(ctx context.Context, o Options) (funchost.Function, error) {
	var cfg relay.Config
	if err := s.settings.load(&cfg); err != nil {
		return funchost.Function{}, err
	}
	cfg.Databases = secret.AllOf(o.Relay...)
	if unset("GATEWAY_URL") {
		cfg.GatewayURL = s.gatewayURL
	}
	if !o.onLoopback() && !cfg.APIKey.IsSet() {
		key, _, err := adminKey(o.Dir)
		if err != nil {
			return funchost.Function{}, err
		}
		cfg.APIKey = secret.Of(key.Reveal())
	}
	relaying, err := relay.New(ctx, cfg)
	if err != nil {
		return funchost.Function{}, err
	}
	s.closing = append(s.closing, relaying.Close)
	return relaying.Host(), nil
}

// scheduling returns a builder of a function that needs only the scheduler's database.
func (s *stores) scheduling(
	function string, host func(*schedulerdb.Store) funchost.Function,
) func(context.Context, Options, *base) (funchost.Function, error) {
	return func(ctx context.Context, _ Options, _ *base) (funchost.Function, error) {
		store, err := s.scheduler(ctx, function)
		if err != nil {
			return funchost.Function{}, err
		}
		return host(store), nil
	}
}

func (s *stores) gateway(ctx context.Context, o Options, below *base) (funchost.Function, error) {
	var cfg gateway.Config
	if err := s.settings.load(cfg.Parts()...); err != nil {
		return funchost.Function{}, err
	}
	if cfg.Auth != gateway.AuthOff && !cfg.BootstrapKey.IsSet() {
		key, path, err := adminKey(o.Dir)
		if err != nil {
			return funchost.Function{}, err
		}
		cfg.BootstrapKey = secret.Of(key.Reveal())
		o.say("An admin's API key is kept in " + path + ": export JOBWEAVER_API_KEY=\"$(cat '" + path + "')\"")
	}
	cfg.Queues, cfg.JobTypes = o.Queues, o.types()
	if s.pulls != nil {
		cfg.Pull.URLs = []string{"http://" + s.pulls.Addr().String()}
	}
	host := funchost.Config{Kafka: kafkaConfig(below.brokers)}
	cfg.Broker = funchost.Reachable(host)
	redrive, closing, err := funchost.NewRedrive(host, gateway.Name)
	if err != nil {
		return funchost.Function{}, err
	}
	s.closing = append(s.closing, closing)
	cfg.Redrive = redrive
	cfg.Topics = funchost.NewQueueTopics(host)
	cfg.Lags, closing = funchost.NewLags(host)
	s.closing = append(s.closing, closing)
	store, err := s.api(ctx, gateway.Name)
	if err != nil {
		return funchost.Function{}, err
	}
	entry, err := gateway.New(cfg, store)
	if err != nil {
		return funchost.Function{}, err
	}
	return entry.Host(), nil
}

func (s *stores) bulk(ctx context.Context, _ Options, _ *base) (funchost.Function, error) {
	store, err := s.api(ctx, bulk.Name)
	if err != nil {
		return funchost.Function{}, err
	}
	return bulk.New(store).Host(), nil
}

func (s *stores) notify(ctx context.Context, _ Options, _ *base) (funchost.Function, error) {
	var cfg notify.Config
	if err := s.settings.load(cfg.Parts()...); err != nil {
		return funchost.Function{}, err
	}
	cfg.Grace = grace
	store, err := s.api(ctx, notify.Name)
	if err != nil {
		return funchost.Function{}, err
	}
	delivering, err := notify.New(cfg, store)
	if err != nil {
		return funchost.Function{}, err
	}
	return delivering.Host(), nil
}

func (s *stores) cron(ctx context.Context, o Options, _ *base) (funchost.Function, error) {
	var cfg cron.Config
	if err := s.settings.load(cfg.Parts()...); err != nil {
		return funchost.Function{}, err
	}
	cfg.Queues, cfg.JobTypes = o.Queues, o.types()
	store, err := s.api(ctx, cron.Name)
	if err != nil {
		return funchost.Function{}, err
	}
	scheduling, err := cron.New(cfg, store)
	if err != nil {
		return funchost.Function{}, err
	}
	return scheduling.Host(), nil
}

// types returns the job types besides the built-in ones.
func (o *Options) types() []string {
	return slices.AppendSeq(slices.Clone(o.JobTypes), maps.Keys(o.Handlers))
}

func (s *stores) projection(ctx context.Context, _ Options, _ *base) (funchost.Function, error) {
	var cfg projection.Config
	if err := s.settings.load(&cfg); err != nil {
		return funchost.Function{}, err
	}
	store, err := s.api(ctx, projection.Name)
	if err != nil {
		return funchost.Function{}, err
	}
	projecting, err := projection.New(cfg, store)
	if err != nil {
		return funchost.Function{}, err
	}
	return projecting.Host(), nil
}

func (s *stores) retention(ctx context.Context, _ Options, _ *base) (funchost.Function, error) {
	var keep schedulerdb.Retention
	if err := s.settings.load(&keep); err != nil {
		return funchost.Function{}, err
	}
	store, err := s.scheduler(ctx, retention.Name)
	if err != nil {
		return funchost.Function{}, err
	}
	retiring, err := retention.New(keep, store)
	if err != nil {
		return funchost.Function{}, err
	}
	return retiring.Host(), nil
}

func (s *stores) runjob(ctx context.Context, o Options, below *base) (funchost.Function, error) {
	var cfg runjob.Config
	if err := s.settings.load(cfg.Parts()...); err != nil {
		return funchost.Function{}, err
	}
	cfg.Queues, cfg.Kafka, cfg.Version = o.Queues, kafkaConfig(below.brokers), funchost.Version
	if o.WorkerQueues != nil {
		cfg.Queues = o.WorkerQueues
	}
	cfg.KeepOff()
	cfg.Grace = min(cfg.Grace, grace-5*time.Second)
	var types handlers.Config
	if err := s.settings.load(types.Parts()...); err != nil {
		return funchost.Function{}, err
	}
	store, err := workerdb.Open(ctx, s.at[runjob.Name])
	if err != nil {
		return funchost.Function{}, err
	}
	s.closing = append(s.closing, store.Close)
	registry, err := handlers.Builtin(types)
	if err != nil {
		return funchost.Function{}, err
	}
	s.closing = append(s.closing, registry.Close)
	for _, name := range slices.Sorted(maps.Keys(o.Handlers)) {
		if err := registry.Register(name, nil, o.Handlers[name]); err != nil {
			return funchost.Function{}, err
		}
	}
	metrics := o.Metrics
	if metrics == nil {
		metrics = prometheus.DefaultRegisterer
	}
	lent := &lentRegisterer{Registerer: metrics}
	s.closing = append(s.closing, lent.giveBack)
	worker, err := runjob.New(cfg, store, registry, lent)
	if err != nil {
		return funchost.Function{}, err
	}
	return worker.Host(), nil
}

// pull returns nil if no queue is for pull workers.
func (s *stores) pull(ctx context.Context, o Options, below *base) (funchost.Function, error) {
	if s.pulls == nil {
		return funchost.Function{}, nil
	}
	var cfg pull.Config
	if err := s.settings.load(cfg.Parts()...); err != nil {
		return funchost.Function{}, err
	}
	cfg.Queues, cfg.Kafka, cfg.Version = o.Queues, kafkaConfig(below.brokers), funchost.Version
	cfg.Grace = min(cfg.Grace, grace-5*time.Second)
	store, err := workerdb.Open(ctx, s.at[pull.Name])
	if err != nil {
		return funchost.Function{}, err
	}
	s.closing = append(s.closing, store.Close)
	pulling, err := pull.New(cfg, store, prometheus.NewRegistry()) // the other worker's metrics have the same names
	if err != nil {
		return funchost.Function{}, err
	}
	return pulling.Host(), nil
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
