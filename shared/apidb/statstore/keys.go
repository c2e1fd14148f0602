package statstore

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/shelves"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// KeyCounts are the jobs of each fairness key of a queue. Callers share the slices, and must not change them.
type KeyCounts struct {
	At       time.Time // by this process's clock
	Complete bool      // false: there are more jobs than mostKeyed, and only that many were counted
	Keys     []KeyCount
	Lower    []string // the keys in lower case, in the same order
}

// KeyCount counts the jobs of a fairness key that are PENDING, and those that are QUEUED or RUNNING.
type KeyCount struct {
	Key              string
	Waiting, Running int64
}

const (
	keysAge = time.Second // how old the counts may be, or older if counting takes long
	// mostKeyed bounds a count, and so the keys in memory. A page takes 0.1 to 0.2 s.
	mostKeyed = 500_000
)

// keyed has the counts of all queues.
type keyed struct {
	at     time.Time
	jobs   int64
	counts map[keyOf]*KeyCount    // over all owners together, and for each owner
	queues map[queueOf][]KeyCount // the same, sorted
	lower  map[queueOf][]string   // their keys in lower case
}

type queueOf struct {
	owner apidb.Owner
	queue string
}

type keyOf struct {
	queueOf
	key string
}

// Keys counts an owner's jobs of a queue by fairness key. The key with the most waiting jobs comes first; equal ones
// are sorted by name. No counters are kept with the jobs, so Keys counts on request, but bounds how much of the time
// that takes.
func (s *Store) Keys(ctx context.Context, owner apidb.Owner, queue string) (KeyCounts, error) {
	all, err := s.keys.GetRarely(ctx, keysAge, func(k keyed) int64 { return k.jobs }, s.countKeys)
	if err != nil {
		return KeyCounts{}, err
	}
	of := queueOf{owner, queue}
	return KeyCounts{At: all.at, Complete: all.jobs < mostKeyed, Keys: all.queues[of], Lower: all.lower[of]}, nil
}

// Compare orders the keys of a queue.
func (k KeyCount) Compare(other KeyCount) int {
	return cmp.Or(cmp.Compare(other.Waiting, k.Waiting), cmp.Compare(k.Key, other.Key))
}

// countKeys counts what is in flight first, since that is bounded by the workers.
func (s *Store) countKeys(ctx context.Context) (keyed, error) {
	all := keyed{
		at: time.Now(), counts: map[keyOf]*KeyCount{}, queues: map[queueOf][]KeyCount{}, lower: map[queueOf][]string{},
	}
	left := int64(mostKeyed)
	for _, status := range []jobstate.Status{jobstate.Running, jobstate.Queued, jobstate.Pending} {
		for _, shelf := range shelves.Of(status) {
			for after := uuid.Nil; left > 0; {
				p := gen.KeysCountPageParams{Shelf: int16(shelf), AfterID: after, MaxJobs: int32(min(left, censusPage))}
				rows, err := s.q.KeysCountPage(ctx, p)
				if err != nil {
					return all, apidb.Classify("count jobs by fairness key", err)
				}
				n := int64(0)
				for _, row := range rows {
					all.add(row, status)
					n += row.N
					if row.LastID.String() > after.String() {
						after = row.LastID
					}
				}
				if left -= n; n < int64(p.MaxJobs) {
					break
				}
			}
		}
	}
	all.jobs = mostKeyed - left
	for of, count := range all.counts {
		all.queues[of.queueOf] = append(all.queues[of.queueOf], *count)
	}
	all.counts = nil
	for of, keys := range all.queues {
		slices.SortFunc(keys, KeyCount.Compare)
		lower := make([]string, len(keys))
		for i, key := range keys {
			lower[i] = strings.ToLower(key.Key)
		}
		all.lower[of] = lower
	}
	return all, nil
}

func (k *keyed) add(row gen.KeysCountPageRow, status jobstate.Status) {
	for _, owner := range []apidb.Owner{apidb.Everyone, apidb.OwnerOf(row.OwnerID)} {
		of := keyOf{queueOf{owner, row.Queue}, row.Key}
		if k.counts[of] == nil {
			k.counts[of] = &KeyCount{Key: row.Key}
		}
		if status == jobstate.Pending {
			k.counts[of].Waiting += row.N
		} else {
			k.counts[of].Running += row.N
		}
	}
}
