package bench

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jobweaver/jobweaver/local/load/apiload"
	"github.com/jobweaver/jobweaver/local/load/figures"
)

// followed is how many jobs a second are followed to their end by GET ?wait=; more would be a load.
const followed = 100

// latency is part 2: single POSTs at steady rates. Where only one rate is asked for, as in the quick
// run, only the first contestant is measured.
func (b *bench) latency(ctx context.Context) error {
	names := b.contestants()
	if len(b.Rates) == 1 {
		names = names[:1]
	}
	var results []figures.Latency
	for _, name := range names {
		measured, err := b.systemLatency(ctx, name)
		if err != nil {
			return err
		}
		results = append(results, measured...)
	}
	for _, rate := range b.Rates {
		measured, err := b.riverLatency(ctx, rate)
		if err != nil {
			return err
		}
		b.printf("%-9s %4d/s  insert→start  %s", figures.Yardstick, rate, measured.Start)
		results = append(results, measured)
	}
	b.results.Latency = results
	return nil
}

func (b *bench) riverLatency(ctx context.Context, rate int) (figures.Latency, error) {
	m := meter{server: b.server}
	var before, after reading
	var errBefore, errAfter error
	run, err := b.river.Latency(ctx, rate, b.LatencyFor,
		func() { before, errBefore = m.read(ctx) }, func() { after, errAfter = m.read(ctx) })
	if err := errors.Join(err, errBefore, errAfter, b.server.Clear(context.WithoutCancel(ctx))); err != nil {
		return figures.Latency{}, err
	}
	jobs := jobsAt(rate, b.LatencyFor)
	uses, flushes := after.uses(before, jobs)
	n := float64(jobs)
	uses[figures.Yardstick] = figures.Use{CPU: run.CPU * 1e6 / n, Switches: float64(run.Switches) / n}
	return figures.Latency{
		Contestant: figures.Yardstick, Rate: rate, Post: run.Insert, Start: run.Start, Uses: uses, Flushes: flushes,
	}, nil
}

func jobsAt(rate int, duration time.Duration) int { return int(duration.Seconds() * float64(rate)) }

func (b *bench) systemLatency(ctx context.Context, name string) (results []figures.Latency, err error) {
	broker, err := b.broker(ctx, name)
	if err != nil {
		return nil, err
	}
	err = b.withSystem(ctx, b.server, broker, func(sys *system) error {
		if err := b.warm(ctx, sys); err != nil {
			return err
		}
		for _, rate := range slices.Sorted(slices.Values(b.Rates)) {
			measured, err := b.latencyAt(ctx, sys, rate)
			if err != nil {
				return err
			}
			measured.Contestant = name
			b.printf("%-9s %4d/s  POST→start    %s", name, rate, measured.Start)
			results = append(results, measured)
		}
		return nil
	})
	return results, err
}

func (b *bench) latencyAt(ctx context.Context, sys *system, rate int) (figures.Latency, error) {
	steady := apiload.Steady{Request: noop, Rate: rate, For: time.Second, Follow: followed}
	if _, err := sys.api.Latency(ctx, steady); err != nil { // warm, not counted: connections are made
		return figures.Latency{}, err
	}
	m := meter{server: sys.server, pids: map[string]int{"functions": sys.Pid()}}
	if sys.broker != nil {
		m.pids["broker"] = sys.broker.Pid()
	}
	before, err := m.read(ctx)
	if err != nil {
		return figures.Latency{}, err
	}
	steady.For = b.LatencyFor
	l, err := sys.api.Latency(ctx, steady)
	if err != nil {
		return figures.Latency{}, err
	}
	after, err := m.read(ctx)
	uses, flushes := after.uses(before, jobsAt(rate, b.LatencyFor))
	return figures.Latency{
		Rate: rate, Post: figures.Distribute(l.Post), Start: figures.Distribute(l.Start),
		Completed: figures.Distribute(l.Completed), Refused: l.Refused, Uses: uses, Flushes: flushes,
	}, err
}
