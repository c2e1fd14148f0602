package pool

import (
	"cmp"
	"context"
	"encoding/json"
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

// Attempt is an attempt that this worker has claimed, until its outcome is in the store.
type Attempt struct {
	Run     jobevent.Run
	Queue   string
	TraceID uuid.UUID
	Order   trace.SpanContext // the span of its run order; invalid: without tracing
	From    offsets.Record    // its record, done once the outcome is published
	SentAt  time.Time         // when its run order was made

	Checkpoint json.RawMessage // what earlier attempts have saved, as it is stored; nil: nothing

	sealer   *sealing.Sealer
	Log      AttemptLog
	Progress atomic.Pointer[jobevent.Progress]
	GiveBack *GiveBack   // it is given back instead of run; nil: it is not
	Private  atomic.Bool // its message must not be logged
	Settled  atomic.Pointer[func(jobevent.Kind)]
	RanBy    atomic.Pointer[string] // the pull worker that has it; nil: none

	HasCheckpoint atomic.Bool // the attempt may have saved a checkpoint, or an earlier one has

	// Guarded by the pool's mutex.
	claimedAt time.Time
	ExpiresAt time.Time               // by this process's clock: it must not start from then on; zero: never
	StartedAt time.Time               // zero: not started
	calledAt  time.Time               // when its handler was called
	dueAt     time.Time               // when it times out, once it has started
	end       context.CancelCauseFunc // ends the handler's context; nil: the handler was not called
	cancelled bool                    // end was called because of a cancel
	decided   bool                    // it has its outcome, even if its handler still runs
	reported  reported                // the progress as heartbeats report it
	passed    bool                    // its record counts as done, although it runs
}

// GiveBack is why an attempt goes back to the scheduler without having started, and for how long it stays there, times
// the number of the attempt.
type GiveBack struct {
	Why   string
	Delay time.Duration
}

// Key returns the attempt's key.
func (a *Attempt) Key() workerdb.Key {
	return workerdb.Key{JobID: a.Run.JobID, Attempt: a.Run.Attempt}
}

// compare orders attempts by rank, the best first.
func (a *Attempt) compare(b *Attempt) int {
	return cmp.Or(a.Run.Rank.Compare(b.Run.Rank), a.Key().Compare(b.Key()))
}

func before(a, b *Attempt) bool { return a.compare(b) < 0 }

// LogFields returns the fields of every line that the handler logs.
func (a *Attempt) LogFields() []any {
	return []any{
		telemetry.FieldJobID, a.Run.JobID.String(), telemetry.FieldTraceID, a.TraceID.String(), "attempt", a.Run.Attempt,
	}
}

// Expired reports whether the attempt must not start any more.
func (a *Attempt) Expired(now time.Time) bool {
	return !a.ExpiresAt.IsZero() && !now.Before(a.ExpiresAt)
}

// ranBy returns the pull worker that has the attempt; empty: none.
func (a *Attempt) ranBy() string {
	if name := a.RanBy.Load(); name != nil {
		return *name
	}
	return ""
}

// bytes returns about how many bytes a waiting attempt takes in memory.
func (a *Attempt) bytes() int {
	return len(a.Run.Payload) + len(a.Run.Parents) + len(a.Run.Event) + len(a.Checkpoint)
}

func (a *Attempt) timeout() time.Duration { return time.Duration(a.Run.TimeoutMs) * time.Millisecond }

// Finished is an attempt that has an outcome, until the outcome is settled and published.
type Finished struct {
	Attempt *Attempt // nil: an outcome that is only to be published, not of an attempt of this pool
	Outcome workerdb.Outcome
	Settled bool            // the outcome is in the store already
	From    offsets.Record  // without a partition: not from a record
	Bytes   int64           // Weight when it was decided
	Events  []jobevent.Item // published beside or instead of the outcome
}

// Weight returns about how many bytes it takes in memory.
func (f Finished) Weight() int64 {
	n := len(f.Outcome.Output) + len(f.Outcome.Message)
	for _, e := range f.Events {
		n += e.Size()
	}
	return int64(n)
}
