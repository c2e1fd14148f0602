package jobstore

import (
	"context"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/joblist"
)

// ChooseSearch chooses how an owner's jobs are searched. A text in the form of a UUID is looked for as a job id, a
// trace id or an idempotency key. Another text is looked for as an idempotency key or error code, if a job of the owner
// has it. If none has, it is looked for among the newest jobs, as a tag or in the message of the last failure. The
// choice depends on no other condition and no cursor, so that all pages of a list make the same choice.
func (s *Store) ChooseSearch(ctx context.Context, owner apidb.Owner, f apibody.Filter) (joblist.SearchBy, error) {
	if _, isID := joblist.AsID(f.Search); f.Search == "" || isID {
		return joblist.ByText, nil
	}
	named := joblist.List{
		Filter: apibody.Filter{Search: f.Search, OwnerID: f.OwnerID}, By: joblist.ByName, Owner: owner, MostSeen: 1, Max: 1,
	}
	if named.Sparse() { // the index also has jobs of other owners
		named.MostSeen = maxSeen
	}
	seen, err := named.Newest(ctx, s.db.DB())
	if seen.Fit > 0 {
		return joblist.ByName, err
	}
	return joblist.ByText, err
}
