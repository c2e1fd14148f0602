package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/local/load/apiload"
	"github.com/jobweaver/jobweaver/local/load/figures"
	"github.com/jobweaver/jobweaver/local/load/rig"
)

// few is the backlog that every other one is held against.
const few = 5_000

// settling is how long a rate may take to become steady.
const settling = 6 * time.Second

// probes is how many single POSTs a second are timed beside a backlog.
const probes = 50

type backlogCase struct {
	name               string
	waiting, scheduled int
	hold               bool // a transaction
}

// backlogCases begin and end with the one that the others are held against.
func (b *bench) backlogCases() []backlogCase {
	cases := []backlogCase{
		{name: "few", waiting: few},
		{name: "500 thousand", waiting: 500_000},
		{name: "5 million", waiting: 5_000_000},
		{name: "1 million scheduled", waiting: few, scheduled: 1_000_000},
		{name: "a transaction held open", waiting: few, hold: true},
		{name: "few again", waiting: few},
	}
	for i := range cases {
		cases[i].waiting = min(cases[i].waiting, b.BacklogMost)
		cases[i].scheduled = min(cases[i].scheduled, b.BacklogMost)
	}
	return cases
}

// backlog is part 3: the rate of a worker of its own while so much waits. What it does is replaced, so
// that a small backlog lasts as long as a large one, and all pay for the POSTs.
func (b *bench) backlog(ctx context.Context) error {
	cases := b.backlogCases()
	var results []figures.Backlog
	for _, c := range cases {
		result, err := b.backlogOf(ctx, c)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		results = append(results, result)
		b.sayf("%-24s %7.0f jobs/s  POST %s", c.name, result.JobsPerS, result.Post)
	}
	reference := (results[0].JobsPerS + results[len(results)-1].JobsPerS) / 2
	for i := range results {
		results[i].Ratio = results[i].JobsPerS / reference
	}
	b.results.Backlog = results
	return nil
}

func (b *bench) backlogOf(ctx context.Context, c backlogCase) (result figures.Backlog, err error) {
	err = b.withBroker(ctx, b.server, embedded, func(h *house) error {
		f := b.feeder(h, NoopType, c.waiting)
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
		if err := h.server.Settle(ctx); err != nil {
			return err
		}
		return b.dispatched(ctx, h, f, c, &result)
	})
	return result, err
}

func (b *bench) feeder(h *house, jobType string, waiting int) *feeder {
	return &feeder{
		api: h.api, server: h.server, request: request(jobType, rig.Queue), waiting: waiting,
		batch: min(b.Settings.Batch, 500), clients: b.Settings.Clients,
	}
}

// dispatched starts the worker and counts what it does.
func (b *bench) dispatched(
	ctx context.Context, h *house, f *feeder, c backlogCase, result *figures.Backlog,
) error {
	all := &workers{}
	var from, to time.Time
	err := fed(ctx, f, all, func(ctx context.Context) (err error) {
		worker, err := all.begin(ctx, h, "worker", b.Settings.Slots, b.Settings.SlotQueue)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, worker.Stop()) }()
		if c.hold {
			open, err := h.server.Hold(ctx)
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
		posts, err := h.api.Posts(ctx, apiload.Steady{Request: noop, Rate: probes, For: b.Window})
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
