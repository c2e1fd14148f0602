package apidb

import (
	"context"
	"os"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb/internal/idtime"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// clock estimates the database's time: its last known reading plus the time that has passed since then by this
// process's monotonic clock. So the wall clock has no effect, even if it is wrong or is being set. Readings come with
// queries that the store makes anyway (created_at of inserts, the readiness probe). After a pause of the whole machine,
// which the monotonic clock does not count, the estimate is late until the next reading.
// Why not the clock of the gateway: docs/decisions/databases.md#job-ids-carry-the-databases-time
type clock struct {
	started time.Time // monotonic times count from here

	mu     sync.Mutex
	zero   time.Time // the database's time at started
	warned time.Time
}

func newClock() *clock {
	now := time.Now()
	return &clock{started: now, zero: now}
}

// mark returns a monotonic time, to be passed to take.
func (c *clock) mark() time.Duration { return time.Since(c.started) }

func (c *clock) at(mark time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.zero.Add(mark)
}

// take takes a reading that the database made between two marks. It keeps an estimate that agrees with the reading.
func (c *clock) take(from time.Duration, reading time.Time, to time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if latest := reading.Add(-from); c.zero.After(latest) {
		c.zero = latest
	} else if earliest := reading.Add(-to); c.zero.Before(earliest) {
		c.zero = earliest
	}
}

// warnAgain is the interval between two warnings about a wrong clock.
const warnAgain = 10 * time.Minute

// compare warns if this machine's wall clock differs from the database's by more than clockRoom.
func (c *clock) compare(ctx context.Context, wall time.Time) {
	ahead := wall.Round(0).Sub(c.at(c.mark()))
	if ahead.Abs() <= idtime.Slack {
		return
	}
	c.mu.Lock()
	due := c.warned.IsZero() || time.Since(c.warned) >= warnAgain
	if due {
		c.warned = time.Now()
	}
	c.mu.Unlock()
	if due {
		host, _ := os.Hostname()
		telemetry.Logger(ctx).WarnContext(ctx, "the clock of this machine differs from the database's",
			"host", host, "ahead", ahead.Round(time.Second).String())
	}
}

// ids makes UUIDs of version 7. Unlike uuid.NewV7 it follows a clock that is set back.
type ids struct {
	mu   sync.Mutex
	last int64 // milliseconds, and 12 bits for fractions of one
}

// setBack is how far a clock may go back before the ids follow it. For less, ids continue to rise.
const setBack = 1000 << 12 // a second

func (i *ids) next(at time.Time) uuid.UUID {
	ms := at.UnixMilli()
	stamp := max(ms, 0)<<12 + (at.UnixNano()-ms*int64(time.Millisecond))>>8
	i.mu.Lock()
	if stamp <= i.last && i.last-stamp < setBack {
		stamp = i.last + 1
	}
	i.last = stamp
	i.mu.Unlock()
	id := uuid.New()
	idtime.Put(&id, stamp>>12)
	id[6], id[7] = 0x70|byte(stamp>>8)&0x0f, byte(stamp)
	return id
}

// NewID returns an id with the database's time, so that ids are in the order in which rows were made.
func (s *Store) NewID() uuid.UUID { return s.ids.next(s.clock.at(s.clock.mark())) }

// NewIDAt returns an id with the time at.
func (s *Store) NewIDAt(at time.Time) uuid.UUID { return s.ids.next(at) }

// NewJobIDs returns a function that returns the ids of new jobs that are accepted together: blocks of ids, each in
// order.
func (s *Store) NewJobIDs() func() uuid.UUID {
	var id uuid.UUID
	place := jobevent.BlockSize
	return func() uuid.UUID {
		if place == jobevent.BlockSize {
			id, place = s.NewID(), 0
		}
		place++
		return jobevent.InBlock(id, place-1)
	}
}

// Now returns the database's time, by which all ages are counted.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	from := s.Mark()
	now, err := s.q.Now(ctx)
	if err == nil {
		s.TakeTime(ctx, from, now)
	}
	return now, Classify("ask the time", err)
}

// Mark returns a monotonic time, to be passed to TakeTime.
func (s *Store) Mark() time.Duration { return s.clock.mark() }

// TakeTime takes a reading of the database's clock that was made after a mark.
func (s *Store) TakeTime(ctx context.Context, from time.Duration, reading time.Time) {
	s.clock.take(from, reading, s.clock.mark())
	s.clock.compare(ctx, time.Now())
}
