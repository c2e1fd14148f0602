package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/jobweaver/jobweaver/functions"
	"github.com/jobweaver/jobweaver/functions/gateway"
	"github.com/jobweaver/jobweaver/functions/gateway/pullworkers"
	"github.com/jobweaver/jobweaver/functions/projection"
	"github.com/jobweaver/jobweaver/functions/pull"
	"github.com/jobweaver/jobweaver/functions/relay"
	"github.com/jobweaver/jobweaver/functions/runjob"
	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

var errNotReady = errors.New("starting, or standing by for another process")

// run wires the functions and runs them until ctx ends.
func (p *process) run(ctx context.Context) (err error) {
	if p.server != nil {
		defer func() { err = errors.Join(err, p.server.Stop()) }()
	}
	pulls, err := p.listenForPull()
	if err != nil {
		return err
	}
	var members []funchost.Member
	var closing []func()
	defer func() {
		for _, c := range slices.Backward(closing) {
			c()
		}
	}()
	front := p.front()
	for _, name := range p.chosen {
		cfg := p.cfg
		switch {
		case name == front:
		case name == pull.Name:
			cfg.Listener, cfg.TLS, cfg.MetricsPort = pulls, funchost.TLS{}, 0
			if p.PullPort != 0 {
				cfg.TLS = p.cfg.TLS
			}
		default:
			cfg.NoListen = true
		}
		env := funchost.NewEnv(cfg, p.at.ofFunction(name), func(cfg any) error {
			p.secrets.apply(cfg)
			p.connect(cfg, pulls)
			return nil
		})
		if name == runjob.Name || name == pull.Name { // their metrics have the same names
			env.Metrics = prometheus.WrapRegistererWith(prometheus.Labels{"component": name}, env.Metrics)
		}
		closing = append(closing, env.Close)
		f, err := functions.Find(name)(ctx, env)
		if err != nil && ctx.Err() != nil {
			return nil // it was stopped before it ran
		}
		if err != nil {
			return fmt.Errorf("start %s: %w", name, err)
		}
		members = append(members, funchost.Member{Function: f, Config: env.Config, StopAfter: stopAfter(name)})
	}
	if err := funchost.RunTogether(ctx, members); err != nil {
		return err
	}
	telemetry.Logger(ctx).InfoContext(ctx, "all functions stopped")
	return nil
}

// connect sets where functions of this process reach each other over HTTP, unless the environment does, and what they
// must know of the broker.
func (p *process) connect(cfg any, pulls net.Listener) {
	switch cfg := cfg.(type) {
	case *projection.Config:
		cfg.NewBroker = p.server != nil
	case *pullworkers.Config:
		if pulls != nil && p.PullPort == 0 {
			cfg.URLs = append(cfg.URLs, "http://"+pulls.Addr().String())
		}
	case *relay.Config:
		if unset("GATEWAY_URL") && p.front() == gateway.Name && p.cfg.TLS.CertFile == "" {
			cfg.GatewayURL = fmt.Sprintf("http://localhost:%d", p.cfg.Port)
		}
	}
}

// front returns the function that serves PORT: clients send requests to the gateway, and without it gateways to pull.
// Any other has only the probes and metrics of all.
func (p *process) front() string {
	for _, name := range []string{gateway.Name, pull.Name} {
		if slices.Contains(p.chosen, name) {
			return name
		}
	}
	return p.chosen[len(p.chosen)-1]
}

// listenForPull opens the port at which gateways reach pull beside a gateway; nil: pull is not here, or serves PORT.
func (p *process) listenForPull() (net.Listener, error) {
	if !slices.Contains(p.chosen, pull.Name) || p.front() == pull.Name {
		return nil, nil
	}
	address := "127.0.0.1:0"
	if p.PullPort != 0 {
		if unset("PULL_URL") {
			return nil, errors.New("PULL_PORT: is set, and PULL_URL is not, by which gateways reach it")
		}
		address = net.JoinHostPort(p.cfg.Host, fmt.Sprint(p.PullPort))
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("PULL_PORT: %w", err)
	}
	return listener, nil
}

// stopAfter returns the functions of which the drain is over before a function's own begins. Pull workers settle
// through the gateway. The others handle what the workers' last attempts and the gateway's last requests lead to.
func stopAfter(name string) []string {
	switch name {
	case pull.Name, runjob.Name, relay.Name:
		return nil
	case gateway.Name:
		return []string{pull.Name}
	}
	return []string{pull.Name, runjob.Name, relay.Name, gateway.Name}
}
