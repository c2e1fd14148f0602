package apidb

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
)

const (
	accepted = "ACCEPTED" // beside the terminal states, what a tally is of

	// How much one transaction sums up.
	mostEntries = 5_000
	mostTallies = 2_000
)

type grain struct {
	name     string
	of, kept time.Duration
}

// grains are what tallies are summed by, and for how long each is kept; then they go into the next.
var grains = []grain{
	{"minute", time.Minute, 2 * time.Hour},
	{"hour", time.Hour, 48 * time.Hour},
	{"day", 24 * time.Hour, 30 * 24 * time.Hour},
	{"ever", 0, 0},
}

type tallyKey struct {
	grain                string
	at                   time.Time // in UTC
	queue, jobType, what string
}

type tally struct {
	n, kept           int64
	waited, ran, took histogram
}

func (t *tally) add(n, kept int64, waited, ran, took []byte) {
	t.n, t.kept = t.n+n, t.kept+kept
	t.waited.addEncoded(waited)
	t.ran.addEncoded(ran)
	t.took.addEncoded(took)
}

type tallies map[tallyKey]*tally

func (ts tallies) at(to int, at time.Time, queue, jobType, what string) *tally {
	key := tallyKey{grains[to].name, time.Unix(0, 0).UTC(), queue, jobType, what}
	if of := grains[to].of; of > 0 {
		key.at = at.UTC().Truncate(of)
	}
	if ts[key] == nil {
		ts[key] = &tally{}
	}
	return ts[key]
}

// SumTallies sums up what was entered, and what has grown old; more: not all of it. One process at a
// time does, and the others need not.
func (s *Store) SumTallies(ctx context.Context, now time.Time) (more bool, err error) {
	err = s.tx(ctx, func(q *gen.Queries) error {
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
			sum := sums.at(0, e.At, e.Queue, e.JobType, e.What)
			sum.add(int64(e.N), int64(e.Kept), nil, nil, nil)
			for _, of := range e.Times {
				sum.addTimes(of)
			}
		}
		more = len(entries) == mostEntries
		for from := range len(grains) - 1 {
			taken, err := takeOld(ctx, q, sums, from, now)
			if err != nil {
				return err
			}
			more = more || taken == mostTallies
		}
		return sums.put(ctx, q)
	})
	return more, classify("sum up tallies", err)
}

// takeOld moves the old ones of a grain to the next.
func takeOld(ctx context.Context, q *gen.Queries, sums tallies, from int, now time.Time) (taken int, err error) {
	rows, err := q.TallyTakeOld(ctx, gen.TallyTakeOldParams{
		Grain: grains[from].name, Before: now.UTC().Add(-grains[from].kept).Truncate(max(grains[from].of, grains[from+1].of)),
		MaxTallies: mostTallies,
	})
	for _, row := range rows {
		sum := sums.at(from+1, row.At, row.Queue, row.JobType, row.What)
		if grains[from+1].of == 0 {
			row.N, row.Waited, row.Ran, row.Took = 0, nil, nil, nil
		}
		sum.add(row.N, row.Kept, row.Waited, row.Ran, row.Took)
	}
	return len(rows), err
}

// put adds the sums to those that are there. Whoever calls has the lock.
func (ts tallies) put(ctx context.Context, q *gen.Queries) error {
	if len(ts) == 0 {
		return nil
	}
	keys := slices.SortedFunc(maps.Keys(ts), func(a, b tallyKey) int {
		return cmp.Or(cmp.Compare(a.grain, b.grain), a.at.Compare(b.at), cmp.Compare(a.queue, b.queue),
			cmp.Compare(a.jobType, b.jobType), cmp.Compare(a.what, b.what))
	})
	var find gen.TallyFindParams
	for _, key := range keys {
		find.Grains, find.Ats = append(find.Grains, key.grain), append(find.Ats, key.at)
		find.Queues, find.JobTypes = append(find.Queues, key.queue), append(find.JobTypes, key.jobType)
		find.Whats = append(find.Whats, key.what)
	}
	before, err := q.TallyFind(ctx, find)
	if err != nil {
		return err
	}
	for _, row := range before {
		ts[tallyKey{row.Grain, row.At.UTC(), row.Queue, row.JobType, row.What}].add(
			row.N, row.Kept, row.Waited, row.Ran, row.Took)
	}
	p := gen.TallyPutParams{
		Grains: find.Grains, Ats: find.Ats, Queues: find.Queues, JobTypes: find.JobTypes, Whats: find.Whats,
	}
	for _, key := range keys {
		sum := ts[key]
		p.Ns, p.Kepts = append(p.Ns, sum.n), append(p.Kepts, sum.kept)
		p.Waiteds = append(p.Waiteds, sum.waited.encode())
		p.Rans = append(p.Rans, sum.ran.encode())
		p.Tooks = append(p.Tooks, sum.took.encode())
	}
	if err := q.TallyPut(ctx, p); err != nil || !slices.Contains(p.Grains, "ever") {
		return err
	}
	return q.TallyForget(ctx)
}
