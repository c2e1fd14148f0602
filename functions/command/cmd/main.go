// Command command runs the command function.
package main

import (
	"context"

	"github.com/jobweaver/jobweaver/functions/command"
	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/schedulerdb"
)

func main() {
	funchost.Main(command.Name, func(ctx context.Context, env *funchost.Env) (funchost.Function, error) {
		var cfg schedulerdb.Config
		if err := env.Load(&cfg); err != nil {
			return funchost.Function{}, err
		}
		store, err := schedulerdb.Open(ctx, env.DatabaseURL(), cfg)
		if err != nil {
			return funchost.Function{}, err
		}
		env.OnClose(store.Close)
		return command.New(store).Host(), nil
	})
}
