package runjob

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/jobweaver/jobweaver/functions/runjob/offsets"
	"github.com/jobweaver/jobweaver/functions/runjob/pool"
	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/telemetry"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

// heartbeats decides when the next heartbeat is due. All fields but changed and latest belong to the goroutine of
// heartbeat.
type heartbeats struct {
	changed chan struct{}
	hurried chan struct{}
	number  int
	since   time.Time // the first of the heartbeats that have got through without a gap
	last    time.Time
	latest  chan jobevent.Heartbeat // to be published; a newer one replaces it
}

func newHeartbeats() *heartbeats {
	return &heartbeats{
		changed: make(chan struct{}, 1), hurried: make(chan struct{}, 1), latest: make(chan jobevent.Heartbeat, 1),
	}
}

// change notes that the next heartbeat differs from the last one.
func (b *heartbeats) change() {
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

// hurry notes that attempts wait for the next heartbeat.
func (b *heartbeats) hurry() {
	select {
	case b.hurried <- struct{}{}:
	default:
	}
}

// wait waits until the next heartbeat is due: soon after a failed one, otherwise after a change or after a while, but
// never too soon after the last. It returns false when ctx ends.
func (b *heartbeats) wait(ctx context.Context, t timing, failed bool) bool {
	soonest := t.heartbeatAtMost
	if failed {
		soonest = t.heartbeatAgain
	}
	least := time.NewTimer(min(t.heartbeatHurried, soonest))
	defer least.Stop()
	timer := time.NewTimer(soonest)
	defer timer.Stop()
	select {
	case <-least.C:
	case <-ctx.Done():
		return false
	}
	select {
	case <-timer.C:
	case <-b.hurried:
		return true
	case <-ctx.Done():
		return false
	}
	if failed {
		return true
	}
	timer.Reset(t.heartbeatAtLeast - t.heartbeatAtMost)
	select {
	case <-timer.C:
	case <-b.changed:
	case <-b.hurried:
	case <-ctx.Done():
		return false
	}
	return true
}

// unseen notes how long the database has not seen this worker, whatever the worker's clock has counted. Like a gap in
// the worker's heartbeats, a long time keeps it from reaping: other workers look as silent as it did.
func (b *heartbeats) unseen(d, silence time.Duration) {
	if d >= silence/2 {
		b.last = time.Time{}
	}
}

// got notes that a heartbeat that began at an instant got through. It reports whether this worker may reap. After a gap
// in its own heartbeats it may not: the cause may have been on its own side, or may have hit all workers. Half a
// silence is a gap: if the database comes back just before other workers would count as silent, their heartbeats must
// come first.
func (b *heartbeats) got(began time.Time, silence time.Duration) bool {
	if began.Sub(b.last) >= silence/2 {
		b.since = began
	}
	b.last = began
	return began.Sub(b.since) >= silence
}

// heartbeat sends heartbeats until ctx ends: it writes to the store that this worker is live and which attempts it
// holds, publishes the same, and acts on the store's answer.
func (f *Function) heartbeat(ctx context.Context, publish funchost.Publish) {
	published := make(chan struct{})
	go func() {
		defer close(published)
		f.publishHeartbeats(ctx, publish)
	}()
	trouble := telemetry.Trouble{What: "heartbeat"}
	for {
		err := f.heartbeatOnce(ctx)
		if ctx.Err() == nil {
			trouble.Note(ctx, err, "workerId", f.id)
		}
		if !f.heartbeats.wait(ctx, f.timing, err != nil) {
			break
		}
	}
	<-published
}

func (f *Function) heartbeatOnce(ctx context.Context) error {
	defer f.calls.Begin("a heartbeat")()
	began := f.pool.Now()
	answered := f.answered.Load() // before the list: the attempts of these claims are in it, or settled
	attempts := f.pool.List()
	heartbeat := workerdb.Heartbeat{WorkerID: f.id, Queues: f.consumers.queues(), Free: f.pool.Free(), Answered: answered}
	for _, a := range attempts {
		heartbeat.Held = append(heartbeat.Held, workerdb.Held{
			Key: a.Key(), TraceID: a.TraceID, TimeoutMs: int(a.Run.TimeoutMs), StartedAt: a.StartedAt,
		})
	}
	tryCtx, cancel := context.WithTimeout(ctx, f.timing.silence/2) // or it could hang while others settle our attempts
	defer cancel()
	changed, err := f.store.Heartbeat(tryCtx, heartbeat)
	if err != nil {
		return err
	}
	for _, outcome := range changed.Settled {
		f.pool.Taken(outcome)
	}
	for _, key := range changed.CancelWanted {
		f.pool.Cancel(key, f.timing.cancelPatience)
	}
	f.heartbeats.unseen(changed.Unseen, f.timing.silence)
	if f.pool.Answered(began, changed.Unseen) {
		return f.heartbeatOnce(ctx)
	}
	f.wakeUp()
	f.pool.GiveUp()
	f.offer(f.nextHeartbeat(time.Now()))
	offsets.Done(f.pool.Pass(f.timing.passAfter, maxHeldBack))
	f.warnOfGaps(ctx)
	if f.heartbeats.got(began.At, f.timing.silence) {
		if err := f.reap(tryCtx); err != nil {
			return err
		}
	}
	return cmp.Or(changed.Failed, f.handBack(tryCtx))
}

// reap settles the attempts of silent workers and publishes their outcomes.
func (f *Function) reap(ctx context.Context) error {
	outcomes, err := f.store.Reap(ctx, f.id)
	for _, outcome := range outcomes {
		telemetry.Logger(ctx).WarnContext(ctx, "attempt of another worker settled",
			"workerId", outcome.WorkerID, "jobId", outcome.JobID,
			"attempt", outcome.Attempt, "traceId", outcome.TraceID, "kind", outcome.Kind)
		f.metrics.reaped.WithLabelValues(string(outcome.Kind)).Inc()
		f.decided(pool.Finished{Outcome: outcome, Settled: true})
	}
	return err
}

// handBack gives up attempts that have waited long for a slot while other workers have free slots.
func (f *Function) handBack(ctx context.Context) error {
	queues := f.pool.HeldTooLong(f.timing.heldAtMost)
	if len(queues) == 0 {
		return nil
	}
	free, err := f.store.FreeElsewhere(ctx, f.id)
	if err != nil {
		return err
	}
	for queue := range queues {
		if n := f.pool.HandBack(queue, free[queue], f.timing.heldAtMost); n > 0 {
			telemetry.Logger(ctx).InfoContext(ctx, "attempts handed back", "workerId", f.id, "queue", queue, "attempts", n)
		}
	}
	return nil
}

// nextHeartbeat returns the event with the worker's slots, partitions and attempts.
func (f *Function) nextHeartbeat(now time.Time) jobevent.Heartbeat {
	h := f.pool.Heartbeat(now)
	h.WorkerID, h.Version, h.StartedAt = f.id, f.cfg.Version, f.startedAt
	h.Queues, h.JobTypes, h.Partitions = f.consumers.queues(), f.registry.JobTypes(), f.consumers.held()
	h.Follows = f.consumers.follows()
	h.OnlyTypes = f.cfg.Demand == nil && !f.registry.RunsAny()
	// An outcome that is on its way from one step to the next may be missed. It is in the store by then.
	h.Drained = h.Drained && f.finished.len()+f.toPublish.len() == 0 && f.settling.Load()+f.publishing.Load() == 0
	if f.cfg.Demand != nil { // its handlers are elsewhere, of any build
		h.Demands = f.cfg.Demand.List()
		h.JobTypes = typesOf(h.Demands)
	} else {
		h.Build = cmp.Or(f.cfg.Build, f.cfg.Version)
	}
	return h
}

// typesOf returns the job types of demands, sorted by name.
func typesOf(demands []jobevent.Demand) []jobevent.JobType {
	var names []string
	for _, d := range demands {
		names = append(names, d.JobTypes...)
	}
	slices.Sort(names)
	types := []jobevent.JobType{}
	for _, name := range slices.Compact(names) {
		types = append(types, jobevent.JobType{Name: name})
	}
	return types
}

// offer passes a heartbeat to the goroutine that publishes, and replaces one that still waits: an unavailable broker
// must not keep heartbeats from the store.
func (f *Function) offer(h jobevent.Heartbeat) {
	select {
	case <-f.heartbeats.latest:
	default:
	}
	f.heartbeats.latest <- h
}

func (f *Function) publishHeartbeats(ctx context.Context, publish funchost.Publish) {
	trouble := telemetry.Trouble{What: "publish heartbeats"}
	for {
		select {
		case h := <-f.heartbeats.latest:
			if err := publish(ctx, f.appendHeartbeat(ctx, nil, h)); ctx.Err() == nil {
				trouble.Note(ctx, err, "workerId", f.id)
			}
		case <-ctx.Done():
			return
		}
	}
}

// appendHeartbeat appends a heartbeat, in several parts if it lists many attempts: the size of an event is bounded.
func (f *Function) appendHeartbeat(ctx context.Context, events []jobevent.Item, h jobevent.Heartbeat) []jobevent.Item {
	attempts, left := h.Attempts, h.Left
	for part := 0; part == 0 || len(attempts)+len(left) > 0; part++ {
		n := min(len(attempts), maxHeartbeatAttempts)
		m := min(len(left), maxHeartbeatAttempts-n)
		h.Part, h.Attempts, h.Left, attempts, left = part, attempts[:n], left[:m], attempts[n:], left[m:]
		f.heartbeats.number++
		id := f.id + "." + strconv.Itoa(f.heartbeats.number)
		events = f.append(ctx, events, jobevent.TypeHeartbeat, jobevent.Meta{ID: id, Key: f.id}, h)
		h.JobTypes, h.Demands = nil, nil // in the first part only
	}
	return events
}

// warnOfGaps logs partitions with many done records that cannot be committed.
func (f *Function) warnOfGaps(ctx context.Context) {
	for _, p := range f.consumers.stuck(maxGap) {
		offset, since, _ := p.Tracker.Oldest()
		telemetry.Logger(ctx).WarnContext(ctx, "commit is stuck behind one record", "topic", p.Topic, "partition", p.ID,
			"offset", offset, "since", since, "done", p.Tracker.Gap())
	}
}
