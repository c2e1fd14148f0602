// Package idtime converts between the time in a UUIDv7 and instants.
package idtime

import (
	"bytes"
	"time"

	"github.com/google/uuid"
)

// Slack is how far the time in a job's id may differ from created_at in lists. Ids have the database's time (see
// apidb.Store.NewID), but its estimate can be late for a moment.
const Slack = 5 * time.Minute

// First returns the smallest UUIDv7 of an instant.
func First(at time.Time) uuid.UUID {
	var id uuid.UUID
	Put(&id, max(at.UnixMilli(), 0))
	return id
}

// Put writes a time, in milliseconds since 1970, into an id.
func Put(id *uuid.UUID, ms int64) {
	for i := range 6 {
		id[i] = byte(ms >> (40 - 8*i))
	}
}

// FirstAfter returns the lowest id that a job depending on the job id can have. The job id was accepted before it,
// and the time in an id differs from that of acceptance by at most room. It returns uuid.Nil if the id holds no time.
func FirstAfter(id uuid.UUID, room time.Duration) uuid.UUID {
	if id.Version() != 7 {
		return uuid.Nil
	}
	return First(time.Unix(id.Time().UnixTime()).Add(-room))
}

// Later returns the higher of two ids.
func Later(a, b uuid.UUID) uuid.UUID {
	if bytes.Compare(a[:], b[:]) < 0 {
		return b
	}
	return a
}

// Earlier returns the lower of two ids.
func Earlier(a, b uuid.UUID) uuid.UUID {
	if bytes.Compare(a[:], b[:]) < 0 {
		return a
	}
	return b
}

// Before returns an id that is higher than the ids of all jobs accepted longer than age ago.
func Before(now time.Time, age time.Duration) uuid.UUID { return First(now.Add(Slack - age)) }

// Of returns the time in a UUIDv7.
func Of(id uuid.UUID) (at time.Time, known bool) {
	if id.Version() != 7 {
		return at, false
	}
	var ms int64
	for _, b := range id[:6] {
		ms = ms<<8 | int64(b)
	}
	return time.UnixMilli(ms), true
}
