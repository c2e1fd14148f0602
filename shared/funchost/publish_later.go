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
	// backlogFor is how long publishing goes on altogether. All of it is state that a sweeper publishes again.
	backlogFor = time.Minute
	// backlogBytes is what may be on its way out after its answer was given; eventWeight is an event's without its data.
	backlogBytes = 32 << 20
	eventWeight  = 2 << 10
)

// backlog is what follows from events that were answered before it was published.
type backlog struct {
	room    *semaphore.Weighted // of bytes
	under   sync.WaitGroup
	trouble telemetry.Trouble

	ctx context.Context // of all publishing
	end context.CancelFunc
}

// newBacklog makes one whose publishing ends with ctx.
func newBacklog(ctx context.Context) *backlog {
	b := &backlog{
		room:    semaphore.NewWeighted(backlogBytes),
		trouble: telemetry.Trouble{What: "publish within a minute what follows from events; the sweepers publish it again"},
	}
	b.ctx, b.end = context.WithCancel(ctx)
	return b
}

// finish waits for what is under way, and ends it after a while.
func (b *backlog) finish(atMost time.Duration) {
	defer time.AfterFunc(atMost, b.end).Stop()
	b.under.Wait()
}

var errNoRoom = errors.New("too much is on its way to the sink")

// publishSoon publishes what follows from a transaction that has committed. It returns when that is done, or after
// PUBLISH_WAIT: the caller must have its answer before it gives up, or it brings the event again and the slow sink gets
// everything twice. What is not published then is so in the background; what does not fit there, or takes too long, is
// left to the sweepers.
func (h *host) publishSoon(ctx context.Context, say []jobevent.Item) {
	if len(say) == 0 {
		return
	}
	b := h.backlog
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), backlogFor)
	stop := context.AfterFunc(b.ctx, cancel)
	ended := make(chan error, 1)
	b.under.Go(func() {
		defer cancel()
		defer stop()
		ended <- h.publisher.insist(ctx, say)
	})
	wait := time.NewTimer(h.cfg.PublishWait)
	defer wait.Stop()
	select {
	case err := <-ended:
		b.trouble.Note(ctx, err)
		return
	case <-wait.C:
	}
	weight := weightOf(say)
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
		bytes += eventWeight + int64(len(events[i].Data()))
	}
	return bytes
}
