package jobstore

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
)

type orderKey struct{ owner, key string }

// lock returns the number of the key's lock in the database. Two keys with the same number only wait for each other.
func (k orderKey) lock() int64 {
	// A weaker hash would let an owner find a key that blocks another owner's.
	sum := sha256.Sum256([]byte(k.owner + "\x00" + k.key))
	return int64(binary.BigEndian.Uint64(sum[:]))
}

// takePlaces gives jobs with an ordering key their places, in the order of the request.
func (t *dependents) takePlaces(ctx context.Context, fresh []int) error {
	inLine := map[orderKey][]int{}
	var keys []orderKey
	for _, i := range fresh {
		req := &t.jobs[i].Request
		key := orderKey{req.OwnerID, req.OrderingKey}
		if req.OrderingKey == "" {
			continue
		}
		if inLine[key] == nil {
			keys = append(keys, key)
		}
		inLine[key] = append(inLine[key], i)
	}
	if len(keys) == 0 {
		return nil
	}
	var locks []int64
	var p gen.OrderPlacesParams
	for place, key := range keys {
		locks = append(locks, key.lock())
		p.Places = append(p.Places, int32(place))
		p.OwnerIDs = append(p.OwnerIDs, key.owner)
		p.OrderingKeys = append(p.OrderingKeys, key.key)
		p.Jobs = append(p.Jobs, int32(len(inLine[key])))
	}
	slices.Sort(locks)
	if err := t.q.OrdersLock(ctx, slices.Compact(locks)); err != nil {
		return err
	}
	// A statement of its own, so that it sees what was committed while this transaction waited for the lock.
	rows, err := t.q.OrderPlaces(ctx, p)
	for _, row := range rows {
		t.lineUp(inLine[keys[row.Place]], row)
	}
	return err
}

func (t *dependents) lineUp(line []int, row gen.OrderPlacesRow) {
	var before *uuid.UUID
	if row.Tail != uuid.Nil {
		before = &row.Tail
	}
	for at, i := range line {
		t.accepted[i].OrderNumber, t.accepted[i].OrderAfter = row.Numbers[at], before
		before = &t.jobs[i].JobID
	}
}
