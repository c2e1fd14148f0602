// Command gateway runs the gateway function.
package main

import (
	"context"
	"time"

	"github.com/jobweaver/jobweaver/functions/gateway"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/funchost"
)

type settings struct {
	JobTypes []string `envconfig:"JOB_TYPES" desc:"job types beside the built-in ones; * allows every name"`
}

func main() {
	funchost.Main(gateway.Name, func(ctx context.Context, env *funchost.Env) (funchost.Function, error) {
		var own settings
		if err := env.Load(&own); err != nil {
			return funchost.Function{}, err
		}
		store, err := apidb.Open(ctx, env.DatabaseURL())
		if err != nil {
			return funchost.Function{}, err
		}
		env.OnClose(store.Close)
		return gateway.New(gateway.Config{
			Queues: env.Config.Queues, JobTypes: own.JobTypes, Broker: funchost.Reachable(env.Config),
			Linger: env.Config.ShutdownDelay + 100*time.Millisecond,
		}, store).Host(), nil
	})
}
