package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/local/load/apiload"
	"github.com/jobweaver/jobweaver/local/load/figures"
	"github.com/jobweaver/jobweaver/local/load/rig"
)

// few is the backlog with which the others are compared.
const few = 5_000

// settling is how long a rate may take to become steady.
const settling = 6 * time.Second

// probes is how many single POSTs a second are timed beside a backlog.
const probes = 50

type backlogCase struct {
	name               string
	waiting, scheduled int
	hold               bool // a transaction
	keys               int  // fairness keys of the waiting jobs; 0: they have none
}

func (b *bench) backlogCases() []backlogCase {
	cases := []backlogCase{
		{name: "500 thousand", waiting: 500_000},
		{name: "5 million", waiting: 5_000_000},
		{name: "1 million scheduled", waiting: few, scheduled: 1_000_000},
		{name: "a transaction held open", waiting: few, hold: true},
	}
	for i := range cases {
		cases[i].waiting = min(cases[i].waiting, b.BacklogMost)
		cases[i].scheduled = min(cases[i].scheduled, b.BacklogMost)
	}
	return cases
}

// backlog is part 3: the rate of a worker of its own with a given backlog. Completed jobs are replaced, so that a
// small backlog lasts as long as a large one, and all pay for the POSTs. The case with which another is
// compared runs before and after that one, because the speed of the machine changes within ten minutes.
func (b *bench) backlog(ctx context.Context) error {
	measure := func(c backlogCase) (figures.Backlog, error) {
		result, err := b.backlogOf(ctx, c)
		if err != nil {
			return result, fmt.Errorf("%s: %w", c.name, err)
		}
		b.printf("%-24s %7.0f jobs/s  POST %s", c.name, result.JobsPerS, result.Post)
		return result, nil
	}
	fewer := backlogCase{name: "few", waiting: min(few, b.BacklogMost)}
	before, err := measure(fewer)
	if err != nil {
		return err
	}
	fews, results := []figures.Backlog{before}, []figures.Backlog{}
	for _, c := range b.backlogCases() {
		result, err := measure(c)
		if err != nil {
			return err
		}
		after, err := measure(fewer)
		if err != nil {
			return err
		}
		result.Ratio = result.JobsPerS / ((before.JobsPerS + after.JobsPerS) / 2)
		fews, results, before = append(fews, after), append(results, result), after
	}
	slices.SortFunc(fews, func(a, b figures.Backlog) int { return cmp.Compare(a.JobsPerS, b.JobsPerS) })
	middle := fews[len(fews)/2]
	middle.Ratio = 1
	b.results.Backlog = append([]figures.Backlog{middle}, results...)
	return nil
}

func (b *bench) backlogOf(ctx context.Context, c backlogCase) (result figures.Backlog, err error) {
	err = b.withBroker(ctx, b.server, embedded, func(sys *system) error {
		f := b.feeder(sys, NoopType, c.waiting)
		f.keys = c.keys
		began := time.Now()
		if c.scheduled > 0 {
			later := strings.TrimSuffix(f.request, "}") + `,"delayMs":3600000}`
			if err := f.fill(ctx, later, c.scheduled); err != nil {
				return err
			}
		}
		if err := f.fill(ctx, f.request, c.waiting); err != nil {
			return err
		}
		f.handedIn.Store(int64(c.waiting))
		result = figures.Backlog{Case: c.name, Waiting: c.waiting, Scheduled: c.scheduled}
		result.FillPerS = float64(c.waiting+c.scheduled) / time.Since(began).Seconds()
		if err := sys.server.Settle(ctx); err != nil {
			return err
		}
		return b.dispatched(ctx, sys, f, c, &result)
	})
	return result, err
}

func (b *bench) feeder(sys *system, jobType string, waiting int) *feeder {
	return &feeder{
		api: sys.api, server: sys.server, request: request(jobType, rig.Queue), waiting: waiting,
		batch: min(b.Settings.Batch, 500), clients: b.Settings.Clients,
	}
}

// dispatched starts the worker and counts its completed jobs.
func (b *bench) dispatched(
	ctx context.Context, sys *system, f *feeder, c backlogCase, result *figures.Backlog,
) error {
	all := &workers{}
	var from, to time.Time
	err := fed(ctx, f, all, func(ctx context.Context) (err error) {
		worker, err := all.begin(ctx, sys, "worker", b.Settings.Slots, b.Settings.SlotQueue)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, worker.Stop()) }()
		if c.hold {
			open, err := sys.server.Hold(ctx)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, open.Close()) }()
			if err := pass(ctx, b.Hold-b.Window); err != nil {
				return err
			}
		} else if err := pass(ctx, settling); err != nil {
			return err
		}
		from = time.Now()
		posts, err := sys.api.Posts(ctx, apiload.Steady{Request: b.noop, Rate: probes, For: b.Window})
		to = time.Now()
		result.Post = figures.Distribute(posts.Post)
		return err
	})
	if err != nil {
		return err
	}
	instants, err := all.instants()
	result.Window, result.JobsPerS = to.Sub(from).Seconds(), figures.RateBetween(instants, from, to)
	return err
}

// fed runs use while the queue is kept filled.
func fed(ctx context.Context, f *feeder, w *workers, use func(context.Context) error) error {
	both, running := errgroup.WithContext(ctx)
	feeding, enough := context.WithCancel(running)
	both.Go(func() error { return f.run(feeding, w.done) })
	both.Go(func() error {
		defer enough()
		return use(running)
	})
	return both.Wait()
}
