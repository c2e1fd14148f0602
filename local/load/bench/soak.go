package bench

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/local/load/apiload"
	"github.com/jobweaver/jobweaver/local/load/figures"
	"github.com/jobweaver/jobweaver/local/load/proctree"
)

const (
	soakShare  = .7 // of the measured maximum
	soakProbes = 20 // single jobs a second that are followed
	soakBusy   = 64 // POSTs on their way at most
)

// soak is part 6: most of what the house can do, for long.
func (b *bench) soak(ctx context.Context) error {
	return b.withHouse(ctx, b.server, nil, func(h *house) error {
		rate, err := b.soakRate(ctx, h)
		if err != nil {
			return err
		}
		step := min(time.Minute, max(b.Soak/5, time.Second))
		result := &figures.Soak{Rate: rate, Batch: b.SoakBatch}
		b.results.Soak = result
		b.sayf("%v at %.0f jobs/s, %d in a POST", b.Soak, rate, b.SoakBatch)
		stream := &stream{api: h.api, rate: rate, batch: b.SoakBatch}
		both, running := errgroup.WithContext(ctx)
		streaming, enough := context.WithCancel(running)
		both.Go(func() error { return stream.run(streaming) })
		both.Go(func() error {
			defer enough()
			for begin := time.Now(); time.Since(begin) < b.Soak; {
				minute, err := b.minute(running, h, stream, step, begin)
				if err != nil {
					return err
				}
				b.sayf("%s", minuteLine(minute))
				result.Minutes = append(result.Minutes, minute)
			}
			return nil
		})
		return both.Wait()
	})
}

// soakRate warms the house and chooses: what was asked for, or a share of what was measured.
func (b *bench) soakRate(ctx context.Context, h *house) (float64, error) {
	if err := b.warm(ctx, h); err != nil || b.SoakRate > 0 {
		return b.SoakRate, err
	}
	if t := b.results.Throughput; t != nil && t.JobsPerS[embedded].Median > 0 {
		return soakShare * t.JobsPerS[embedded].Median, nil
	}
	round, err := b.timed(ctx, h, b.Settings.Jobs)
	return soakShare * round.JobsPerS, err
}

func (b *bench) minute(
	ctx context.Context, h *house, s *stream, step time.Duration, begin time.Time,
) (figures.Minute, error) {
	from, accepted, before := time.Now(), s.accepted.Load(), h.cpu()
	probes, err := h.api.Posts(ctx, apiload.Steady{Request: noop, Rate: soakProbes, For: step, Follow: soakProbes})
	if err != nil {
		return figures.Minute{}, err
	}
	took, after := time.Since(from).Seconds(), h.cpu()
	pending, err := h.api.Pending(ctx)
	if err != nil {
		return figures.Minute{}, err
	}
	minute := figures.Minute{
		Ended: time.Since(begin).Seconds(), JobsPerS: float64(s.accepted.Load()-accepted) / took,
		Post: figures.Distribute(probes.Post), Start: figures.Distribute(probes.Start),
		HouseMiB:    float64(proctree.Memory(h.Pid())) / mib,
		PostgresMiB: float64(proctree.Memory(h.server.Pid())) / mib,
		HouseCPU:    (after["house"] - before["house"]).Seconds() / took,
		PostgresCPU: (after["postgres"] - before["postgres"]).Seconds() / took, BacklogAtEnd: pending,
	}
	tables, err := h.server.Tables(ctx)
	for _, t := range tables {
		minute.DeadRows += t.Dead
		minute.TableBytes += t.Bytes
		minute.IndexBytes += t.IndexBytes
	}
	minute.BytesPerJob = float64(minute.TableBytes+minute.IndexBytes) / float64(max(s.accepted.Load(), 1))
	return minute, err
}

func minuteLine(m figures.Minute) string {
	return fmt.Sprintf("%4.0f s  %6.0f jobs/s  POST→start p50 %5.1f p99 %6.1f ms  house %4.0f MiB  PostgreSQL %5.0f MiB  "+
		"dead rows %7d  %5.0f bytes a job  %d pending", m.Ended, m.JobsPerS, m.Start.P50, m.Start.P99, m.HouseMiB,
		m.PostgresMiB, m.DeadRows, m.BytesPerJob, m.BacklogAtEnd)
}

// stream hands in batches at an even rate.
type stream struct {
	api      *apiload.API
	rate     float64
	batch    int // jobs in a POST
	accepted atomic.Int64
}

func (s *stream) run(ctx context.Context) error {
	body := apiload.Batch(noop, s.batch)
	all, posting := errgroup.WithContext(ctx)
	all.SetLimit(soakBusy)
	begin := time.Now()
	for i := 0; ; i++ {
		due := begin.Add(time.Duration(float64(i*s.batch) / s.rate * float64(time.Second)))
		if err := pass(posting, time.Until(due)); err != nil {
			return all.Wait()
		}
		all.Go(func() error {
			_, err := s.api.SubmitBatch(posting, body, s.batch)
			switch {
			case err == nil:
				s.accepted.Add(int64(s.batch))
			case errors.Is(err, apiload.ErrRefused) || ctx.Err() != nil:
				err = nil
			}
			return err
		})
	}
}
