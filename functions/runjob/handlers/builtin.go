package handlers

import (
	"errors"
	"fmt"

	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/outbound"
	"github.com/jobweaver/jobweaver/shared/webhook"
)

// Config has the settings of the built-in job types.
type Config struct {
	Outbound outbound.Config
	Webhook  webhook.Config
	Callback webhook.CallbackConfig
	Calls    CallsConfig
	Email    EmailConfig
	Report   ReportConfig
}

// Parts are the structs into which the environment is read, each by itself.
func (c *Config) Parts() []any {
	return []any{&c.Outbound, &c.Webhook, &c.Callback, &c.Calls, &c.Calls.Public, &c.Email, &c.Report}
}

// Builtin returns a registry of the built-in job types, to which others can be added.
// Why receivers are treated so: docs/decisions/workers.md#built-in-types-keep-to-what-receivers-expect
func Builtin(cfg Config) (*Registry, error) {
	r := NewRegistry()
	if err := cfg.register(r); err != nil {
		r.Close()
		return nil, err
	}
	for _, jobType := range jobspec.Builtin() {
		if !r.Has(jobType) {
			r.Close()
			return nil, fmt.Errorf("job type %s is built in and has no handler", jobType)
		}
	}
	return r, nil
}

func (c *Config) register(r *Registry) error {
	client, err := outbound.New(c.Outbound)
	if err != nil {
		return err
	}
	r.OnClose(client.Close)
	caller, err := NewCaller(client, c.Webhook, c.Callback, c.Calls)
	if err != nil {
		return err
	}
	email, err := NewEmail(c.Email)
	if err != nil {
		return err
	}
	report, err := NewReport(c.Report)
	if err != nil {
		return err
	}
	r.OnClose(report.Close)
	return errors.Join(
		r.Register(jobspec.Simulation, nil, NewSimulation(client).Run),
		r.Register(jobspec.Email, nil, email.Run),
		r.Register(jobspec.Report, nil, report.Run),
		r.Register(jobspec.External, nil, NewExternal(caller).Run),
		r.Register(jobspec.FunctionCall, nil, NewFunction(caller).Run),
		r.Register(jobspec.Alert, nil, NewAlert(caller, email, c.Calls.Public.URL).Run),
	)
}
