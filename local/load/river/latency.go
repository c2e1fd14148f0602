package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

type latency struct {
	Rate     int          `json:"rate"`
	Insert   distribution `json:"insert"`
	Start    distribution `json:"start"` // from the scheduled instant of the insert until the handler runs
	CPU      float64      `json:"cpu_s"` // of this process, which inserts too
	Switches int64        `json:"switches"`
}

type distribution struct {
	N   int     `json:"n"`
	P50 float64 `json:"p50_ms"`
	P95 float64 `json:"p95_ms"`
	P99 float64 `json:"p99_ms"`
	Max float64 `json:"max_ms"`
}

// latency inserts one job after another at a steady rate, whether or not answers keep up.
func (b *bench) latency(ctx context.Context, rate int, duration time.Duration) (latency, error) {
	result := latency{Rate: rate}
	if _, err := b.steadily(ctx, rate, time.Second); err != nil { // warm, not counted
		return result, err
	}
	fmt.Println("begin")
	before, err := ownUsage()
	if err != nil {
		return result, err
	}
	two, err := b.steadily(ctx, rate, duration)
	if err != nil {
		return result, err
	}
	after, err := ownUsage()
	if err != nil {
		return result, err
	}
	result.CPU, result.Switches = (after.cpu - before.cpu).Seconds(), after.switches-before.switches
	result.Insert, result.Start = quantiles(two.inserts), quantiles(two.starts)
	return result, nil
}

type measured struct{ inserts, starts []time.Duration }

func (b *bench) steadily(ctx context.Context, rate int, duration time.Duration) (measured, error) {
	n := int(duration.Seconds() * float64(rate))
	inserts, starts := make([]time.Duration, n), make([]time.Duration, n)
	begin := time.Now().Add(10 * time.Millisecond)
	due := func(i int) time.Time { return begin.Add(time.Duration(i) * time.Second / time.Duration(rate)) }
	var received sync.WaitGroup
	received.Go(func() {
		for range n {
			select {
			case s := <-b.starts:
				starts[s.num] = s.at.Sub(due(s.num))
			case <-ctx.Done():
				return
			}
		}
	})
	all, inserting := errgroup.WithContext(ctx)
	for i := range n {
		select {
		case <-time.After(time.Until(due(i))):
		case <-inserting.Done():
			return measured{}, all.Wait()
		}
		all.Go(func() error {
			if _, err := b.client.Insert(inserting, stampArgs{Num: i, Pad: b.pad}, nil); err != nil {
				return fmt.Errorf("insert job: %w", err)
			}
			inserts[i] = time.Since(due(i))
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		return measured{}, err
	}
	received.Wait()
	return measured{inserts, starts}, ctx.Err()
}

func quantiles(d []time.Duration) distribution {
	slices.Sort(d)
	at := func(q float64) float64 {
		return float64(d[min(int(q*float64(len(d))), len(d)-1)].Microseconds()) / 1000
	}
	return distribution{N: len(d), P50: at(.5), P95: at(.95), P99: at(.99), Max: at(1)}
}

// usage returns the processor time that this process has used.
type usage struct {
	cpu      time.Duration
	switches int64 // of its threads
}

func ownUsage() (usage, error) {
	var read syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &read); err != nil {
		return usage{}, fmt.Errorf("read own usage: %w", err)
	}
	return usage{time.Duration(read.Utime.Nano() + read.Stime.Nano()), read.Nvcsw + read.Nivcsw}, nil
}
