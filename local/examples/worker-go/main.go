// Command worker-go is a worker with its own job type, PRIMES. To make your own, change primes.go, and the name with
// which main registers it.
package main

import (
	"context"

	"github.com/jobweaver/jobweaver/functions/runjob"
	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/shared/funchost"
)

func main() { funchost.Main(runjob.Name, build) }

// build wires the worker. It has the settings of every worker (DATABASE_URL, KAFKA_BROKERS, QUEUES and so on), and
// those of its own job types.
func build(ctx context.Context, env *funchost.Env) (funchost.Function, error) {
	var own primesConfig
	if err := env.Load(&own); err != nil {
		return funchost.Function{}, err
	}
	types := handlers.NewRegistry() // runjob.Builtin(env) would start with the built-in job types
	if err := types.Register("PRIMES", primesSchema, own.primes); err != nil {
		return funchost.Function{}, err
	}
	return runjob.WireTypes(ctx, env, types)
}
