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
		measured, err := b.houseLatency(ctx, name)
		if err != nil {
			return err
		}
		results = append(results, measured...)
	}
	for _, rate := range b.Rates {
		run, err := b.river.Latency(ctx, rate, b.LatencyFor)
		if err := errors.Join(err, b.server.Clear(context.WithoutCancel(ctx))); err != nil {
			return err
		}
		b.sayf("%-9s %4d/s  insert→start  %s", figures.Yardstick, rate, run.Start)
		results = append(results, figures.Latency{
			Contestant: figures.Yardstick, Rate: rate, Post: run.Insert, Start: run.Start,
		})
	}
	b.results.Latency = results
	return nil
}

func (b *bench) houseLatency(ctx context.Context, name string) (results []figures.Latency, err error) {
	broker, err := b.broker(ctx, name)
	if err != nil {
		return nil, err
	}
	err = b.withHouse(ctx, b.server, broker, func(h *house) error {
		if err := b.warm(ctx, h); err != nil {
			return err
		}
		for _, rate := range slices.Sorted(slices.Values(b.Rates)) {
			measured, err := b.latencyAt(ctx, h, rate)
			if err != nil {
				return err
			}
			measured.Contestant = name
			b.sayf("%-9s %4d/s  POST→start    %s", name, rate, measured.Start)
			results = append(results, measured)
		}
		return nil
	})
	return results, err
}

func (b *bench) latencyAt(ctx context.Context, h *house, rate int) (figures.Latency, error) {
	steady := apiload.Steady{Request: noop, Rate: rate, For: time.Second, Follow: followed}
	if _, err := h.api.Latency(ctx, steady); err != nil { // warm, not counted: connections are made
		return figures.Latency{}, err
	}
	steady.For = b.LatencyFor
	l, err := h.api.Latency(ctx, steady)
	return figures.Latency{
		Rate: rate, Post: figures.Distribute(l.Post), Start: figures.Distribute(l.Start),
		Completed: figures.Distribute(l.Completed), Refused: l.Refused,
	}, err
}
