package bench

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/jobweaver/jobweaver/local/load/apiload"
	"github.com/jobweaver/jobweaver/local/load/proctree"
	"github.com/jobweaver/jobweaver/local/load/rig"
)

// system is a running installation with its broker and client.
type system struct {
	*rig.System
	api    *apiload.API
	server *rig.Server
	broker *rig.Broker // nil: in the process of the functions
	dir    string
}

// withSystem runs use on a new installation with empty databases and stops it again. A contestant that is not
// measured does not run: an idle installation takes a percent or two of a core.
func (b *bench) withSystem(
	ctx context.Context, server *rig.Server, broker *rig.Broker, use func(*system) error,
) (err error) {
	sys := &system{server: server, broker: broker, dir: b.folder()}
	defer func() { err = errors.Join(err, b.tidy(context.WithoutCancel(ctx), sys)) }()
	return b.running(ctx, sys, nil, use)
}

// running runs use while an installation runs with further settings. It finds what an earlier run of it has left.
func (b *bench) running(ctx context.Context, sys *system, env []string, use func(*system) error) (err error) {
	sys.System, err = rig.StartSystem(ctx, rig.SystemConfig{
		Dir: sys.dir, Server: sys.server, Broker: sys.broker, Slots: b.Settings.Slots, SlotQueue: b.Settings.SlotQueue,
		Handler: b.Settings.Handler,
		Pull:    b.pulls, Env: env,
	})
	if err != nil {
		return err
	}
	sys.api = apiload.New(sys.URL)
	defer func() {
		sys.api.Close()
		err = errors.Join(err, sys.Stop())
	}()
	return use(sys)
}

// tidy leaves the server and the broker as they were, but warm.
func (b *bench) tidy(ctx context.Context, sys *system) error {
	err := errors.Join(sys.server.Clear(ctx), os.RemoveAll(sys.dir))
	if sys.broker != nil && sys.broker == b.apache {
		err = errors.Join(err, sys.broker.Clear())
	}
	return err
}

// withBroker runs use on an installation whose broker is a process of its own, of either kind.
func (b *bench) withBroker(
	ctx context.Context, server *rig.Server, kind string, use func(*system) error,
) (err error) {
	if kind == apache {
		broker, err := b.broker(ctx, apache)
		if err != nil {
			return err
		}
		return b.withSystem(ctx, server, broker, use)
	}
	dir := b.folder()
	broker, err := rig.StartBroker(ctx, kind, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, broker.Stop(), os.RemoveAll(dir)) }()
	return b.withSystem(ctx, server, broker, use)
}

// warm runs untimed jobs like the timed ones.
func (b *bench) warm(ctx context.Context, sys *system) error {
	s := b.Settings
	if _, err := sys.api.Throughput(ctx, b.noop, s.Warm, s.Clients, s.Batch); err != nil {
		return err
	}
	return sys.server.Settle(ctx)
}

// cpu returns the processor time used so far, by process.
func (sys *system) cpu() map[string]time.Duration {
	used := map[string]time.Duration{
		"functions": proctree.CPU(sys.Pid()), "postgres": proctree.CPU(sys.server.Pid()), "load": proctree.OwnCPU(),
	}
	if sys.broker != nil {
		used["broker"] = proctree.CPU(sys.broker.Pid())
	}
	return used
}

// perJob returns the use between two readings, in microseconds a job.
func perJob(before, after map[string]time.Duration, jobs int) map[string]float64 {
	micros := map[string]float64{}
	for process, used := range after {
		micros[process] = float64((used - before[process]).Microseconds()) / float64(jobs)
	}
	return micros
}
