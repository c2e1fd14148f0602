// Command gateway runs the gateway function.
package main

import (
	"context"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/funchost"
)

func main() {
	// Without the pool each UUID is a system call, which is a seventh of the cost of a job in a batch. The setting
	// belongs to the process, and no UUID may be made before, so it is enabled here.
	uuid.EnableRandPool()
	funchost.Main(gateway.Name, func(ctx context.Context, env *funchost.Env) (funchost.Function, error) {
		var cfg gateway.Config
		if err := env.Load(&cfg); err != nil {
			return funchost.Function{}, err
		}
		for _, setting := range cfg.Pull.Plain() {
			env.Plain(setting)
		}
		cfg.Queues = env.Config.Queues
		cfg.Broker = funchost.Reachable(env.Config)
		redrive, closing, err := funchost.NewRedrive(env.Config, gateway.Name)
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
		function, err := gateway.New(cfg, store)
		if err != nil {
			return funchost.Function{}, err
		}
		return function.Host(), nil
	})
}
