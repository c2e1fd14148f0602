// Package hosted opens the scheduler's database for the functions that work on it.
package hosted

import (
	"context"

	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/schedulerdb"
)

// Open opens the database of a function's process with the settings of its environment. It is closed with env.
func Open(ctx context.Context, env *funchost.Env) (*schedulerdb.Store, error) {
	var cfg schedulerdb.Config
	if err := env.Load(&cfg); err != nil {
		return nil, err
	}
	store, err := schedulerdb.Open(ctx, env.DatabaseURL(), cfg)
	if err != nil {
		return nil, err
	}
	env.OnClose(store.Close)
	return store, nil
}
