package schedulerdb

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/emit"
)

// The clock does not run here. Every transaction that brings a job or makes room dispatches, so that no job waits while
// there is room, however the copies of the functions interleave.
func TestNoReadyJobWithRoomIsLeftForTheClock(t *testing.T) {
	h := openFixture(t, Config{Lease: time.Minute, MaxLost: 3}, patient+"pool_max_conns=9")
	h.heartbeat("w1", 3, []int32{0, 5})
	h.exec("UPDATE workers SET seen_at = now() + interval '1 h'")
	jobs := newJobs(300)
	ctx, stop := context.WithTimeout(t.Context(), 60*time.Second)
	defer stop()
	orders := make(chan emit.RunOrder, 10_000)
	published := func(effects emit.Effects, err error) {
		if err != nil && ctx.Err() == nil {
			t.Error(err)
		}
		for _, order := range effects.Runs {
			orders <- order
		}
	}
	var copies sync.WaitGroup
	for part := range 3 {
		copies.Go(func() {
			for mine := jobs[part*100 : part*100+100]; len(mine) > 0 && ctx.Err() == nil; {
				n := min(1+rand.IntN(7), len(mine))
				published(h.Ingest(ctx, append([]jobevent.Created{jobs[rand.IntN(300)]}, mine[:n]...)))
				mine = mine[n:]
			}
		})
		copies.Go(func() { // locks waiting jobs without changing them
			for n := 1; n < 50 && ctx.Err() == nil; n++ {
				var commands []jobevent.Command
				for range 10 {
					commands = append(commands, jobevent.Command{
						JobID: jobs[rand.IntN(300)].JobID, Number: n, Command: jobevent.CommandRetry,
					})
				}
				published(h.Command(ctx, commands))
			}
		})
	}
	var mu sync.Mutex
	ended := map[uuid.UUID]bool{}
	for range 3 {
		copies.Go(func() {
			for {
				select {
				case order := <-orders:
					effects, err := h.Settle(ctx, []Outcome{completed(jobevent.Created{JobID: order.JobID}, 1)})
					published(effects, err)
					mu.Lock()
					ended[order.JobID] = true
					all := len(ended) == len(jobs)
					mu.Unlock()
					if all {
						stop()
					}
				case <-ctx.Done():
					return
				}
			}
		})
	}
	copies.Wait()
	if len(ended) < len(jobs) {
		t.Errorf("%d of %d jobs have ended", len(ended), len(jobs))
	}
}
