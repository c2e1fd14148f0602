// Command pull runs the function that hands attempts to pull workers.
package main

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/jobweaver/jobweaver/functions/pull"
	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

func main() {
	funchost.Main(pull.Name, func(ctx context.Context, env *funchost.Env) (funchost.Function, error) {
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
		pulling, err := pull.New(cfg, store, prometheus.DefaultRegisterer)
		if err != nil {
			return funchost.Function{}, err
		}
		return pulling.Host(), nil
	})
}
