package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/local/load/apiload"
	"github.com/jobweaver/jobweaver/local/load/figures"
	"github.com/jobweaver/jobweaver/shared/apikey"
)

// quietRate is how often a second the quiet owner does something.
const quietRate = 20

// neighbour is a case of the part neighbours: what a quiet owner notices of a noisy one.
type neighbour struct {
	name   string
	beside string // what the noisy owner does
	env    []string
	noise  func(context.Context, *neighbourhood) error // returns when it is there
	probe  func(context.Context, *neighbourhood) ([]time.Duration, error)
}

// neighbourhood is an installation with two owners.
type neighbourhood struct {
	*bench
	sys                 *system
	admin, noisy, quiet *apiload.API
	going               *errgroup.Group // what the noisy owner does until the end
	end                 context.Context //nolint:containedctx // the end of going
}

// neighbours measures what a quiet owner does, alone and then beside a noisy one.
func (b *bench) neighbours(ctx context.Context) error {
	b.pulls = true
	defer func() { b.pulls = false }()
	var failed []error
	for _, c := range neighbourCases {
		if len(b.Neighbours) > 0 && !slices.Contains(b.Neighbours, c.name) {
			continue
		}
		measured, err := b.neighbour(ctx, c)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil { // the others are measured all the same
			b.printf("%-12s %s", c.name, err)
			failed = append(failed, fmt.Errorf("%s: %w", c.name, err))
			continue
		}
		b.results.Neighbours = slices.DeleteFunc(b.results.Neighbours, func(n figures.Neighbour) bool {
			return n.Case == c.name
		})
		b.results.Neighbours = append(b.results.Neighbours, measured)
	}
	return errors.Join(failed...)
}

func (b *bench) neighbour(ctx context.Context, c neighbour) (measured figures.Neighbour, err error) {
	measured.Case, measured.Beside = c.name, c.beside
	sys := &system{server: b.server, dir: b.folder()}
	defer func() { err = errors.Join(err, b.tidy(context.WithoutCancel(ctx), sys)) }()
	admin := apikey.New().Reveal()
	env := append([]string{
		"AUTH=on", "BOOTSTRAP_API_KEY=" + admin, "SCHEDULE_LIMIT=10000", "OPERATION_LIMIT=1000",
	}, c.env...)
	err = b.running(ctx, sys, env, func(sys *system) (err error) {
		n := &neighbourhood{bench: b, sys: sys, admin: sys.api.As(admin)}
		var errNoisy, errQuiet error
		n.noisy, errNoisy = n.admin.Owned(ctx, "noisy")
		n.quiet, errQuiet = n.admin.Owned(ctx, "quiet")
		if err := errors.Join(errNoisy, errQuiet); err != nil {
			return err
		}
		var stop context.CancelFunc
		n.going, n.end = errgroup.WithContext(ctx)
		n.end, stop = context.WithCancel(n.end)
		defer func() { stop(); err = errors.Join(err, n.going.Wait()) }()
		for _, into := range []*figures.Distribution{nil, &measured.Alone, &measured.With} { // the first is not counted
			if into == &measured.With {
				if err := c.noise(ctx, n); err != nil {
					return fmt.Errorf("%s: %w", c.beside, err)
				}
			}
			seen, err := c.probe(ctx, n)
			if err != nil {
				return err
			}
			if into != nil {
				*into = figures.Distribute(seen)
			}
		}
		b.printf("%-12s alone   %s", c.name, measured.Alone)
		b.printf("%-12s beside  %s: %s", "", measured.With, c.beside)
		return nil
	})
	return measured, err
}

// often does something at quietRate for the window, whether or not it has ended, and returns how long each took.
func (n *neighbourhood) often(
	ctx context.Context, do func(context.Context, int) (time.Duration, error),
) ([]time.Duration, error) {
	took := make([]time.Duration, int(n.Window.Seconds()*quietRate))
	all, ctx := errgroup.WithContext(ctx)
	for i := range took {
		all.Go(func() (err error) { took[i], err = do(ctx, i); return err })
		if err := pass(ctx, time.Second/quietRate); err != nil {
			break
		}
	}
	return took, all.Wait()
}

// until ctx ends, on so many connections.
func (n *neighbourhood) goOn(connections int, do func(context.Context) error) {
	for range connections {
		n.going.Go(func() error {
			for n.end.Err() == nil {
				err := do(n.end)
				if err != nil && n.end.Err() == nil && !errors.Is(err, apiload.ErrRefused) {
					return err
				}
			}
			return nil
		})
	}
}

// starts returns a probe: how long after its POST, or after it is due, a job starts.
func starts(request string, due time.Duration) func(context.Context, *neighbourhood) ([]time.Duration, error) {
	return func(ctx context.Context, n *neighbourhood) ([]time.Duration, error) {
		return n.often(ctx, func(ctx context.Context, _ int) (time.Duration, error) {
			began := time.Now()
			id, err := n.quiet.Submit(ctx, fmt.Appendf(nil, request, began.UnixNano()))
			if err != nil {
				return 0, err
			}
			job, err := n.quiet.Completed(ctx, id)
			if err != nil || job.StartedAt == nil {
				return 0, errors.Join(err, errNotStarted)
			}
			return job.StartedAt.Sub(began) - due, nil
		})
	}
}

var errNotStarted = errors.New("a job shows no start")
