package notify

import (
	"context"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/funchost"
)

// Wire builds the function from the environment of its process.
func Wire(ctx context.Context, env *funchost.Env) (funchost.Function, error) {
	var cfg Config
	if err := env.Load(&cfg); err != nil {
		return funchost.Function{}, err
	}
	cfg.Grace = env.Config.ShutdownGrace
	cfg.Outbound.Own = env.OwnPlaces()
	store, err := apidb.Open(ctx, env.DatabaseURL())
	if err != nil {
		return funchost.Function{}, err
	}
	env.OnClose(store.Close)
	f, err := New(cfg, store)
	if err != nil {
		return funchost.Function{}, err
	}
	return f.Host(), nil
}
