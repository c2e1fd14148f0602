package bulk

import (
	"context"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/funchost"
)

// Wire builds the function from the environment of its process.
func Wire(ctx context.Context, env *funchost.Env) (funchost.Function, error) {
	store, err := apidb.Open(ctx, env.DatabaseURL())
	if err != nil {
		return funchost.Function{}, err
	}
	env.OnClose(store.Close)
	return New(store).Host(), nil
}
