package jobstore

import (
	"context"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
)

// SearchBy names the indexes that a search uses.
type SearchBy string

const (
	searchText SearchBy = ""     // no index: it looks at the newest jobs, a bounded number for each page
	searchID   SearchBy = "id"   // job ids, trace ids and idempotency keys
	searchName SearchBy = "name" // idempotency keys and error codes
)

// decideSearch chooses how a list is searched. A text in the form of a UUID is looked for as a job id, a trace id or
// an idempotency key. Another text is looked for as an idempotency key or error code, if a job of the owner has it.
// If none has, it is looked for among the newest jobs, as a tag or in the message of the last failure. The choice
// does not depend on the cursor, so that all pages of a list make the same choice.
func (s *Store) decideSearch(ctx context.Context, owner apidb.Owner, f *Filter) error {
	if f.Search == "" {
		return nil
	}
	if _, ok := f.searchedID(); ok {
		f.search = searchID
		return nil
	}
	asked := Filter{Search: f.Search, search: searchName}
	p := asked.params(owner)
	p.MaxJobs, p.MostSeen = 1, 1
	if !owner.IsEveryone() && !owner.Indexed() { // the index also has jobs of other owners
		p.MostSeen = maxSeen
	}
	seen, err := s.q.JobsSeen(ctx, p)
	if err == nil && seen.Fit > 0 {
		f.search = searchName
	}
	return err
}

// searchedID parses the text of a search as an id, if it has the form of a UUID.
func (f *Filter) searchedID() (id uuid.UUID, ok bool) {
	id, err := uuid.Parse(f.Search)
	return id, err == nil && len(f.Search) == len(uuid.Nil.String())
}

// ChooseSearch chooses how an owner's jobs are searched for a text, as decideSearch does for a list. ownerID names
// the one owner whose jobs are searched; empty: all jobs that owner sees.
func (s *Store) ChooseSearch(ctx context.Context, owner apidb.Owner, ownerID, text string) (SearchBy, error) {
	f := Filter{Search: text, OwnerID: ownerID}
	owner, some := f.within(owner)
	if !some {
		return searchText, nil
	}
	err := s.decideSearch(ctx, owner, &f)
	return f.search, err
}

// Terms returns the values of which a matching job has at least one; nil does not count.
func (by SearchBy) Terms(searched string) (text *string, asID *uuid.UUID, inMessage *string) {
	f := Filter{Search: searched}
	if f.Search == "" {
		return nil, nil, nil
	}
	switch id, ok := f.searchedID(); {
	case ok:
		asID = &id
	case by == searchText:
		inMessage = inSnapshot(f.Search)
	}
	return &f.Search, asID, inMessage
}

// inSnapshot returns a text as it is encoded in a job-status event.
func inSnapshot(text string) *string {
	quoted, _ := jsontext.AppendQuote(nil, text)
	inner := string(quoted[1 : len(quoted)-1])
	return &inner
}

// searchSources sets the parameters of the sources of a search by indexes.
func (f *Filter) searchSources(p *gen.JobsSeenParams, owner apidb.Owner) {
	if owner.IsEveryone() {
		p.ByIdempotencyKey = p.Search
	} else {
		p.ByOwnedIdempotencyKey = p.Search
	}
	switch {
	case p.SearchID != nil:
		p.ByJobID, p.ByTraceID, p.TraceEnds = p.SearchID, p.SearchID, afterNear(*p.SearchID)
	case owner.Indexed():
		p.ByOwnedErrorCode = p.Search
	default:
		p.ByErrorCode = p.Search
	}
}
