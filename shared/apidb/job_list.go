package apidb

import (
	"context"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// maxSeen is how many jobs a list with a filter looks at to find those that fit, and firstSeen at how many first: where
// many fit that is enough.
const (
	maxSeen   = 20_000
	firstSeen = 500
)

// list chooses the statement whose index stands in the order of the filter. next is after which job a list goes on
// that has looked at enough.
func (s *Store) list(ctx context.Context, owner Owner, p gen.JobsListParams, f Filter) (
	rows []gen.JobsListRow, next uuid.UUID, err error,
) {
	filtered := f.JobType != "" || f.Queue != "" || f.Tag != "" || !owner.everyone && !owner.indexed()
	switch shelves := shelvesOf(f.Status); {
	case f.OrderingKey != "" || filtered || f.Status != "" && len(shelves) == 0 && !owner.indexed():
		return s.listSeen(ctx, p, int32(f.Skip), s.looker(owner, p, f))
	case owner.indexed():
		rows, err = s.listOwned(ctx, p, f)
	case len(shelves) > 0:
		rows, err = s.listShelved(ctx, p, shelves, f.Skip)
	default:
		rows, err = s.q.JobsList(ctx, p)
	}
	return rows, uuid.Nil, err
}

// look gives those that fit of the newest most jobs.
type look func(ctx context.Context, most int32) (gen.JobsSeenRow, error)

// listSeen looks at so many jobs, and gives those that fit. What fits may be rare: a list of all would keep a
// connection for as long as there are jobs.
func (s *Store) listSeen(ctx context.Context, p gen.JobsListParams, skip int32, look look) (
	rows []gen.JobsListRow, next uuid.UUID, err error,
) {
	most := min(max(firstSeen, p.MaxJobs+skip), maxSeen)
	seen, err := look(ctx, most)
	if err == nil && int32(len(seen.JobIDs)) < p.MaxJobs && seen.Seen == int64(most) && most < maxSeen {
		most = maxSeen
		seen, err = look(ctx, most)
	}
	if err != nil {
		return nil, next, err
	}
	switch {
	case int32(len(seen.JobIDs)) == p.MaxJobs: // one more than are shown, of which some may be gone by now
		next = seen.JobIDs[p.MaxJobs-2]
	case seen.Seen == int64(most):
		next = seen.LastID
	}
	found, err := s.q.JobsListed(ctx, gen.JobsListedParams{JobIDs: seen.JobIDs, Owner: p.Owner, MaxBytes: p.MaxBytes})
	rows = make([]gen.JobsListRow, len(found))
	for i := range found {
		rows[i] = gen.JobsListRow(found[i])
	}
	return rows, next, err
}

// looker looks by the index that has few others' jobs.
func (s *Store) looker(owner Owner, p gen.JobsListParams, f Filter) look {
	skip, shelves := int32(f.Skip), shelvesOf(f.Status)
	switch {
	case f.OrderingKey != "" && owner.indexed():
		return func(ctx context.Context, most int32) (gen.JobsSeenRow, error) {
			seen, err := s.q.JobsSeenOrderedOwned(ctx, gen.JobsSeenOrderedOwnedParams{
				JobType: p.JobType, Queue: p.Queue, Tag: p.Tag, Since: p.Since, Until: p.Until, Status: p.Status,
				Owner: owner.name, OrderingKey: f.OrderingKey, AfterID: p.AfterID, BeforeID: p.BeforeID,
				MostSeen: most, MaxJobs: p.MaxJobs, Skip: skip,
			})
			return gen.JobsSeenRow(seen), err
		}
	case f.OrderingKey != "":
		return func(ctx context.Context, most int32) (gen.JobsSeenRow, error) {
			seen, err := s.q.JobsSeenOrdered(ctx, gen.JobsSeenOrderedParams{
				JobType: p.JobType, Queue: p.Queue, Tag: p.Tag, Since: p.Since, Until: p.Until, Status: p.Status,
				Owner: p.Owner, OrderingKey: f.OrderingKey, AfterID: p.AfterID, BeforeID: p.BeforeID,
				MostSeen: most, MaxJobs: p.MaxJobs, Skip: skip,
			})
			return gen.JobsSeenRow(seen), err
		}
	case owner.indexed():
		return func(ctx context.Context, most int32) (gen.JobsSeenRow, error) {
			seen, err := s.q.JobsSeenOwned(ctx, gen.JobsSeenOwnedParams{
				JobType: p.JobType, Queue: p.Queue, Tag: p.Tag, Since: p.Since, Until: p.Until,
				Shelves: ownedShelvesOf(f.Status), Owner: owner.name, AfterID: p.AfterID, BeforeID: p.BeforeID,
				MostSeen: most, MaxJobs: p.MaxJobs, Skip: skip,
			})
			return gen.JobsSeenRow(seen), err
		}
	case len(shelves) > 0:
		return func(ctx context.Context, most int32) (gen.JobsSeenRow, error) {
			seen, err := s.q.JobsSeenShelved(ctx, gen.JobsSeenShelvedParams{
				JobType: p.JobType, Queue: p.Queue, Tag: p.Tag, Since: p.Since, Until: p.Until, Owner: p.Owner,
				Shelves: shelves, AfterID: p.AfterID, BeforeID: p.BeforeID,
				MostSeen: most, MaxJobs: p.MaxJobs, Skip: skip,
			})
			return gen.JobsSeenRow(seen), err
		}
	}
	return func(ctx context.Context, most int32) (gen.JobsSeenRow, error) {
		return s.q.JobsSeen(ctx, gen.JobsSeenParams{
			JobType: p.JobType, Queue: p.Queue, Tag: p.Tag, Since: p.Since, Until: p.Until, Status: p.Status,
			Owner: p.Owner, AfterID: p.AfterID, BeforeID: p.BeforeID, MostSeen: most, MaxJobs: p.MaxJobs, Skip: skip,
		})
	}
}

func (s *Store) listShelved(ctx context.Context, p gen.JobsListParams, shelves []int32, skip int) (
	[]gen.JobsListRow, error,
) {
	shelved, err := s.q.JobsListShelved(ctx, gen.JobsListShelvedParams{
		Shelves: shelves, JobType: p.JobType, Queue: p.Queue, Tag: p.Tag, Since: p.Since, Until: p.Until, Owner: p.Owner,
		AfterID: p.AfterID, BeforeID: p.BeforeID, MaxJobs: p.MaxJobs + int32(skip), Skip: int32(skip),
		MaxBytes: p.MaxBytes,
	})
	rows := make([]gen.JobsListRow, len(shelved))
	for i := range shelved {
		rows[i] = gen.JobsListRow(shelved[i])
	}
	return rows, err
}

func (s *Store) listOwned(ctx context.Context, p gen.JobsListParams, f Filter) ([]gen.JobsListRow, error) {
	owned, err := s.q.JobsListOwned(ctx, gen.JobsListOwnedParams{
		Shelves: ownedShelvesOf(f.Status), Owner: *p.Owner, JobType: p.JobType, Queue: p.Queue, Tag: p.Tag, Since: p.Since,
		Until: p.Until, AfterID: p.AfterID, BeforeID: p.BeforeID, MaxJobs: p.MaxJobs + int32(f.Skip), Skip: int32(f.Skip),
		MaxBytes: p.MaxBytes,
	})
	rows := make([]gen.JobsListRow, len(owned))
	for i := range owned {
		rows[i] = gen.JobsListRow(owned[i])
	}
	return rows, err
}

// CountDead says how many of the owner's FAILED jobs fit; false: nobody knows, more than MaxFigure might.
func (s *Store) CountDead(ctx context.Context, owner Owner, f Filter) (n int64, known bool, err error) {
	p := f.params()
	dead := shelvesOf(jobstate.Failed)[0]
	if owner.indexed() {
		row, err := s.q.JobsCountOwned(ctx, gen.JobsCountOwnedParams{
			Owner: owner.name, Shelf: dead, JobType: p.JobType, Queue: p.Queue, Tag: p.Tag,
			OrderingKey: text(f.OrderingKey), Since: p.Since, Until: p.Until,
			AfterID: p.AfterID, BeforeID: p.BeforeID, MaxJobs: MaxFigure + 1,
		})
		return row.Fit, row.Seen <= MaxFigure, classify("count an owner's dead jobs", err)
	}
	row, err := s.q.JobsCountShelved(ctx, gen.JobsCountShelvedParams{
		Shelf: dead, JobType: p.JobType, Queue: p.Queue, Tag: p.Tag, Owner: owner.filter(),
		OrderingKey: text(f.OrderingKey), Since: p.Since, Until: p.Until,
		AfterID: p.AfterID, BeforeID: p.BeforeID, MaxJobs: MaxFigure + 1,
	})
	return row.Fit, row.Seen <= MaxFigure, classify("count dead jobs", err)
}

// ownedShelf is where an owner's completed jobs stand in the index jobs_owned.
const ownedShelf = 10

// ownedShelvesOf is shelvesOf in the index jobs_owned, where each job stands on a shelf; all for no status.
func ownedShelvesOf(status jobstate.Status) []int32 {
	if status == "" {
		return []int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ownedShelf}
	}
	if status == jobstate.Completed {
		return []int32{ownedShelf}
	}
	return shelvesOf(status)
}
