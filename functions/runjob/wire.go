package runjob

import (
	"context"

	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

// Wire builds the worker with the built-in job types from the environment of its process.
func Wire(ctx context.Context, env *funchost.Env) (funchost.Function, error) {
	types, err := Builtin(env)
	if err != nil {
		return funchost.Function{}, err
	}
	return WireTypes(ctx, env, types)
}

// Builtin returns a registry of the built-in job types with the settings of the environment. It is closed with env.
func Builtin(env *funchost.Env) (*handlers.Registry, error) {
	var cfg handlers.Config
	if err := env.Load(&cfg); err != nil {
		return nil, err
	}
	cfg.Outbound.Own = env.OwnPlaces()
	registry, err := handlers.Builtin(cfg)
	if err != nil {
		return nil, err
	}
	env.OnClose(registry.Close)
	return registry, nil
}

// WireTypes builds a worker with job types of its own: those of a new registry, or of Builtin and more.
func WireTypes(ctx context.Context, env *funchost.Env, types *handlers.Registry) (funchost.Function, error) {
	worker, err := FromEnv(ctx, env, types)
	if err != nil {
		return funchost.Function{}, err
	}
	return worker.Host(), nil
}

// FromEnv is New with the settings of the environment, and its database.
func FromEnv(ctx context.Context, env *funchost.Env, types *handlers.Registry) (*Function, error) {
	var cfg Config
	if err := env.Load(&cfg); err != nil {
		return nil, err
	}
	cfg.Queues, cfg.Kafka, cfg.Version = env.Config.Queues, env.Config.Kafka, funchost.Version
	cfg.Within = env.Config.ShutdownGrace
	cfg.KeepOff()
	store, err := workerdb.Open(ctx, env.DatabaseURL())
	if err != nil {
		return nil, err
	}
	env.OnClose(store.Close)
	return New(cfg, store, types, env.Metrics)
}
