package pool

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/trace"

	"github.com/jobweaver/jobweaver/functions/runjob/offsets"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/sealing"
	"github.com/jobweaver/jobweaver/shared/telemetry"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

// Attempt is one that this worker has claimed, until its outcome is in the store.
type Attempt struct {
	Run     jobevent.Run
	Queue   string
	TraceID uuid.UUID
	Order   trace.SpanContext // where it was ordered; invalid: there is no tracing
	From    offsets.Record    // done once the outcome is published

	sealer   *sealing.Sealer
	Log      AttemptLog
	Progress atomic.Pointer[jobevent.Progress]
	Private  atomic.Bool // its message is not for the log
	Settled  atomic.Pointer[func(jobevent.Kind)]

	// Guarded by the pool's mutex.
	place     int // in the heap of held ones; -1: not there
	claimedAt time.Time
	ExpiresAt time.Time               // by this process's clock: not to be started from then on; zero: never
	StartedAt time.Time               // zero: not started
	dueAt     time.Time               // when its timeout is over, once it has started
	end       context.CancelCauseFunc // ends the handler's context; nil: not started
	cancelled bool                    // end was called for a cancel
	decided   bool                    // it has its outcome, whatever its handler still does
	reported  reported                // the progress that heartbeats have
	passed    bool                    // its record is done with, although it runs
}

// Key names the attempt.
func (a *Attempt) Key() workerdb.Key {
	return workerdb.Key{JobID: a.Run.JobID, Attempt: a.Run.Attempt}
}

// compare puts the better rank first.
func (a *Attempt) compare(b *Attempt) int {
	return cmp.Or(a.Run.Rank.Compare(b.Run.Rank), a.Key().Compare(b.Key()))
}

// LogFields are those of every line that its handler logs.
func (a *Attempt) LogFields() []any {
	return []any{
		telemetry.FieldJobID, a.Run.JobID.String(), telemetry.FieldTraceID, a.TraceID.String(), "attempt", a.Run.Attempt,
	}
}

// Expired reports whether it is too late to start it.
func (a *Attempt) Expired(now time.Time) bool {
	return !a.ExpiresAt.IsZero() && !now.Before(a.ExpiresAt)
}

func (a *Attempt) timeout() time.Duration { return time.Duration(a.Run.TimeoutMs) * time.Millisecond }

// held are the attempts that wait for a slot: a container/heap, the best rank first.
type held []*Attempt

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
	a := x.(*Attempt)
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

// Finished is an attempt on its way from its outcome to being done with.
type Finished struct {
	Attempt *Attempt // nil: not an attempt of this worker, only to be published
	Outcome workerdb.Outcome
	Settled bool            // the outcome is in the store already
	From    offsets.Record  // without a partition: from none
	Bytes   int64           // its weight when it was decided
	Events  []jobevent.Item // published beside or instead of the outcome
}

// Weight is about what it takes in memory.
func (f Finished) Weight() int64 {
	n := len(f.Outcome.Output) + len(f.Outcome.Message)
	for _, e := range f.Events {
		n += len(e.Data())
	}
	return int64(n)
}
