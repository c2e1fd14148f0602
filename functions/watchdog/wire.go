package watchdog

import (
	"context"

	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/hosted"
)

// Wire builds the function from the environment of its process.
func Wire(ctx context.Context, env *funchost.Env) (funchost.Function, error) {
	store, err := hosted.Open(ctx, env)
	if err != nil {
		return funchost.Function{}, err
	}
	return New(store).Host(), nil
}
