package operationstore

import (
	"context"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
)

// Limit sets how many unfinished operations an owner may have; 0: any number. Operations that are made at the same time
// may exceed it a little. Limit must be called before anything else.
func (s *Store) Limit(most int) { s.most = most }

// checkLimit refuses an operation of an owner that has as many unfinished ones as it may have.
func (s *Store) checkLimit(ctx context.Context, q *gen.Queries, owner apidb.Owner) error {
	if s.most == 0 {
		return nil
	}
	n, err := q.OperationsUnfinishedCount(ctx, gen.OperationsUnfinishedCountParams{
		Owner: owner.Filter(), Most: int32(s.most + 1),
	})
	if err == nil && n > int64(s.most) {
		err = &apidb.TooManyError{What: "unfinished operations", Most: s.most, Ends: true}
	}
	return err
}

// ListenOperations calls wake whenever there is something to be done for an operation. The store notifies those who
// watch of its commands meanwhile. It ends with ctx or with its connection.
func (s *Store) ListenOperations(ctx context.Context, wake func()) error {
	return s.db.ListenAndNotify(ctx, "jobweaver_operations", wake)
}
