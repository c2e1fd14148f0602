package knative

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

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
	"github.com/jobweaver/jobweaver/functions/retention"
	"github.com/jobweaver/jobweaver/functions/runjob"
	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/functions/watchdog"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/kafkatest"
	"github.com/jobweaver/jobweaver/shared/pgtest"
	"github.com/jobweaver/jobweaver/shared/schedulerdb"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

var binaries = flag.String("knative.bin", "", "the folder of the functions' binaries; empty: this test's own is all of them")

// functionEnv makes this binary the process of the function that it names.
const functionEnv = "KNATIVETEST_FUNCTION"

func TestMain(m *testing.M) {
	if name := os.Getenv(functionEnv); name != "" {
		funchost.Main(name, wirings[name])
		return
	}
	pgtest.Main(m, kafkatest.IgnoreSarama())
}

// commandOf returns a function's program, with an environment without this process's settings.
func commandOf(function string) (*exec.Cmd, error) {
	if *binaries != "" {
		return exec.Command(filepath.Join(*binaries, function)), nil
	}
	if wirings[function] == nil {
		return nil, fmt.Errorf("there is no function %q", function)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = []string{functionEnv + "=" + function}
	return cmd, nil
}

type wiring = func(context.Context, *funchost.Env) (funchost.Function, error)

// wirings are the wirings of each functions/<name>/cmd.
var wirings = map[string]wiring{
	gateway.Name: onAPI(func(env *funchost.Env, store *apidb.Store) (hosted, error) {
		var cfg gateway.Config
		err := env.Load(&cfg)
		cfg.Queues, cfg.Broker = env.Config.Queues, funchost.Reachable(env.Config)
		return built(err, func() (hosted, error) {
			redrive, closing, err := funchost.NewRedrive(env.Config, gateway.Name)
			if err != nil {
				return nil, err
			}
			env.OnClose(closing)
			cfg.Redrive = redrive
			cfg.Lags, closing = funchost.NewLags(env.Config)
			env.OnClose(closing)
			return gateway.New(cfg, store)
		})
	}),
	projection.Name: onAPI(func(env *funchost.Env, store *apidb.Store) (hosted, error) {
		var cfg projection.Config
		err := env.Load(&cfg)
		cfg.Broker = env.Config.Sink != ""
		return built(err, func() (hosted, error) { return projection.New(cfg, store) })
	}),
	bulk.Name: onAPI(func(_ *funchost.Env, store *apidb.Store) (hosted, error) { return bulk.New(store), nil }),
	cron.Name: onAPI(func(env *funchost.Env, store *apidb.Store) (hosted, error) {
		var cfg cron.Config
		err := env.Load(&cfg)
		cfg.Queues = env.Config.Queues
		return built(err, func() (hosted, error) { return cron.New(cfg, store) })
	}),
	notify.Name: onAPI(func(env *funchost.Env, store *apidb.Store) (hosted, error) {
		var cfg notify.Config
		err := env.Load(&cfg)
		cfg.Grace = env.Config.ShutdownGrace
		return built(err, func() (hosted, error) { return notify.New(cfg, store) })
	}),
	ingest.Name:   onScheduler(func(_ *funchost.Env, s *schedulerdb.Store) (hosted, error) { return ingest.New(s), nil }),
	dispatch.Name: onScheduler(func(_ *funchost.Env, s *schedulerdb.Store) (hosted, error) { return dispatch.New(s), nil }),
	outcome.Name:  onScheduler(func(_ *funchost.Env, s *schedulerdb.Store) (hosted, error) { return outcome.New(s), nil }),
	command.Name:  onScheduler(func(_ *funchost.Env, s *schedulerdb.Store) (hosted, error) { return command.New(s), nil }),
	watchdog.Name: onScheduler(func(_ *funchost.Env, s *schedulerdb.Store) (hosted, error) { return watchdog.New(s), nil }),
	retention.Name: onScheduler(func(env *funchost.Env, s *schedulerdb.Store) (hosted, error) {
		var keep schedulerdb.Retention
		return built(env.Load(&keep), func() (hosted, error) { return retention.New(keep, s) })
	}),
	runjob.Name: wireWorker,
	pull.Name:   wirePull,
}

type hosted interface{ Host() funchost.Function }

func built(err error, build func() (hosted, error)) (hosted, error) {
	if err != nil {
		return nil, err
	}
	return build()
}

func onAPI(build func(*funchost.Env, *apidb.Store) (hosted, error)) wiring {
	return func(ctx context.Context, env *funchost.Env) (funchost.Function, error) {
		store, err := apidb.Open(ctx, env.DatabaseURL())
		if err != nil {
			return funchost.Function{}, err
		}
		env.OnClose(store.Close)
		return host(build(env, store))
	}
}

func onScheduler(build func(*funchost.Env, *schedulerdb.Store) (hosted, error)) wiring {
	return func(ctx context.Context, env *funchost.Env) (funchost.Function, error) {
		var cfg schedulerdb.Config
		if err := env.Load(&cfg); err != nil {
			return funchost.Function{}, err
		}
		store, err := schedulerdb.Open(ctx, env.DatabaseURL(), cfg)
		if err != nil {
			return funchost.Function{}, err
		}
		env.OnClose(store.Close)
		return host(build(env, store))
	}
}

func host(f hosted, err error) (funchost.Function, error) {
	if err != nil {
		return funchost.Function{}, err
	}
	return f.Host(), nil
}

func wireWorker(ctx context.Context, env *funchost.Env) (funchost.Function, error) {
	var cfg runjob.Config
	var builtin handlers.Config
	if err := env.Load(&cfg, &builtin); err != nil {
		return funchost.Function{}, err
	}
	cfg.Queues, cfg.Kafka, cfg.Version = env.Config.Queues, env.Config.Kafka, funchost.Version
	registry, err := handlers.Builtin(builtin)
	if err != nil {
		return funchost.Function{}, err
	}
	env.OnClose(registry.Close)
	store, err := workerdb.Open(ctx, env.DatabaseURL())
	if err != nil {
		return funchost.Function{}, err
	}
	env.OnClose(store.Close)
	return host(runjob.New(cfg, store, registry, prometheus.DefaultRegisterer))
}

func wirePull(ctx context.Context, env *funchost.Env) (funchost.Function, error) {
	var cfg pull.Config
	if err := env.Load(&cfg); err != nil {
		return funchost.Function{}, err
	}
	cfg.Queues, cfg.Kafka, cfg.Version = env.Config.Queues, env.Config.Kafka, funchost.Version
	cfg.Within = env.Config.ShutdownGrace
	store, err := workerdb.Open(ctx, env.DatabaseURL())
	if err != nil {
		return funchost.Function{}, err
	}
	env.OnClose(store.Close)
	return host(pull.New(cfg, store, prometheus.DefaultRegisterer))
}
