package retention

import (
	"context"

	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/schedulerdb"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/hosted"
)

// Wire builds the function from the environment of its process.
func Wire(ctx context.Context, env *funchost.Env) (funchost.Function, error) {
	var keep schedulerdb.Retention
	if err := env.Load(&keep); err != nil {
		return funchost.Function{}, err
	}
	store, err := hosted.Open(ctx, env)
	if err != nil {
		return funchost.Function{}, err
	}
	f, err := New(keep, store)
	if err != nil {
		return funchost.Function{}, err
	}
	return f.Host(), nil
}
