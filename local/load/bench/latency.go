package bench

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jobweaver/jobweaver/local/load/apiload"
	"github.com/jobweaver/jobweaver/local/load/figures"
	"github.com/jobweaver/jobweaver/local/load/rig"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// followed is how many jobs a second are followed to their end by GET ?wait=; more would be a load of its own.
const followed = 100

// payloadRate is the rate at which latency is measured with larger payloads.
const payloadRate = 100

// latency is part 2: single POSTs at steady rates. With only one rate, as in the quick run, only the first contestant
// is measured.
func (b *bench) latency(ctx context.Context) error {
	names := b.contestants()
	if len(b.Rates) == 1 {
		names = names[:1]
	}
	results, err := b.latencies(ctx, names, b.Rates)
	b.results.Latency = results
	return err
}

func (b *bench) latencies(ctx context.Context, names []string, rates []int) (results []figures.Latency, err error) {
	for _, name := range names {
		measured, err := b.systemLatency(ctx, name, rates)
		if err != nil {
			return nil, err
		}
		results = append(results, measured...)
	}
	for _, rate := range rates {
		measured, err := b.riverLatency(ctx, rate)
		if err != nil {
			return nil, err
		}
		b.printf("%-9s %4d/s  insert→start  %s", figures.Yardstick, rate, measured.Start)
		results = append(results, measured)
	}
	return results, nil
}

func (b *bench) riverLatency(ctx context.Context, rate int) (figures.Latency, error) {
	m := meter{server: b.server}
	var before, after reading
	var errBefore, errAfter error
	run, err := b.river.Latency(ctx, rig.RiverLoad{Rate: rate, For: b.LatencyFor, Pad: b.pad},
		func() { before, errBefore = m.read(ctx) }, func() { after, errAfter = m.read(ctx) })
	if err := errors.Join(err, errBefore, errAfter, b.server.Clear(context.WithoutCancel(ctx))); err != nil {
		return figures.Latency{}, err
	}
	jobs := jobsAt(rate, b.LatencyFor)
	l := after.since(before, jobs)
	n := float64(jobs)
	l.Uses[figures.Yardstick] = figures.Use{CPU: run.CPU * 1e6 / n, Switches: float64(run.Switches) / n}
	l.Contestant, l.Rate, l.Post, l.Start = figures.Yardstick, rate, run.Insert, run.Start
	return l, nil
}

func jobsAt(rate int, duration time.Duration) int { return int(duration.Seconds() * float64(rate)) }

func (b *bench) systemLatency(
	ctx context.Context, name string, rates []int,
) (results []figures.Latency, err error) {
	broker, err := b.broker(ctx, name)
	if err != nil {
		return nil, err
	}
	err = b.withSystem(ctx, b.server, broker, func(sys *system) error {
		if err := b.warm(ctx, sys); err != nil {
			return err
		}
		for _, rate := range slices.Sorted(slices.Values(rates)) {
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
	steady := apiload.Steady{Request: b.noop, Rate: rate, For: time.Second, Follow: followed}
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
	measured := after.since(before, jobsAt(rate, b.LatencyFor))
	measured.Rate, measured.Refused, measured.Post = rate, l.Refused, figures.Distribute(l.Post)
	measured.Start, measured.Completed = figures.Distribute(l.Start), figures.Distribute(l.Completed)
	return measured, err
}

// padBytes is how much larger the payload is in the part payload.
const padBytes = 1024

// payload measures throughput and latency again with larger payloads.
func (b *bench) payload(ctx context.Context) (err error) {
	defer func(noop string) { b.noop, b.pad = noop, 0 }(b.noop)
	b.noop, b.pad = padded(NoopType, jobevent.DefaultQueue, padBytes), padBytes
	result := &figures.Payload{Bytes: padBytes}
	if result.Throughput, err = b.throughputOf(ctx); err != nil {
		return err
	}
	result.Latency, err = b.latencies(ctx, b.contestants(), []int{payloadRate})
	b.results.Payload = result
	return err
}
