// Command runjob runs the worker.
package main

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/jobweaver/jobweaver/functions/runjob"
	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

func main() {
	funchost.Main(runjob.Name, func(ctx context.Context, env *funchost.Env) (funchost.Function, error) {
		var cfg runjob.Config
		var builtin handlers.Config
		if err := env.Load(&cfg, &builtin); err != nil {
			return funchost.Function{}, err
		}
		cfg.Queues, cfg.Kafka, cfg.Version = env.Config.Queues, env.Config.Kafka, funchost.Version
		cfg.KeepOff()
		cfg.Within = env.Config.ShutdownGrace
		builtin.Outbound.Own = env.OwnPlaces()
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
		worker, err := runjob.New(cfg, store, registry, prometheus.DefaultRegisterer)
		if err != nil {
			return funchost.Function{}, err
		}
		return worker.Host(), nil
	})
}
