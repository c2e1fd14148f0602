package apidb

import (
	"context"

	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
)

// Most is how many things an owner may have; 0: any number. If several are made at the same time, there may be a few
// more.
type Most struct {
	Operations int // that are unfinished
}

// Limit sets how many an owner may have. It is for the start.
func (s *Store) Limit(most Most) { s.most = most }

// fewOperations is the same of unfinished operations.
func (s *Store) fewOperations(ctx context.Context, q *gen.Queries, owner Owner) error {
	if s.most.Operations == 0 {
		return nil
	}
	n, err := q.OperationsUnfinishedCount(ctx, gen.OperationsUnfinishedCountParams{
		Owner: owner.Filter(), Most: int32(s.most.Operations + 1),
	})
	if err == nil && n > int64(s.most.Operations) {
		err = &TooManyError{What: "unfinished operations", Most: s.most.Operations, Ends: true}
	}
	return err
}
