package funchost

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/retry"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// tickLoop is the function's own clock. It stops with ctx; a tick that is under way then may go on until work ends.
func (h *host) tickLoop(ctx, work context.Context) {
	wake := h.f.Wake
	wait := retry.Backoff(firstRetry, lastRetry)
	for ctx.Err() == nil {
		next, err := h.tick(work)
		if work.Err() != nil {
			return
		}
		h.ticking.Note(ctx, err)
		if err != nil {
			retry.Pause(ctx, wait.NextBackOff()) // not shortened by a wake-up, which does not depend on the error
			continue
		}
		wait.Reset()
		if !sleep(ctx, next, wake) {
			wake = nil
		}
	}
}

// sleep waits for a time, a wake-up or the end of ctx, whichever is first. It reports whether wake is still open: a
// closed channel would wake for ever.
func sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) (wakeable bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case _, wakeable = <-wake:
		return wakeable
	}
	return true
}

// tick calls the function's tick once, and publishes the events that follow. Two ticks never run at once, whether the
// clock or a ping starts them.
func (h *host) tick(ctx context.Context) (time.Duration, error) {
	if err := h.takeTurn(ctx); err != nil {
		return 0, err
	}
	defer h.endTurn()
	return h.tickInTurn(ctx)
}

func (h *host) takeTurn(ctx context.Context) error {
	select {
	case h.clock <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the tick before: %w", ctx.Err())
	}
}

func (h *host) endTurn() { <-h.clock }

func (h *host) tickInTurn(ctx context.Context) (time.Duration, error) {
	events, next, err := h.callTick(ctx)
	if err != nil {
		return 0, err
	}
	return next, h.publisher.insist(ctx, events)
}

// callTick calls Tick, and converts a panic to an error.
func (h *host) callTick(ctx context.Context) (events []jobevent.Item, next time.Duration, err error) {
	defer h.calls.Begin("tick")()
	began := time.Now()
	defer func() {
		if p := recover(); p != nil {
			err = &panicError{p, debug.Stack()}
		}
		h.meter.Ticked(time.Since(began), err)
	}()
	return h.f.Tick(ctx)
}

// listenAgain is how long Listen waits before it listens again to a database that became unavailable.
const listenAgain = time.Second

// Listen lets notifications of the database wake a clock until ctx ends. listen calls its argument when it begins and
// for each notification, and returns when it cannot go on. Without notifications the clock still ticks. wake has room
// for one value.
func Listen(ctx context.Context, wake chan<- struct{}, listen func(context.Context, func()) error) {
	trouble := telemetry.Trouble{What: "listen for wake-ups"}
	for {
		err := listen(ctx, func() {
			trouble.Note(ctx, nil)
			select {
			case wake <- struct{}{}:
			default:
			}
		})
		if ctx.Err() != nil {
			return
		}
		trouble.Note(ctx, err)
		if !retry.Pause(ctx, listenAgain) {
			return
		}
	}
}
