package bench

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/jobweaver/jobweaver/local/load/figures"
	"github.com/jobweaver/jobweaver/local/load/rig"
)

const (
	scaleSlots   = 12 // the default of POOL_SIZE
	scaleQueue   = 100
	scaleWaiting = 3_000
	pauseWindow  = 8 * time.Second // a rebalance takes far less
)

// scale is part 4: workers on handlers that sleep, each in a process of its own.
func (b *bench) scale(ctx context.Context) error {
	result := &figures.Scale{Slots: scaleSlots, SleepMs: int(SleepFor.Milliseconds())}
	err := b.withBroker(ctx, b.server, embedded, func(sys *system) error {
		f := b.feeder(sys, SleepType, scaleWaiting)
		if err := f.fill(ctx, f.request, scaleWaiting); err != nil {
			return err
		}
		f.handedIn.Store(scaleWaiting)
		all := &workers{}
		return fed(ctx, f, all, func(ctx context.Context) error {
			for _, n := range []int{1, 2, 4} {
				step, err := b.scaleStep(ctx, sys, all, n)
				if err != nil {
					return err
				}
				b.printf("%d workers  %6.0f jobs/s, %.2f of the ideal", n, step.JobsPerS, step.Fraction)
				result.Steps = append(result.Steps, step)
			}
			var err error
			result.Pauses, err = b.pauses(ctx, sys, all)
			return err
		})
	})
	b.results.Scale = result
	return err
}

// scaleStep measures n workers, which are started for it and stopped after it.
func (b *bench) scaleStep(ctx context.Context, sys *system, all *workers, n int) (step figures.ScaleStep, err error) {
	var team []*rig.Worker
	defer func() { err = errors.Join(err, stopAll(team)) }()
	for i := range n {
		worker, err := all.begin(ctx, sys, "worker"+strconv.Itoa(n)+"-"+strconv.Itoa(i+1), scaleSlots, scaleQueue)
		if worker != nil {
			team = append(team, worker)
		}
		if err != nil {
			return step, err
		}
	}
	if err := pass(ctx, settling); err != nil {
		return step, err
	}
	from := time.Now()
	if err := pass(ctx, b.Window); err != nil {
		return step, err
	}
	instants, err := all.instants()
	step = figures.ScaleStep{Workers: n, JobsPerS: figures.RateBetween(instants, from, time.Now())}
	step.Fraction = step.JobsPerS / (float64(n*scaleSlots) / SleepFor.Seconds())
	return step, err
}

// pauses measures the longest time without a completion while a third worker joins and leaves.
func (b *bench) pauses(ctx context.Context, sys *system, all *workers) (pauses []figures.ScalePause, err error) {
	var team []*rig.Worker
	defer func() { err = errors.Join(err, stopAll(team)) }()
	for i := range 2 {
		worker, err := all.begin(ctx, sys, "pair-"+strconv.Itoa(i+1), scaleSlots, scaleQueue)
		if worker != nil {
			team = append(team, worker)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := pass(ctx, settling); err != nil {
		return nil, err
	}
	var third *rig.Worker
	for _, c := range []struct {
		name string
		do   func() error
	}{
		{"steady", func() error { return nil }},
		{"a third worker joins", func() (err error) {
			third, err = all.begin(ctx, sys, "third", scaleSlots, scaleQueue)
			return err
		}},
		{"it leaves", func() error { return third.Stop() }},
	} {
		from := time.Now()
		if err := errors.Join(c.do(), pass(ctx, pauseWindow)); err != nil {
			return nil, err
		}
		instants, err := all.instants()
		if err != nil {
			return nil, err
		}
		gap := figures.LongestGap(instants, from, time.Now())
		b.printf("%-22s longest time without a completion %4d ms", c.name, gap.Milliseconds())
		pauses = append(pauses, figures.ScalePause{Case: c.name, Ms: float64(gap.Microseconds()) / 1000})
	}
	return pauses, nil
}

func stopAll(team []*rig.Worker) error {
	var errs []error
	for _, worker := range team {
		errs = append(errs, worker.Stop())
	}
	return errors.Join(errs...)
}
