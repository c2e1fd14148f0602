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

// soak is part 6: most of an installation's capacity, for a long time.
func (b *bench) soak(ctx context.Context) error {
	return b.withSystem(ctx, b.server, nil, func(sys *system) error {
		rate, err := b.soakRate(ctx, sys)
		if err != nil {
			return err
		}
		step := min(time.Minute, max(b.Soak/5, time.Second))
		result := &figures.Soak{Rate: rate, Batch: b.SoakBatch}
		b.results.Soak = result
		b.printf("%v at %.0f jobs/s, %d in a POST", b.Soak, rate, b.SoakBatch)
		stream := &stream{api: sys.api, request: b.noop, rate: rate, batch: b.SoakBatch}
		both, running := errgroup.WithContext(ctx)
		streaming, enough := context.WithCancel(running)
		both.Go(func() error { return stream.run(streaming) })
		both.Go(func() error {
			defer enough()
			for begin := time.Now(); time.Since(begin) < b.Soak; {
				minute, err := b.minute(running, sys, stream, step, begin)
				if err != nil {
					return err
				}
				b.printf("%s", minuteLine(minute))
				result.Minutes = append(result.Minutes, minute)
			}
			return nil
		})
		return both.Wait()
	})
}

// soakRate warms the installation and returns the rate of the options, or a share of the measured one.
func (b *bench) soakRate(ctx context.Context, sys *system) (float64, error) {
	if err := b.warm(ctx, sys); err != nil || b.SoakRate > 0 {
		return b.SoakRate, err
	}
	if t := b.results.Throughput; t != nil && t.JobsPerS[embedded].Median > 0 {
		return soakShare * t.JobsPerS[embedded].Median, nil
	}
	round, err := b.timed(ctx, sys, b.Settings.Jobs)
	return soakShare * round.JobsPerS, err
}

func (b *bench) minute(
	ctx context.Context, sys *system, s *stream, step time.Duration, begin time.Time,
) (figures.Minute, error) {
	from, accepted, before := time.Now(), s.accepted.Load(), sys.cpu()
	probes, err := sys.api.Posts(ctx, apiload.Steady{Request: b.noop, Rate: soakProbes, For: step, Follow: soakProbes})
	if err != nil {
		return figures.Minute{}, err
	}
	took, after := time.Since(from).Seconds(), sys.cpu()
	pending, err := sys.api.Pending(ctx)
	if err != nil {
		return figures.Minute{}, err
	}
	minute := figures.Minute{
		Ended: time.Since(begin).Seconds(), JobsPerS: float64(s.accepted.Load()-accepted) / took,
		Post: figures.Distribute(probes.Post), Start: figures.Distribute(probes.Start),
		FunctionsMiB: float64(proctree.Memory(sys.Pid())) / mib,
		PostgresMiB:  float64(proctree.Memory(sys.server.Pid())) / mib,
		FunctionsCPU: (after["functions"] - before["functions"]).Seconds() / took,
		PostgresCPU:  (after["postgres"] - before["postgres"]).Seconds() / took, BacklogAtEnd: pending,
	}
	tables, err := sys.server.Tables(ctx)
	for _, t := range tables {
		minute.DeadRows += t.Dead
		minute.TableBytes += t.Bytes
		minute.IndexBytes += t.IndexBytes
	}
	minute.BytesPerJob = float64(minute.TableBytes+minute.IndexBytes) / float64(max(s.accepted.Load(), 1))
	return minute, err
}

func minuteLine(m figures.Minute) string {
	return fmt.Sprintf("%4.0f s  %6.0f jobs/s  POST→start p50 %5.1f p99 %6.1f ms  functions %4.0f MiB  "+
		"PostgreSQL %5.0f MiB  "+
		"dead rows %7d  %5.0f bytes a job  %d pending", m.Ended, m.JobsPerS, m.Start.P50, m.Start.P99, m.FunctionsMiB,
		m.PostgresMiB, m.DeadRows, m.BytesPerJob, m.BacklogAtEnd)
}

// stream submits batches at an even rate.
type stream struct {
	api      *apiload.API
	request  string
	rate     float64
	batch    int // jobs in a POST
	accepted atomic.Int64
}

func (s *stream) run(ctx context.Context) error {
	body := apiload.Batch(s.request, s.batch)
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
