// Command retention runs the retention function.
package main

import (
	"context"

	"github.com/jobweaver/jobweaver/functions/retention"
	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/schedulerdb"
)

func main() {
	funchost.Main(retention.Name, func(ctx context.Context, env *funchost.Env) (funchost.Function, error) {
		var cfg schedulerdb.Config
		if err := env.Load(&cfg); err != nil {
			return funchost.Function{}, err
		}
		var keep schedulerdb.Retention
		if err := env.Load(&keep); err != nil {
			return funchost.Function{}, err
		}
		store, err := schedulerdb.Open(ctx, env.DatabaseURL(), cfg)
		if err != nil {
			return funchost.Function{}, err
		}
		env.OnClose(store.Close)
		f, err := retention.New(keep, store)
		if err != nil {
			return funchost.Function{}, err
		}
		return f.Host(), nil
	})
}
