package statstore

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
)

const (
	accepted = "ACCEPTED" // what a tally counts, besides the terminal states

	// The limits of one transaction that sums up. A stop waits for it.
	mostEntries = 1_000
	mostTallies = 500
)

type grain struct {
	name     string
	of, kept time.Duration
}

// grains are the spans by which tallies are summed up, and how long each is kept before it is merged into the next.
var grains = []grain{
	{"minute", time.Minute, 2 * time.Hour},
	{"hour", time.Hour, 48 * time.Hour},
	{"day", 24 * time.Hour, 30 * 24 * time.Hour},
	{"ever", 0, 0},
}

type tallyKey struct {
	of                   apidb.Owner
	grain                string
	at                   time.Time // in UTC
	queue, jobType, what string
}

// addEntry adds the parts of an entry other than its counts.
type tally struct {
	n, kept           int64
	waited, ran, took histogram
	codes             codes
}

func (t *tally) add(n, kept int64, waited, ran, took, codes []byte) {
	t.n, t.kept = t.n+n, t.kept+kept
	t.waited.addEncoded(waited)
	t.ran.addEncoded(ran)
	t.took.addEncoded(took)
	t.codes.addEncoded(codes)
}

// addEntry adds what is not in an entry's counts.
func (t *tally) addEntry(times []int32, codes []string) {
	for _, of := range times {
		t.addTimes(of)
	}
	for _, code := range codes {
		t.codes.add(code, 1)
	}
}

type tallies map[tallyKey]*tally

// addAll adds another tally.
func (t *tally) addAll(other *tally) {
	t.n, t.kept = t.n+other.n, t.kept+other.kept
	t.waited.addAll(other.waited)
	t.ran.addAll(other.ran)
	t.took.addAll(other.took)
	t.codes.addAll(other.codes)
}

func (ts tallies) at(of apidb.Owner, to int, at time.Time, queue, jobType, what string) *tally {
	key := tallyKey{of, grains[to].name, time.Unix(0, 0).UTC(), queue, jobType, what}
	if span := grains[to].of; span > 0 {
		key.at = at.UTC().Truncate(span)
	}
	return ts.of(key)
}

func (ts tallies) of(key tallyKey) *tally {
	if ts[key] == nil {
		ts[key] = &tally{}
	}
	return ts[key]
}

// addEveryone adds tallies of all owners together to those of single owners.
func (ts tallies) addEveryone() {
	for _, key := range slices.Collect(maps.Keys(ts)) {
		all := key
		all.of = apidb.Everyone
		ts.of(all).addAll(ts[key])
	}
}

// SumTallies sums up new entries of tallies and failures, and old tallies into wider spans; more reports that some
// remain. One process at a time sums up; for the others it does nothing.
func (s *Store) SumTallies(ctx context.Context, now time.Time) (more bool, err error) {
	err = s.db.Tx(ctx, func(q *gen.Queries) error {
		mine, err := q.TallyLock(ctx)
		if err != nil || !mine {
			return err
		}
		sums := tallies{}
		entries, err := q.TallyTakeEntries(ctx, mostEntries)
		if err != nil {
			return err
		}
		for _, e := range entries {
			sum := sums.at(apidb.OwnerOf(e.OwnerID), 0, e.At, e.Queue, e.JobType, e.What)
			sum.add(int64(e.N), int64(e.Kept), nil, nil, nil, nil)
			sum.addEntry(e.Times, e.ErrorCodes)
		}
		sums.addEveryone()
		more = len(entries) == mostEntries
		for from := range len(grains) - 1 {
			taken, err := takeOld(ctx, q, sums, from, now)
			if err != nil {
				return err
			}
			more = more || taken == mostTallies
		}
		if err := sums.put(ctx, q); err != nil {
			return err
		}
		moreFailures, err := sumFailures(ctx, q, now)
		more = more || moreFailures
		return err
	})
	return more, apidb.Classify("sum up tallies", err)
}

// takeOld moves the old tallies of a grain to the next grain.
func takeOld(ctx context.Context, q *gen.Queries, sums tallies, from int, now time.Time) (taken int, err error) {
	rows, err := q.TallyTakeOld(ctx, gen.TallyTakeOldParams{
		Grain: grains[from].name, Before: now.UTC().Add(-grains[from].kept).Truncate(max(grains[from].of, grains[from+1].of)),
		MaxTallies: mostTallies,
	})
	for _, row := range rows {
		sum := sums.at(apidb.OwnerWith(row.OwnerID, row.Everyone), from+1, row.At, row.Queue, row.JobType, row.What)
		if grains[from+1].of == 0 {
			row.N, row.Waited, row.Ran, row.Took, row.ErrorCodes = 0, nil, nil, nil, nil
		}
		sum.add(row.N, row.Kept, row.Waited, row.Ran, row.Took, row.ErrorCodes)
	}
	return len(rows), err
}

// put adds the sums to the stored ones. The caller holds the lock.
func (ts tallies) put(ctx context.Context, q *gen.Queries) error {
	if len(ts) == 0 {
		return nil
	}
	keys := slices.SortedFunc(maps.Keys(ts), func(a, b tallyKey) int {
		return cmp.Or(cmp.Compare(a.of.ID(), b.of.ID()), cmp.Compare(a.grain, b.grain), a.at.Compare(b.at),
			cmp.Compare(a.queue, b.queue), cmp.Compare(a.jobType, b.jobType), cmp.Compare(a.what, b.what))
	})
	var find gen.TallyFindParams
	for _, key := range keys {
		find.Everyones, find.OwnerIDs = append(find.Everyones, key.of.IsEveryone()), append(find.OwnerIDs, key.of.ID())
		find.Grains, find.Ats = append(find.Grains, key.grain), append(find.Ats, key.at)
		find.Queues, find.JobTypes = append(find.Queues, key.queue), append(find.JobTypes, key.jobType)
		find.Whats = append(find.Whats, key.what)
	}
	before, err := q.TallyFind(ctx, find)
	if err != nil {
		return err
	}
	for _, row := range before {
		key := tallyKey{apidb.OwnerWith(row.OwnerID, row.Everyone), row.Grain, row.At.UTC(), row.Queue, row.JobType, row.What}
		ts[key].add(row.N, row.Kept, row.Waited, row.Ran, row.Took, row.ErrorCodes)
	}
	p := gen.TallyPutParams{
		Everyones: find.Everyones, OwnerIDs: find.OwnerIDs,
		Grains: find.Grains, Ats: find.Ats, Queues: find.Queues, JobTypes: find.JobTypes, Whats: find.Whats,
	}
	for _, key := range keys {
		sum := ts[key]
		p.Ns, p.Kepts = append(p.Ns, sum.n), append(p.Kepts, sum.kept)
		p.Waiteds = append(p.Waiteds, sum.waited.encode())
		p.Rans = append(p.Rans, sum.ran.encode())
		p.Tooks = append(p.Tooks, sum.took.encode())
		p.ErrorCodes = append(p.ErrorCodes, sum.codes.encode())
	}
	if err := q.TallyPut(ctx, p); err != nil || !slices.Contains(p.Grains, "ever") {
		return err
	}
	return q.TallyForget(ctx)
}
