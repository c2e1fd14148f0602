package bench

import (
	"context"
	"time"

	"github.com/jobweaver/jobweaver/local/load/apiload"
	"github.com/jobweaver/jobweaver/local/load/figures"
)

const (
	openStreams = 50
	streamRate  = 100 // jobs a second
)

// streams compares an installation that many pages watch with the same one unwatched, in turn.
func (b *bench) streams(ctx context.Context) error {
	return b.withSystem(ctx, b.server, nil, func(sys *system) error {
		if err := b.warm(ctx, sys); err != nil {
			return err
		}
		var speed, functions, core []float64
		for round := range b.Settings.Rounds {
			watchedFirst := round%2 == 1 // the first run finds the installation less warm
			plain, watched, err := b.watchedOrNot(ctx, sys, b.burst, watchedFirst)
			if err != nil {
				return err
			}
			speed = append(speed, watched.jobsPerS/plain.jobsPerS)
			functions = append(functions, watched.functions/plain.functions)
			plain, watched, err = b.watchedOrNot(ctx, sys, b.steady, watchedFirst)
			if err != nil {
				return err
			}
			core = append(core, (watched.functions-plain.functions)*streamRate/1e6)
			b.printf("a burst: %.2f as fast, %.2f of the functions' CPU; %d/s: %+.1f %% of a core, %d KiB a stream",
				speed[len(speed)-1], functions[len(functions)-1], streamRate, core[len(core)-1]*100, watched.read/openStreams/1024)
		}
		b.results.Streams = &figures.Streams{
			Open: openStreams, Rate: streamRate,
			Speed: figures.SpreadOf(speed), FunctionsCPU: figures.SpreadOf(functions), Core: figures.SpreadOf(core),
		}
		return nil
	})
}

// load is a run of jobs: how fast, and the processor time of the functions in µs a job.
type load struct {
	jobsPerS, functions float64
	read                int64 // bytes of all streams
}

func (b *bench) watchedOrNot(
	ctx context.Context, sys *system, run func(context.Context, *system) (load, error), watchedFirst bool,
) (plain, watched load, err error) {
	for _, watch := range []bool{watchedFirst, !watchedFirst} {
		if !watch {
			if plain, err = run(ctx, sys); err != nil {
				return plain, watched, err
			}
			continue
		}
		open, err := sys.api.OpenStreams(ctx, openStreams)
		if err != nil {
			return plain, watched, err
		}
		watched, err = run(ctx, sys)
		watched.read = open.Close()
		if err != nil {
			return plain, watched, err
		}
	}
	return plain, watched, nil
}

func (b *bench) burst(ctx context.Context, sys *system) (load, error) {
	round, err := b.timed(ctx, sys, b.Settings.Jobs)
	return load{jobsPerS: round.JobsPerS, functions: round.CPU["functions"]}, err
}

func (b *bench) steady(ctx context.Context, sys *system) (load, error) {
	before, from := sys.cpu(), time.Now()
	_, err := sys.api.Latency(ctx, apiload.Steady{Request: b.noop, Rate: streamRate, For: b.LatencyFor})
	jobs := int(streamRate * b.LatencyFor.Seconds())
	return load{
		jobsPerS:  float64(jobs) / time.Since(from).Seconds(),
		functions: perJob(before, sys.cpu(), jobs)["functions"],
	}, err
}
