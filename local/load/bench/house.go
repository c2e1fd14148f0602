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

// house is a running house with all that belongs to it.
type house struct {
	*rig.House
	api    *apiload.API
	server *rig.Server
	broker *rig.Broker // nil: in the house's process
	dir    string
}

// withHouse runs use on a new house with empty databases and takes it down again. A contestant that is not
// measured does not run: an idle house would take its percent or two.
func (b *bench) withHouse(
	ctx context.Context, server *rig.Server, broker *rig.Broker, use func(*house) error,
) (err error) {
	h := &house{server: server, broker: broker, dir: b.folder()}
	defer func() { err = errors.Join(err, b.tidy(context.WithoutCancel(ctx), h)) }()
	h.House, err = rig.StartHouse(ctx, rig.HouseConfig{
		Dir: h.dir, Server: server, Broker: broker, Slots: b.Settings.Slots, SlotQueue: b.Settings.SlotQueue,
		Pull: b.pulls,
	})
	if err != nil {
		return err
	}
	h.api = apiload.New(h.URL)
	defer func() {
		h.api.Close()
		err = errors.Join(err, h.Stop())
	}()
	return use(h)
}

// tidy leaves the server and the broker as they were found, but warm.
func (b *bench) tidy(ctx context.Context, h *house) error {
	err := errors.Join(h.server.Clear(ctx), os.RemoveAll(h.dir))
	if h.broker != nil && h.broker == b.apache {
		err = errors.Join(err, h.broker.Clear())
	}
	return err
}

// withBroker runs use on a house whose broker is a process of its own, of either kind.
func (b *bench) withBroker(
	ctx context.Context, server *rig.Server, kind string, use func(*house) error,
) (err error) {
	if kind == apache {
		broker, err := b.broker(ctx, apache)
		if err != nil {
			return err
		}
		return b.withHouse(ctx, server, broker, use)
	}
	dir := b.folder()
	broker, err := rig.StartBroker(ctx, kind, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, broker.Stop(), os.RemoveAll(dir)) }()
	return b.withHouse(ctx, server, broker, use)
}

// warm has the house do what it will be timed at.
func (b *bench) warm(ctx context.Context, h *house) error {
	s := b.Settings
	if _, err := h.api.Throughput(ctx, noop, s.Warm, s.Clients, s.Batch); err != nil {
		return err
	}
	return h.server.Settle(ctx)
}

// cpu is the processor time used so far, by process.
func (h *house) cpu() map[string]time.Duration {
	used := map[string]time.Duration{
		"house": proctree.CPU(h.Pid()), "postgres": proctree.CPU(h.server.Pid()), "load": proctree.OwnCPU(),
	}
	if h.broker != nil {
		used["broker"] = proctree.CPU(h.broker.Pid())
	}
	return used
}

// perJob is what was used between two readings, in microseconds a job.
func perJob(before, after map[string]time.Duration, jobs int) map[string]float64 {
	micros := map[string]float64{}
	for process, used := range after {
		micros[process] = float64((used - before[process]).Microseconds()) / float64(jobs)
	}
	return micros
}
