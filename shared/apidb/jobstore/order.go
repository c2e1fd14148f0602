package jobstore

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// keyKind separates ordering keys from the keys of each policy.
type keyKind string

const (
	orderKeys    keyKind = ""
	uniqueKeys   keyKind = "unique"
	throttleKeys keyKind = "throttle"
	debounceKeys keyKind = "debounce"
)

// keyed is a key of an owner. Its lock makes concurrent submits with the key decide one after another.
type keyed struct {
	kind       keyKind
	owner, key string
}

// lock returns the number of the key's lock in the database. Two keys with the same number only wait for each other.
func (k keyed) lock() int64 {
	of := k.owner + "\x00" + k.key
	if k.kind != orderKeys { // releases that had no other keys use the same lock for an ordering key
		of = string(k.kind) + "\x00" + of
	}
	// A weaker hash would let an owner find a key that blocks another owner's.
	sum := sha256.Sum256([]byte(of))
	return int64(binary.BigEndian.Uint64(sum[:]))
}

// keysOf returns all keys of a request.
func keysOf(req *jobspec.Request) (keys []keyed) {
	if key := req.LineKey(); key != "" && req.Element == nil { // the job of an element has its place already
		keys = append(keys, keyed{orderKeys, req.OwnerID, key})
	}
	if req.Unique != nil {
		keys = append(keys, keyed{uniqueKeys, req.OwnerID, req.Unique.Key})
	}
	if req.Throttle != nil {
		keys = append(keys, keyed{throttleKeys, req.OwnerID, req.Throttle.Key})
	}
	if req.Debounce != nil {
		keys = append(keys, keyedDebounce(req))
	}
	return keys
}

// keysOfKind returns the keys of one kind.
func keysOfKind(keys map[keyed][]int, kind keyKind) (some []keyed) {
	for key := range keys {
		if key.kind == kind {
			some = append(some, key)
		}
	}
	return some
}

// line is the state of an ordering key.
type line struct {
	numbers []int64
	tail    *Accepted // the last job in line, unless it has ended
	at      int       // the ordinal of the last job of this transaction; -1: none
}

// readLines reads the last job of each line, and the numbers for further jobs.
func (t *dependents) readLines(ctx context.Context, keys map[keyed][]int, d *decision) error {
	some := keysOfKind(keys, orderKeys)
	if len(some) == 0 {
		return nil
	}
	var p gen.OrderPlacesParams
	for place, key := range some {
		p.Places = append(p.Places, int32(place))
		p.OwnerIDs, p.OrderingKeys = append(p.OwnerIDs, key.owner), append(p.OrderingKeys, key.key)
		p.Jobs = append(p.Jobs, int32(len(keys[key])))
	}
	rows, err := t.q.OrderPlaces(ctx, p)
	if err != nil {
		return err
	}
	dropped := 0
	for _, row := range rows {
		l := &line{numbers: row.Numbers, at: -1}
		d.lines[some[row.Place]] = l
		if row.Tail == uuid.Nil {
			continue
		}
		l.tail = &Accepted{
			JobID: row.Tail, TraceID: row.TailTraceID, RunAt: row.TailRunAt, CreatedAt: row.TailCreatedAt,
			DecidedBy: BySingleton, Found: jobstate.Status(row.TailStatus),
		}
		if slices.ContainsFunc(keys[some[row.Place]], func(i int) bool { return t.jobs[i].Request.Drops() }) {
			dropped++
		}
	}
	return t.awaitReplicas(ctx, dropped)
}

// lineUp puts a job at the end of its line.
func (t *dependents) lineUp(i int, l *line) {
	a := &t.accepted[i]
	a.OrderNumber, l.numbers = l.numbers[0], l.numbers[1:]
	switch {
	case l.at >= 0:
		a.OrderAfter = &t.jobs[l.at].JobID
	case l.tail != nil:
		a.OrderAfter = &l.tail.JobID
	}
	l.at = i
}
