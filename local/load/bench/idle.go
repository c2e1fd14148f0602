package bench

import (
	"context"
	"time"

	"github.com/jobweaver/jobweaver/local/load/figures"
	"github.com/jobweaver/jobweaver/local/load/proctree"
)

const idleFor = 10 * time.Second

// idle measures an installation without jobs.
func (b *bench) idle(ctx context.Context) error {
	return b.withSystem(ctx, b.server, nil, func(sys *system) error {
		if err := pass(ctx, settling); err != nil {
			return err
		}
		before, from := sys.cpu(), time.Now()
		functions, postgres := proctree.Switches(sys.Pid()), proctree.Switches(sys.server.Pid())
		if err := pass(ctx, idleFor); err != nil {
			return err
		}
		after, took := sys.cpu(), time.Since(from).Seconds()
		percent := func(process string) float64 { return (after[process] - before[process]).Seconds() / took * 100 }
		b.results.Idle = &figures.Idle{
			Seconds: took, FunctionsCPU: percent("functions"), PostgresCPU: percent("postgres"),
			FunctionsWakeUps: float64(proctree.Switches(sys.Pid())-functions) / took,
			PostgresWakeUps:  float64(proctree.Switches(sys.server.Pid())-postgres) / took,
			FunctionsMiB:     float64(proctree.Memory(sys.Pid())) / mib,
		}
		return nil
	})
}
