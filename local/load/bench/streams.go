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

// streams compares a house that many pages watch with the same one unwatched, in turn.
func (b *bench) streams(ctx context.Context) error {
	return b.withHouse(ctx, b.server, nil, func(h *house) error {
		if err := b.warm(ctx, h); err != nil {
			return err
		}
		var speed, house, core []float64
		for round := range b.Settings.Rounds {
			watchedFirst := round%2 == 1 // what comes first finds the house less warm
			plain, watched, err := b.watchedOrNot(ctx, h, b.burst, watchedFirst)
			if err != nil {
				return err
			}
			speed = append(speed, watched.jobsPerS/plain.jobsPerS)
			house = append(house, watched.house/plain.house)
			plain, watched, err = b.watchedOrNot(ctx, h, b.steady, watchedFirst)
			if err != nil {
				return err
			}
			core = append(core, (watched.house-plain.house)*streamRate/1e6)
			b.sayf("a burst: %.2f as fast, %.2f of the house's CPU; %d/s: %+.1f %% of a core, %d KiB a stream",
				speed[len(speed)-1], house[len(house)-1], streamRate, core[len(core)-1]*100, watched.read/openStreams/1024)
		}
		b.results.Streams = &figures.Streams{
			Open: openStreams, Rate: streamRate,
			Speed: figures.SpreadOf(speed), HouseCPU: figures.SpreadOf(house), Core: figures.SpreadOf(core),
		}
		return nil
	})
}

// load is a run of jobs on a house: how fast, and the house's processor time in µs a job.
type load struct {
	jobsPerS, house float64
	read            int64 // bytes of all streams
}

func (b *bench) watchedOrNot(
	ctx context.Context, h *house, run func(context.Context, *house) (load, error), watchedFirst bool,
) (plain, watched load, err error) {
	for _, watch := range []bool{watchedFirst, !watchedFirst} {
		if !watch {
			if plain, err = run(ctx, h); err != nil {
				return plain, watched, err
			}
			continue
		}
		open, err := h.api.OpenStreams(ctx, openStreams)
		if err != nil {
			return plain, watched, err
		}
		watched, err = run(ctx, h)
		watched.read = open.Close()
		if err != nil {
			return plain, watched, err
		}
	}
	return plain, watched, nil
}

func (b *bench) burst(ctx context.Context, h *house) (load, error) {
	round, err := b.timed(ctx, h, b.Settings.Jobs)
	return load{jobsPerS: round.JobsPerS, house: round.CPU["house"]}, err
}

func (b *bench) steady(ctx context.Context, h *house) (load, error) {
	before, from := h.cpu(), time.Now()
	_, err := h.api.Latency(ctx, apiload.Steady{Request: noop, Rate: streamRate, For: b.LatencyFor})
	jobs := int(streamRate * b.LatencyFor.Seconds())
	return load{jobsPerS: float64(jobs) / time.Since(from).Seconds(), house: perJob(before, h.cpu(), jobs)["house"]}, err
}
