// Command cron runs the cron function.
package main

import (
	"context"

	"github.com/jobweaver/jobweaver/functions/cron"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/funchost"
)

func main() {
	funchost.Main(cron.Name, func(ctx context.Context, env *funchost.Env) (funchost.Function, error) {
		var cfg cron.Config
		if err := env.Load(&cfg); err != nil {
			return funchost.Function{}, err
		}
		cfg.Queues = env.Config.Queues
		store, err := apidb.Open(ctx, env.DatabaseURL())
		if err != nil {
			return funchost.Function{}, err
		}
		env.OnClose(store.Close)
		function, err := cron.New(cfg, store)
		if err != nil {
			return funchost.Function{}, err
		}
		return function.Host(), nil
	})
}
