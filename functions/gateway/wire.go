package gateway

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
	for _, setting := range cfg.Pull.Plain() {
		env.Plain(setting)
	}
	cfg.Queues = env.Config.Queues
	cfg.Broker = funchost.Reachable(env.Config)
	redrive, closing, err := funchost.NewRedrive(env.Config, Name)
	if err != nil {
		return funchost.Function{}, err
	}
	env.OnClose(closing)
	cfg.Redrive = redrive
	cfg.Topics = funchost.NewQueueTopics(env.Config)
	cfg.Lags, closing = funchost.NewLags(env.Config)
	env.OnClose(closing)
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
