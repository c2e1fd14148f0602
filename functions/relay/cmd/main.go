// Command relay runs the relay function.
package main

import (
	"context"

	"github.com/jobweaver/jobweaver/functions/relay"
	"github.com/jobweaver/jobweaver/shared/funchost"
)

func main() {
	funchost.MainWithoutDatabase(relay.Name, func(ctx context.Context, env *funchost.Env) (funchost.Function, error) {
		var cfg relay.Config
		if err := env.Load(&cfg); err != nil {
			return funchost.Function{}, err
		}
		function, err := relay.New(ctx, cfg)
		if err != nil {
			return funchost.Function{}, err
		}
		env.OnClose(function.Close)
		for _, setting := range function.Plain() {
			env.Plain(setting)
		}
		return function.Host(), nil
	})
}
