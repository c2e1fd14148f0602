// Command worker-go is a worker with its own job type, PRIMES. To make your own, change primes.go, and the name with
// which main registers it.
package main

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/jobweaver/jobweaver/functions/runjob"
	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

func main() { funchost.Main(runjob.Name, build) }

// build wires the worker. It has the settings of every worker (DATABASE_URL, KAFKA_BROKERS, QUEUES and so on), and
// those of its own job types.
func build(ctx context.Context, env *funchost.Env) (funchost.Function, error) {
	var none funchost.Function
	var cfg runjob.Config
	var own primesConfig
	if err := env.Load(&cfg, &own); err != nil {
		return none, err
	}
	cfg.Queues, cfg.Kafka, cfg.Version = env.Config.Queues, env.Config.Kafka, funchost.Version
	cfg.KeepOff()

	registry := handlers.NewRegistry() // handlers.Builtin would start with the built-in job types
	if err := registry.Register("PRIMES", primesSchema, own.primes); err != nil {
		return none, err
	}
	store, err := workerdb.Open(ctx, env.DatabaseURL())
	if err != nil {
		return none, err
	}
	env.OnClose(store.Close)
	worker, err := runjob.New(cfg, store, registry, prometheus.DefaultRegisterer)
	if err != nil {
		return none, err
	}
	return worker.Host(), nil
}
