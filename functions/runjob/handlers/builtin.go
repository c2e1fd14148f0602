package handlers

import "github.com/jobweaver/jobweaver/shared/jobspec"

// Config is what an operator may set of the built-in job types.
type Config struct {
	Simulation SimulationConfig
	Email      EmailConfig
}

// SimulationConfig is what SIMULATION may do.
type SimulationConfig struct {
	AllowPrivate bool `envconfig:"SIMULATION_ALLOW_PRIVATE" desc:"HTTP_CALL may reach private addresses"`
}

// Parts are the structs into which the environment is read, each by itself.
func (c *Config) Parts() []any { return []any{&c.Simulation, &c.Email} }

// Builtin is a registry of the built-in job types, to which others can be added.
func Builtin(cfg Config) (*Registry, error) {
	r := NewRegistry()
	simulation := NewSimulation(cfg.Simulation.AllowPrivate)
	if err := r.Register(jobspec.Simulation, nil, simulation.Run); err != nil {
		return nil, err
	}
	email, err := NewEmail(cfg.Email)
	if err != nil {
		return nil, err
	}
	return r, r.Register(jobspec.Email, nil, email.Run)
}
