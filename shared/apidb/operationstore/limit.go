package operationstore

import (
	"context"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
)

// Limit sets how many unfinished operations an owner may have; 0: any number. Concurrent requests may exceed it a
// little. Limit must be called before all other methods.
func (s *Store) Limit(most int) { s.most = most }

// checkLimit refuses an operation of an owner that has reached its limit.
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

// ListenOperations calls wake whenever an operation has work to do. Meanwhile the store notifies watchers of the
// commands that it keeps. It ends with ctx or with its connection.
func (s *Store) ListenOperations(ctx context.Context, wake func()) error {
	return s.db.ListenAndNotify(ctx, "jobweaver_operations", wake)
}
