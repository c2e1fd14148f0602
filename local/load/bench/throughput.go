package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jobweaver/jobweaver/local/load/figures"
	"github.com/jobweaver/jobweaver/local/load/proctree"
	"github.com/jobweaver/jobweaver/local/load/rig"
)

// throughput is part 1: timed rounds of JobWeaver and River in turn.
func (b *bench) throughput(ctx context.Context) (err error) {
	b.results.Throughput, err = b.throughputOf(ctx)
	return err
}

func (b *bench) throughputOf(ctx context.Context) (*figures.Throughput, error) {
	names := b.contestants()
	result := &figures.Throughput{JobsPerS: map[string]figures.Spread{}, Ratios: map[string]figures.Spread{}}
	for _, name := range figures.Plan(b.Settings.Rounds, names) {
		watch := watchOthers()
		round, err := b.round(ctx, name)
		if err != nil {
			return nil, err
		}
		round.Others = watch()
		b.printf("%-9s %7.0f jobs/s  (%.2f s, all accepted after %.2f s)%s",
			name, round.JobsPerS, round.Seconds, round.Accepted, disturbed(round.Others))
		result.Rounds = append(result.Rounds, round)
	}
	for _, name := range names {
		result.Ratios[name] = figures.SpreadOf(figures.Ratios(result.Rounds, name))
	}
	for _, name := range append(names, figures.Yardstick) {
		result.JobsPerS[name] = figures.SpreadOf(figures.Rates(result.Rounds, name))
	}
	return result, nil
}

func (b *bench) round(ctx context.Context, name string) (round figures.Round, err error) {
	if name == figures.Yardstick {
		return b.riverRound(ctx)
	}
	broker, err := b.broker(ctx, name)
	if err != nil {
		return round, err
	}
	err = b.withSystem(ctx, b.server, broker, func(sys *system) error {
		if err := b.warm(ctx, sys); err != nil {
			return err
		}
		round, err = b.timed(ctx, sys, b.Settings.Jobs)
		return err
	})
	round.Contestant = name
	return round, err
}

// timed makes one timed run on an installation.
func (b *bench) timed(ctx context.Context, sys *system, jobs int) (figures.Round, error) {
	before, databases := sys.cpu(), proctree.Databases(sys.server.Pid())
	took, err := sys.api.Throughput(ctx, b.noop, jobs, b.Settings.Clients, b.Settings.Batch)
	if err != nil {
		return figures.Round{}, err
	}
	return figures.Round{
		Jobs: jobs, Seconds: took.Completed.Seconds(), Accepted: took.Accepted.Seconds(),
		JobsPerS: float64(jobs) / took.Completed.Seconds(), CPU: perJob(before, sys.cpu(), jobs),
		Databases: perJob(databases, proctree.Databases(sys.server.Pid()), jobs),
	}, nil
}

func (b *bench) riverRound(ctx context.Context) (figures.Round, error) {
	s := b.Settings
	var before, used time.Duration
	var databases, after map[string]time.Duration
	run, err := b.river.Throughput(ctx, rig.RiverLoad{
		Jobs: s.Jobs, Warm: s.Warm, Pad: b.pad, Handler: s.Handler, Workers: s.RiverSlots,
	},
		func() { before, databases = proctree.CPU(b.server.Pid()), proctree.Databases(b.server.Pid()) },
		func() { used, after = proctree.CPU(b.server.Pid())-before, proctree.Databases(b.server.Pid()) })
	round := figures.Round{
		Contestant: figures.Yardstick, Jobs: s.Jobs, Seconds: run.Seconds, Accepted: run.Inserted, JobsPerS: run.JobsPerS,
		CPU: map[string]float64{
			"river":    run.CPU * 1e6 / float64(s.Jobs),
			"postgres": float64(used.Microseconds()) / float64(s.Jobs),
		},
		Databases: perJob(databases, after, s.Jobs),
	}
	return round, errors.Join(err, b.server.Clear(context.WithoutCancel(ctx)))
}

// watchOthers begins to count how many cores processes outside of the bench use.
func watchOthers() func() float64 {
	others := func() time.Duration { return proctree.Machine() - proctree.CPU(os.Getpid()) }
	from, before := time.Now(), others()
	return func() float64 { return max(0, (others()-before).Seconds()/time.Since(from).Seconds()) }
}

// disturbed warns of a figure that was measured while other processes were busy.
func disturbed(cores float64) string {
	if cores < .2 { // the kernel itself uses less than this
		return ""
	}
	return fmt.Sprintf("  beside others on %.1f cores", cores)
}
