package runjob

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/trace"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/sealing"
	"github.com/jobweaver/jobweaver/shared/telemetry"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

// attempt is one that this worker has claimed, until its outcome is in the store.
type attempt struct {
	run     jobevent.Run
	queue   string
	traceID uuid.UUID
	order   trace.SpanContext // where it was ordered; invalid: there is no tracing
	from    record            // done once the outcome is published

	sealer   *sealing.Sealer
	log      attemptLog
	progress atomic.Pointer[jobevent.Progress]
	private  atomic.Bool // its message is not for the log
	settled  atomic.Pointer[func(jobevent.Kind)]

	// Guarded by the pool's mutex.
	place     int // in the heap of held ones; -1: not there
	claimedAt time.Time
	expiresAt time.Time               // by this process's clock: not to be started from then on; zero: never
	startedAt time.Time               // zero: not started
	dueAt     time.Time               // when its timeout is over, once it has started
	end       context.CancelCauseFunc // ends the handler's context; nil: not started
	cancelled bool                    // end was called for a cancel
	decided   bool                    // it has its outcome, whatever its handler still does
	told      told                    // the progress that beats have
	passed    bool                    // its record is done with, although it runs
}

func (a *attempt) key() workerdb.Key {
	return workerdb.Key{JobID: a.run.JobID, Attempt: a.run.Attempt}
}

// compare puts the better rank first.
func (a *attempt) compare(b *attempt) int {
	return cmp.Or(a.run.Rank.Compare(b.run.Rank), a.key().Compare(b.key()))
}

// LogFields are those of every line that its handler logs.
func (a *attempt) LogFields() []any {
	return []any{
		telemetry.FieldJobID, a.run.JobID.String(), telemetry.FieldTraceID, a.traceID.String(), "attempt", a.run.Attempt,
	}
}

// expired says that it is too late to start it.
func (a *attempt) expired(now time.Time) bool {
	return !a.expiresAt.IsZero() && !now.Before(a.expiresAt)
}

func (a *attempt) timeout() time.Duration { return time.Duration(a.run.TimeoutMs) * time.Millisecond }

// held are the attempts that wait for a slot: a container/heap, the best rank first.
type held []*attempt

func (h held) Len() int { return len(h) }
func (h held) Less(i, j int) bool {
	return h[i].compare(h[j]) < 0
}
func (h held) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

// Push is for container/heap.
func (h *held) Push(x any) {
	a := x.(*attempt)
	a.place = len(*h)
	*h = append(*h, a)
}

// Pop is for container/heap.
func (h *held) Pop() any {
	last := len(*h) - 1
	a := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	a.place = -1
	return a
}

// finished is an attempt on its way from its outcome to being done with.
type finished struct {
	attempt *attempt // nil: not an attempt of this worker, only to be published
	outcome workerdb.Outcome
	settled bool            // the outcome is in the store already
	from    record          // without a partition: from none
	bytes   int64           // its weight when it was decided
	events  []jobevent.Item // published beside or instead of the outcome
}

// weight is about what it takes in memory.
func (f finished) weight() int64 {
	n := len(f.outcome.Output) + len(f.outcome.Message)
	for _, e := range f.events {
		n += len(e.Data())
	}
	return int64(n)
}
