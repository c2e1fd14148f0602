package relay

import (
	"context"

	"github.com/jobweaver/jobweaver/shared/funchost"
)

// Wire builds the function from the environment of its process.
func Wire(ctx context.Context, env *funchost.Env) (funchost.Function, error) {
	var cfg Config
	if err := env.Load(&cfg); err != nil {
		return funchost.Function{}, err
	}
	f, err := New(ctx, cfg)
	if err != nil {
		return funchost.Function{}, err
	}
	env.OnClose(f.Close)
	for _, setting := range f.Plain() {
		env.Plain(setting)
	}
	return f.Host(), nil
}
