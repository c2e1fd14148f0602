package jobstore

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/idtime"
	"github.com/jobweaver/jobweaver/shared/apidb/joblist"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// maxSeen bounds how many jobs a list with a filter looks at to find matching ones. It looks at firstSeen first,
// which is enough where many match.
const (
	maxSeen   = 20_000
	firstSeen = 500
	// maxSearched is maxSeen for a search in messages or payloads, each of which is read from its row.
	maxSearched = 5_000
)

// list returns one job more than the filter's limit, if there is one. Matching jobs may be rare, so the number of
// jobs looked at is bounded; if the list has reached the bound, it continues after the job next.
func (s *Store) list(
	ctx context.Context, owner apidb.Owner, f Filter,
) (rows []gen.JobsListedRow, next uuid.UUID, err error) {
	l, most, err := s.listOf(ctx, owner, f.Filter)
	if err != nil {
		return nil, next, err
	}
	if f.Event != (Event{}) {
		whose, _ := owner.Only(f.OwnerID)
		id, err := s.jobOfEvent(ctx, whose, f.Event)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil, next, nil
		}
		if err != nil {
			return nil, next, err
		}
		l.JobID = &id
	}
	l.BeforeID, l.Skip, l.Max = f.Before, f.Skip, f.Limit+1
	l.MostSeen = l.Max + l.Skip
	if l.Sparse() {
		l.MostSeen = min(max(firstSeen, l.MostSeen), most)
	}
	seen, err := l.Newest(ctx, s.db.DB())
	if err == nil && len(seen.JobIDs) < l.Max && seen.Seen == int64(l.MostSeen) && l.MostSeen < most {
		l.MostSeen = most
		seen, err = l.Newest(ctx, s.db.DB())
	}
	if err != nil {
		return nil, next, err
	}
	switch {
	case len(seen.JobIDs) == l.Max: // one more than is shown; some of them may be deleted by now
		next = seen.JobIDs[l.Max-2]
	case seen.Seen == int64(l.MostSeen):
		next = seen.LastID
	}
	rows, err = s.q.JobsListed(ctx, gen.JobsListedParams{
		JobIDs: seen.JobIDs, Owner: owner.Filter(), MaxBytes: apidb.MaxListBytes,
	})
	return rows, next, err
}

// listOf returns the list of an owner's matching jobs, and how many jobs it may look at.
func (s *Store) listOf(ctx context.Context, owner apidb.Owner, f apibody.Filter) (joblist.List, int, error) {
	by, err := s.ChooseSearch(ctx, owner, f)
	l := joblist.List{Filter: f, By: by, Owner: owner, Slack: idtime.Slack}
	if l.ReadsRows() {
		return l, maxSearched, err
	}
	return l, maxSeen, err
}

// CountDead counts the owner's matching FAILED jobs. known is false if there may be more than MaxFigure.
func (s *Store) CountDead(ctx context.Context, owner apidb.Owner, f Filter) (n int64, known bool, err error) {
	f.Status = []jobstate.Status{jobstate.Failed}
	l, most, err := s.listOf(ctx, owner, f.Filter)
	if err != nil {
		return 0, false, apidb.Classify("count dead jobs", err)
	}
	if !l.ReadsRows() {
		most = apidb.MaxFigure
	}
	l.MostSeen = most + 1
	seen, err := l.Newest(ctx, s.db.DB())
	return seen.Fit, seen.Seen <= int64(most), apidb.Classify("count dead jobs", err)
}
