package runjob

import (
	"context"
	"sync"
	"time"

	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// Run works until ctx ends. Then it claims no new attempts, lets running ones finish within the grace period, ends the
// others, publishes all outcomes, commits and leaves. It waits for an unavailable store or broker; while it stops, only
// as long as the grace period lasts. It returns nil.
func (f *Function) Run(ctx context.Context, publish funchost.Publish) error {
	work, endWork := context.WithCancel(context.WithoutCancel(ctx))
	defer endWork()
	defer close(f.left) // a handler that ignores its context may still save
	consuming, endConsuming := context.WithCancel(work)
	watching, endWatching := context.WithCancel(work)
	defer endConsuming()
	defer endWatching()

	var members, watchers, claimer, stages sync.WaitGroup
	members.Go(func() { f.consumers.run(consuming) })
	watchers.Go(func() { f.tailCancels(watching) })
	watchers.Go(func() { f.cancelAll(watching) })
	watchers.Go(func() { f.heartbeat(watching, publish) })
	watchers.Go(func() { f.logRunning(watching, publish) })
	watchers.Go(func() { f.cleanUp(watching) })
	stages.Go(func() { f.settleAll(work) })
	stages.Go(func() { f.saveAll(work) })
	stages.Go(func() { f.publishAll(work, publish) })
	claimer.Go(func() { f.claimAll(ctx, work) })
	slots := f.startPool(context.WithoutCancel(ctx)) // the pool ends running attempts
	telemetry.Logger(ctx).InfoContext(ctx, "worker started",
		"workerId", f.id, "queues", f.cfg.Queues, "slots", f.cfg.PoolSize)

	<-ctx.Done()
	telemetry.Logger(ctx).InfoContext(ctx, "worker stopping", "workerId", f.id, "grace", f.cfg.Grace)
	graceEnds := time.Now().Add(f.cfg.Grace)
	f.drain(context.WithoutCancel(ctx), slots)
	flushed := time.AfterFunc(max(0, time.Until(graceEnds))+f.timing.flushAtMost, endWork)
	defer flushed.Stop()
	claimer.Wait() // it had the grace period, and the pool decides at once what it still adds
	f.saves.close()
	f.finished.close()
	stages.Wait()
	endWatching()
	f.wishes.close()
	watchers.Wait()
	f.leave(context.WithoutCancel(ctx), publish)
	endConsuming()
	members.Wait()
	return nil
}

// startPool starts the slots, and returns a channel that is closed when all have ended.
func (f *Function) startPool(ctx context.Context) <-chan struct{} {
	var slots sync.WaitGroup
	for slot := range f.cfg.PoolSize {
		slots.Go(func() { f.work(ctx, slot) })
	}
	ended := make(chan struct{})
	go func() {
		slots.Wait()
		close(ended)
	}()
	return ended
}

// drain waits for running attempts, then ends their contexts, then decides their outcomes without them: a handler that
// ignores its context keeps its goroutine until the process ends.
func (f *Function) drain(ctx context.Context, slots <-chan struct{}) {
	f.pool.Stop()
	if f.ended(slots, f.cfg.Grace) {
		return
	}
	f.pool.EndRunning()
	if f.ended(slots, f.timing.stopPatience) {
		return
	}
	telemetry.Logger(ctx).WarnContext(ctx, "handlers do not end when the worker stops",
		"workerId", f.id, "handlers", f.pool.DecideRunning())
}

func (f *Function) ended(slots <-chan struct{}, within time.Duration) bool {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-slots:
		return true
	case <-timer.C:
		return false
	}
}

// leave settles attempts that an unanswered claim may have left open, and publishes that the worker is gone.
func (f *Function) leave(ctx context.Context, publish funchost.Publish) {
	ctx, cancel := context.WithTimeout(ctx, f.timing.leaveAtMost)
	defer cancel()
	left, err := f.store.Leave(ctx, f.id)
	if err != nil {
		telemetry.Logger(ctx).WarnContext(ctx, "worker leaves open attempts, which others will settle as lost",
			"workerId", f.id, "error", err)
	}
	events := f.appendHeartbeat(ctx, nil, f.nextHeartbeat(time.Now()))
	for _, outcome := range left {
		events = f.appendOutcome(ctx, events, outcome)
	}
	if err := publish(ctx, events); err != nil {
		telemetry.Logger(ctx).WarnContext(ctx, "last heartbeat not published", "workerId", f.id, "error", err)
	}
	telemetry.Logger(ctx).InfoContext(ctx, "worker left", "workerId", f.id)
}
