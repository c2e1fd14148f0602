// Command ingest runs the ingest function.
package main

import (
	"context"

	"github.com/jobweaver/jobweaver/functions/ingest"
	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/schedulerdb"
)

func main() {
	funchost.Main(ingest.Name, func(ctx context.Context, env *funchost.Env) (funchost.Function, error) {
		var cfg schedulerdb.Config
		if err := env.Load(&cfg); err != nil {
			return funchost.Function{}, err
		}
		store, err := schedulerdb.Open(ctx, env.DatabaseURL(), cfg)
		if err != nil {
			return funchost.Function{}, err
		}
		env.OnClose(store.Close)
		return ingest.New(store).Host(), nil
	})
}
