// Command notify runs the notify function.
package main

import (
	"context"

	"github.com/jobweaver/jobweaver/functions/notify"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/funchost"
)

func main() {
	funchost.Main(notify.Name, func(ctx context.Context, env *funchost.Env) (funchost.Function, error) {
		var cfg notify.Config
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
		function, err := notify.New(cfg, store)
		if err != nil {
			return funchost.Function{}, err
		}
		return function.Host(), nil
	})
}
