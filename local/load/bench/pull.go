package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/local/load/apiload"
	"github.com/jobweaver/jobweaver/local/load/figures"
	"github.com/jobweaver/jobweaver/local/load/proctree"
	"github.com/jobweaver/jobweaver/local/load/rig"
)

const (
	pullRate    = 100 // of the latencies, jobs a second
	pullers     = 4   // of the throughput and the latency
	pullerSlots = 64
	idlePullers = 1000
	idleWait    = 30 * time.Second // the default wait of a claim
)

// pull compares jobs that pull workers run with jobs of the function runjob, and measures busy pull workers, and many
// idle ones.
func (b *bench) pull(ctx context.Context) error {
	b.pulls = true
	defer func() { b.pulls = false }()
	return b.withSystem(ctx, b.server, nil, func(sys *system) error {
		if err := b.warm(ctx, sys); err != nil {
			return err
		}
		m := &pullRun{bench: b, sys: sys, request: request(NoopType, rig.PullQueue)}
		m.result.Rate, m.result.Jobs, m.result.Pullers, m.result.Slots = pullRate, b.Settings.Jobs, pullers, pullerSlots
		if err := errors.Join(m.busy(ctx), m.idle(ctx)); err != nil {
			return err
		}
		b.results.Pull = &m.result
		return nil
	})
}

type pullRun struct {
	*bench
	sys     *system
	request string
	starts  apiload.Starts
	result  figures.Pull
}

// with runs use beside pull workers.
func (m *pullRun) with(ctx context.Context, n int, puller apiload.Puller, use func(context.Context) error) error {
	all, ctx := errgroup.WithContext(ctx)
	pulling, enough := context.WithCancel(ctx)
	for i := range n {
		one := puller
		one.Name, one.JobType = fmt.Sprintf("puller-%d", i), NoopType
		if n == idlePullers { // they have not all begun together
			one.FirstWait = time.Second + rand.N(idleWait-time.Second)
		}
		all.Go(func() error { return m.sys.api.Pull(pulling, one) })
	}
	all.Go(func() error {
		defer enough()
		return use(ctx)
	})
	return all.Wait()
}

func (m *pullRun) busy(ctx context.Context) error {
	puller := apiload.Puller{Slots: pullerSlots, Wait: idleWait, Starts: &m.starts}
	return m.with(ctx, pullers, puller, func(ctx context.Context) error {
		s := m.Settings
		if _, err := m.sys.api.Throughput(ctx, m.request, s.Warm, s.Clients, s.Batch); err != nil {
			return err
		}
		return errors.Join(m.latencies(ctx), m.throughput(ctx))
	})
}

func (m *pullRun) latencies(ctx context.Context) error {
	worker := apiload.Steady{Request: m.noop, Rate: pullRate}
	puller := apiload.Steady{Request: m.request, Rate: pullRate, Started: m.starts.At}
	for _, of := range []struct {
		load apiload.Steady
		into *figures.Distribution
		what string
	}{{worker, &m.result.Worker, "Go worker"}, {puller, &m.result.Puller, "pull worker"}} {
		for _, lasts := range []time.Duration{time.Second, m.LatencyFor} { // the first is not counted
			of.load.For = lasts
			l, err := m.sys.api.Latency(ctx, of.load)
			if err != nil {
				return err
			}
			*of.into = figures.Distribute(l.Start)
		}
		m.printf("%d/s  POST→start, %s  %s", pullRate, of.what, *of.into)
	}
	return nil
}

func (m *pullRun) throughput(ctx context.Context) error {
	s, before := m.Settings, m.sys.cpu()
	took, err := m.sys.api.Throughput(ctx, m.request, s.Jobs, s.Clients, s.Batch)
	if err != nil {
		return err
	}
	m.result.JobsPerS = float64(s.Jobs) / took.Completed.Seconds()
	m.result.CPU = perJob(before, m.sys.cpu(), s.Jobs)
	m.printf("%d pull workers of %d slots: %.0f jobs/s, CPU µs a job: %s", pullers, pullerSlots, m.result.JobsPerS,
		processes(m.result.CPU))
	return nil
}

// idle compares the installation with itself, since the gateway holds the claims as well as pull.
func (m *pullRun) idle(ctx context.Context) error {
	alone, aloneMiB, err := m.quiet(ctx)
	if err != nil {
		return err
	}
	return m.with(ctx, idlePullers, apiload.Puller{Slots: 1, Wait: idleWait}, func(ctx context.Context) error {
		core, memory, err := m.quiet(ctx)
		m.result.Idle, m.result.IdleCPU, m.result.IdleMiB = idlePullers, core-alone, memory-aloneMiB
		m.printf("%d idle pull workers: %.2f %% of a core and %.0f MiB more than %.2f %% and %.0f MiB", idlePullers,
			m.result.IdleCPU, m.result.IdleMiB, alone, aloneMiB)
		return err
	})
}

// quiet measures the functions for as long as a claim waits.
func (m *pullRun) quiet(ctx context.Context) (core, memory float64, err error) {
	if err := pass(ctx, settling); err != nil {
		return 0, 0, err
	}
	used, from := proctree.CPU(m.sys.Pid()), time.Now()
	if err := pass(ctx, idleWait); err != nil {
		return 0, 0, err
	}
	core = (proctree.CPU(m.sys.Pid()) - used).Seconds() / time.Since(from).Seconds() * 100
	return core, float64(proctree.Memory(m.sys.Pid())) / mib, nil
}
