// Command projection runs the projection function.
package main

import (
	"context"

	"github.com/jobweaver/jobweaver/functions/projection"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/funchost"
)

func main() {
	funchost.Main(projection.Name, func(ctx context.Context, env *funchost.Env) (funchost.Function, error) {
		var cfg projection.Config
		if err := env.Load(&cfg); err != nil {
			return funchost.Function{}, err
		}
		cfg.Broker = env.Config.Sink != ""
		store, err := apidb.Open(ctx, env.DatabaseURL())
		if err != nil {
			return funchost.Function{}, err
		}
		env.OnClose(store.Close)
		f, err := projection.New(cfg, store)
		if err != nil {
			return funchost.Function{}, err
		}
		return f.Host(), nil
	})
}
