package bench

import (
	"context"
	"time"

	"github.com/jobweaver/jobweaver/local/load/figures"
	"github.com/jobweaver/jobweaver/local/load/proctree"
)

const idleFor = 10 * time.Second

// idle looks at a house that has come up and has nothing to do.
func (b *bench) idle(ctx context.Context) error {
	return b.withHouse(ctx, b.server, nil, func(h *house) error {
		if err := pass(ctx, settling); err != nil {
			return err
		}
		before, from := h.cpu(), time.Now()
		if err := pass(ctx, idleFor); err != nil {
			return err
		}
		after, took := h.cpu(), time.Since(from).Seconds()
		percent := func(process string) float64 { return (after[process] - before[process]).Seconds() / took * 100 }
		b.results.Idle = &figures.Idle{
			Seconds: took, HouseCPU: percent("house"), PostgresCPU: percent("postgres"),
			HouseMiB: float64(proctree.Memory(h.Pid())) / mib,
		}
		return nil
	})
}
