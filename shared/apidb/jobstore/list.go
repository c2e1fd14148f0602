package jobstore

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/idtime"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/shelves"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/nullable"
)

// maxSeen bounds how many jobs a list with a filter looks at to find matching ones. It looks at firstSeen first,
// which is enough where many match.
const (
	maxSeen   = 20_000
	firstSeen = 500
	// maxSearched is maxSeen for a search in messages, each of which is read from its row.
	maxSearched = 5_000
)

// list returns one job more than the filter's limit, if there is one. Matching jobs may be rare, so the number of
// jobs looked at is bounded; if the list has reached the bound, it continues after the job next.
func (s *Store) list(
	ctx context.Context, owner apidb.Owner, f Filter,
) (rows []gen.JobsListedRow, next uuid.UUID, err error) {
	if err := s.decideSearch(ctx, owner, &f); err != nil {
		return nil, next, err
	}
	if f.Event != (Event{}) {
		id, err := s.jobOfEvent(ctx, owner, f.Event)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil, next, nil
		}
		if err != nil {
			return nil, next, err
		}
		f.ofEvent = &id
	}
	p := f.params(owner)
	p.MostSeen = p.MaxJobs + p.Skip
	most := int32(maxSeen)
	if p.SearchMessage != nil {
		most = maxSearched
	}
	if f.narrow() || p.ByID && len(f.Status) > 0 || !owner.IsEveryone() && !owner.Indexed() {
		p.MostSeen = min(max(firstSeen, p.MostSeen), most)
	}
	seen, err := s.q.JobsSeen(ctx, p)
	if err == nil && int32(len(seen.JobIDs)) < p.MaxJobs && seen.Seen == int64(p.MostSeen) && p.MostSeen < most {
		p.MostSeen = most
		seen, err = s.q.JobsSeen(ctx, p)
	}
	if err != nil {
		return nil, next, err
	}
	switch {
	case int32(len(seen.JobIDs)) == p.MaxJobs: // one more than is shown; some of them may be deleted by now
		next = seen.JobIDs[p.MaxJobs-2]
	case seen.Seen == int64(p.MostSeen):
		next = seen.LastID
	}
	rows, err = s.q.JobsListed(ctx, gen.JobsListedParams{
		JobIDs: seen.JobIDs, Owner: p.Owner, MaxBytes: apidb.MaxListBytes,
	})
	return rows, next, err
}

// CountDead counts the owner's matching FAILED jobs. known is false if there may be more than MaxFigure.
func (s *Store) CountDead(ctx context.Context, owner apidb.Owner, f Filter) (n int64, known bool, err error) {
	owner, some := f.within(owner)
	if !some {
		return 0, true, nil
	}
	f.Status, f.Skip, f.Limit = []jobstate.Status{jobstate.Failed}, 0, 0
	if err := s.decideSearch(ctx, owner, &f); err != nil {
		return 0, false, apidb.Classify("count dead jobs", err)
	}
	p := f.params(owner)
	most := int32(apidb.MaxFigure)
	if p.SearchMessage != nil {
		most = maxSearched
	}
	p.MostSeen = most + 1
	seen, err := s.q.JobsSeen(ctx, p)
	return seen.Fit, seen.Seen <= int64(most), apidb.Classify("count dead jobs", err)
}

// within returns the owner whose jobs the filter selects among the jobs that owner sees. some is false if it can select
// none.
func (f Filter) within(owner apidb.Owner) (whose apidb.Owner, some bool) {
	if f.OwnerID == "" {
		return owner, true
	}
	return apidb.OwnerOf(f.OwnerID), owner.Sees(f.OwnerID)
}

// narrow reports whether the filter excludes jobs that stand between matching ones in the index. The jobs of a state
// have a shelf of their own.
func (f Filter) narrow() bool {
	return f.JobType != "" || f.Queue != "" || f.Tag != "" || f.OrderingKey != "" || f.ErrorCode != "" ||
		f.NoErrorCode || f.TraceID != nil || f.IdempotencyKey != "" || f.After != nil || f.BatchID != nil ||
		f.FanOutID != nil || f.Search != "" || f.byEnd()
}

// byEnd reports whether the filter has ended jobs only, by the time of their end.
func (f Filter) byEnd() bool { return f.EndedSince != nil || f.EndedUntil != nil }

func (f Filter) params(owner apidb.Owner) gen.JobsSeenParams {
	if f.byEnd() && len(f.Status) == 0 {
		f.Status = []jobstate.Status{jobstate.Completed, jobstate.Failed, jobstate.Cancelled}
	}
	p := gen.JobsSeenParams{
		Owner: owner.Filter(), JobType: nullable.Text(f.JobType), Queue: nullable.Text(f.Queue), Tag: nullable.Text(f.Tag),
		OrderingKey: nullable.Text(f.OrderingKey), ErrorCode: nullable.Text(f.ErrorCode),
		IdempotencyKey: nullable.Text(f.IdempotencyKey),
		NoErrorCode:    f.NoErrorCode, After: f.After, BatchID: f.BatchID,
		TraceID: f.TraceID, Since: f.Since, Until: f.Until, EndedSince: f.EndedSince, EndedUntil: f.EndedUntil,
		BeforeID: uuid.Max, MaxJobs: int32(f.Limit + 1), Skip: int32(f.Skip),
	}
	if len(f.Status) > 0 {
		p.Statuses = shelves.Texts(f.Status)
	}
	if f.Since != nil {
		p.AfterID = idtime.First(f.Since.Add(-idtime.Slack))
	}
	if f.After != nil {
		p.AfterID = idtime.Later(p.AfterID, idtime.FirstAfter(*f.After, idtime.Slack))
	}
	for _, until := range []*time.Time{f.Until, f.EndedUntil} { // a job is accepted before its end
		if until != nil {
			p.BeforeID = idtime.Earlier(p.BeforeID, idtime.First(until.Add(idtime.Slack)))
		}
	}
	if f.Before != uuid.Nil {
		p.BeforeID = idtime.Earlier(p.BeforeID, f.Before)
	}
	p.Search, p.SearchID, p.SearchMessage = f.search.Terms(f.Search)
	f.chooseSource(&p, owner)
	return p
}

// chooseSource sets the parameter of the source that has the fewest jobs that do not match.
// Why so few indexes serve all lists: docs/decisions/api.md#lists-add-no-index-entry-that-every-job-pays-for
func (f Filter) chooseSource(p *gen.JobsSeenParams, owner apidb.Owner) {
	unowned := shelves.Of(f.Status...)
	switch {
	case f.ofEvent != nil:
		p.ByJobID = f.ofEvent
	case f.FanOutID != nil: // no other source has its jobs only, and none of the conditions names it
		p.ByFanOutID = f.FanOutID
	case p.IdempotencyKey != nil && owner.IsEveryone():
		p.ByIdempotencyKey = p.IdempotencyKey
	case p.IdempotencyKey != nil:
		p.ByOwnedIdempotencyKey = p.IdempotencyKey
	case p.TraceID != nil:
		p.ByTraceID, p.TraceEnds = p.TraceID, afterNear(*f.TraceID)
	case p.After != nil:
		p.ByAfter = p.After
	case p.BatchID != nil:
		p.BatchStates = shelves.States(f.Status)
	case p.OrderingKey != nil && owner.Indexed():
		p.ByOwnedOrderingKey = p.OrderingKey
	case p.OrderingKey != nil:
		p.ByOrderingKey = p.OrderingKey
	case p.ErrorCode != nil && owner.Indexed():
		p.ByOwnedErrorCode = p.ErrorCode
	case p.ErrorCode != nil:
		p.ByErrorCode = p.ErrorCode
	case f.search != searchText:
		f.searchSources(p, owner)
	case owner.Indexed():
		p.ByOwnedShelves = shelves.OwnedOf(f.Status...)
	case len(unowned) > 0:
		p.ByShelves = unowned
	default:
		p.ByID = true
	}
}

// afterNear returns the first id that is too late for a job to be found by the time in its trace id. As in the index
// jobs_of_trace, 40 bits of a UUIDv7 are its time in steps of 256 ms.
func afterNear(trace uuid.UUID) *uuid.UUID {
	var after uuid.UUID
	copy(after[:5], trace[:5])
	for i := 4; i >= 0; i-- {
		if after[i]++; after[i] != 0 {
			return &after
		}
	}
	return &uuid.Max
}
