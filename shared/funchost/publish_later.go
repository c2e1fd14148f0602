package funchost

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

const (
	// backlogFor bounds the time of publishing in the background. A sweeper republishes the rest.
	backlogFor = time.Minute
	// backlogBytes bounds the events that are published after the answer; eventWeight is the weight of an event without
	// its data.
	backlogBytes = 32 << 20
	eventWeight  = 2 << 10
)

// backlog publishes events in the background, after the event from which they follow was answered.
type backlog struct {
	room    *semaphore.Weighted // in bytes
	under   sync.WaitGroup
	trouble telemetry.Trouble

	ctx context.Context // of all publishing
	end context.CancelFunc
}

// newBacklog returns a backlog whose publishing ends with ctx.
func newBacklog(ctx context.Context) *backlog {
	b := &backlog{
		room:    semaphore.NewWeighted(backlogBytes),
		trouble: telemetry.Trouble{What: "publish within a minute what follows from events; the sweepers publish it again"},
	}
	b.ctx, b.end = context.WithCancel(ctx)
	return b
}

// finish waits until publishing has ended, and ends it after a while.
func (b *backlog) finish(atMost time.Duration) {
	defer time.AfterFunc(atMost, b.end).Stop()
	b.under.Wait()
}

var errNoRoom = errors.New("too many events wait for the sink")

// publishSoon publishes the events that follow from a committed transaction. It returns when they are published, or
// after PUBLISH_WAIT: if the client gave up before it had an answer, it would send its event again, and a slow sink
// would receive everything twice. The rest is published in the background. Events that do not fit there, or take too
// long, are left to the sweepers.
// Why an answer does not wait longer: docs/decisions/events.md#a-slow-broker-gets-no-more-load
func (h *host) publishSoon(ctx context.Context, events []jobevent.Item) {
	if len(events) == 0 {
		return
	}
	b := h.backlog
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), backlogFor)
	stop := context.AfterFunc(b.ctx, cancel)
	ended := make(chan error, 1)
	b.under.Go(func() {
		defer cancel()
		defer stop()
		ended <- h.publisher.insist(ctx, events)
	})
	wait := time.NewTimer(h.cfg.PublishWait)
	defer wait.Stop()
	select {
	case err := <-ended:
		b.trouble.Note(ctx, err)
		return
	case <-wait.C:
	}
	weight := weightOf(events)
	if !b.room.TryAcquire(weight) {
		cancel()
		b.trouble.Note(ctx, errNoRoom)
		return
	}
	b.under.Go(func() {
		defer b.room.Release(weight)
		b.trouble.Note(ctx, <-ended)
	})
}

func weightOf(events []jobevent.Item) (bytes int64) {
	for i := range events {
		bytes += eventWeight + int64(events[i].Size())
	}
	return bytes
}
