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
	"github.com/jobweaver/jobweaver/functions/retention"
	"github.com/jobweaver/jobweaver/functions/runjob"
	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/functions/watchdog"
	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/schedulerdb"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

// grace is how long the functions may take to drain. A worker's handlers get most of it.
const grace = 15 * time.Second

// live runs all functions until use returns, ctx ends, or one of them fails.
func live(
	ctx context.Context, o Options, below *base, urls migrations.URLs, door net.Listener,
	use func(ctx context.Context, url string) error,
) error {
	told := defaults{
		callbackURL: "http://" + door.Addr().String() + "/api/jobs/callback", reports: reportFolder(o.Dir), mails: o.Mails,
	}
	if err := told.furnishSecrets(o.Dir); err != nil {
		return err
	}
	stores, err := openStores(ctx, urls, told)
	if err != nil {
		return err
	}
	defer stores.close()
	functions, err := stores.functions(o, below)
	if err != nil {
		return err
	}
	open, shut := context.WithCancel(ctx)
	all, open := errgroup.WithContext(open)
	for _, f := range functions {
		cfg := funchost.Config{
			Kafka: kafkaConfig(below.brokers), Queues: o.Queues,
			ShutdownGrace: grace, NoListen: true,
		}
		if f.HTTP != nil {
			cfg.NoListen, cfg.Listener = false, door
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
		return use(open, "http://"+door.Addr().String())
	})
	return all.Wait()
}

// stores are the databases, each opened once for the functions that own it.
type stores struct {
	api       *apidb.Store
	scheduler *schedulerdb.Store
	worker    *workerdb.Store

	told    defaults
	closing []func() // before the databases
}

func openStores(ctx context.Context, urls migrations.URLs, told defaults) (_ *stores, err error) {
	s := &stores{told: told}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if s.api, err = apidb.Open(ctx, urls.API); err != nil {
		return nil, err
	}
	var cfg schedulerdb.Config
	if err := s.told.load(&cfg); err != nil {
		return nil, err
	}
	if s.scheduler, err = schedulerdb.Open(ctx, urls.Scheduler, cfg); err != nil {
		return nil, err
	}
	s.worker, err = workerdb.Open(ctx, urls.Worker)
	return s, err
}

func (s *stores) close() {
	for _, closing := range slices.Backward(s.closing) {
		closing()
	}
	if s.worker != nil {
		s.worker.Close()
	}
	if s.scheduler != nil {
		s.scheduler.Close()
	}
	if s.api != nil {
		s.api.Close()
	}
}

func (s *stores) functions(o Options, below *base) ([]funchost.Function, error) {
	broker := funchost.Reachable(funchost.Config{Kafka: kafkaConfig(below.brokers)})
	worker, err := s.runjob(o, below)
	if err != nil {
		return nil, err
	}
	projecting, err := s.projection()
	if err != nil {
		return nil, err
	}
	retiring, err := s.retention()
	if err != nil {
		return nil, err
	}
	door, err := s.gateway(o, broker)
	if err != nil {
		return nil, err
	}
	scheduling, err := s.cron(o)
	if err != nil {
		return nil, err
	}
	delivering, err := s.notify()
	if err != nil {
		return nil, err
	}
	return []funchost.Function{
		door.Host(),
		projecting.Host(),
		bulk.New(s.api).Host(),
		delivering.Host(),
		ingest.New(s.scheduler).Host(),
		dispatch.New(s.scheduler).Host(),
		outcome.New(s.scheduler).Host(),
		command.New(s.scheduler).Host(),
		watchdog.New(s.scheduler).Host(),
		retiring.Host(),
		scheduling.Host(),
		worker,
	}, nil
}

func (s *stores) gateway(o Options, broker func(context.Context) error) (*gateway.Function, error) {
	var cfg gateway.Config
	if err := s.told.load(cfg.Parts()...); err != nil {
		return nil, err
	}
	cfg.Queues, cfg.Broker = o.Queues, broker
	cfg.JobTypes = o.types()
	return gateway.New(cfg, s.api)
}

func (s *stores) notify() (*notify.Function, error) {
	var cfg notify.Config
	if err := s.told.load(cfg.Parts()...); err != nil {
		return nil, err
	}
	cfg.Grace = grace
	return notify.New(cfg, s.api)
}

func (s *stores) cron(o Options) (*cron.Function, error) {
	var cfg cron.Config
	if err := s.told.load(&cfg); err != nil {
		return nil, err
	}
	cfg.Queues, cfg.JobTypes = o.Queues, o.types()
	return cron.New(cfg, s.api)
}

// types is the job types beside the built-in ones.
func (o *Options) types() []string {
	return slices.AppendSeq(slices.Clone(o.JobTypes), maps.Keys(o.Handlers))
}

func (s *stores) projection() (*projection.Function, error) {
	var cfg projection.Config
	if err := s.told.load(&cfg); err != nil {
		return nil, err
	}
	return projection.New(cfg, s.api)
}

func (s *stores) retention() (*retention.Function, error) {
	var keep schedulerdb.Retention
	if err := s.told.load(&keep); err != nil {
		return nil, err
	}
	return retention.New(keep, s.scheduler)
}

func (s *stores) runjob(o Options, below *base) (funchost.Function, error) {
	var cfg runjob.Config
	if err := s.told.load(&cfg); err != nil {
		return funchost.Function{}, err
	}
	cfg.Queues, cfg.Kafka, cfg.Version = o.Queues, kafkaConfig(below.brokers), funchost.Version
	if o.WorkerQueues != nil {
		cfg.Queues = o.WorkerQueues
	}
	cfg.Grace = min(cfg.Grace, grace-5*time.Second)
	var types handlers.Config
	if err := s.told.load(types.Parts()...); err != nil {
		return funchost.Function{}, err
	}
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
	worker, err := runjob.New(cfg, s.worker, registry, metrics)
	if err != nil {
		return funchost.Function{}, err
	}
	return worker.Host(), nil
}
