package handlers

import "github.com/jobweaver/jobweaver/shared/jobspec"

// Config is what an operator may set of the built-in job types.
type Config struct {
	SimulationAllowPrivate bool `envconfig:"SIMULATION_ALLOW_PRIVATE" desc:"HTTP_CALL may reach private addresses"`
}

// Builtin is a registry of the built-in job types, to which others can be added.
func Builtin(cfg Config) (*Registry, error) {
	r := NewRegistry()
	simulation := NewSimulation(cfg.SimulationAllowPrivate)
	return r, r.Register(jobspec.Simulation, nil, simulation.Run)
}
