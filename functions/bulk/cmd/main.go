// Command bulk runs the bulk function.
package main

import (
	"context"

	"github.com/jobweaver/jobweaver/functions/bulk"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/funchost"
)

func main() {
	funchost.Main(bulk.Name, func(ctx context.Context, env *funchost.Env) (funchost.Function, error) {
		store, err := apidb.Open(ctx, env.DatabaseURL())
		if err != nil {
			return funchost.Function{}, err
		}
		env.OnClose(store.Close)
		return bulk.New(store).Host(), nil
	})
}
