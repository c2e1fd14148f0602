package pull

import (
	"context"

	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

// Wire builds the function from the environment of its process.
func Wire(ctx context.Context, env *funchost.Env) (funchost.Function, error) {
	var cfg Config
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
	f, err := New(cfg, store, env.Metrics)
	if err != nil {
		return funchost.Function{}, err
	}
	return f.Host(), nil
}
