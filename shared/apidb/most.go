package apidb

import (
	"context"

	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
)

// Most is how many things an owner may have; 0: any number. If several are made at the same time, there may be a few
// more.
type Most struct {
	Schedules  int
	Operations int // that are unfinished
}

// Limit sets how many an owner may have. It is for the start.
func (s *Store) Limit(most Most) { s.most = most }

// fewSchedules is asked within the transaction that has made one more.
func (s *Store) fewSchedules(ctx context.Context, q *gen.Queries, owner string) error {
	if s.most.Schedules == 0 {
		return nil
	}
	n, err := q.SchedulesCount(ctx, gen.SchedulesCountParams{OwnerID: owner, Most: int32(s.most.Schedules + 1)})
	if err == nil && n > int64(s.most.Schedules) {
		err = &TooManyError{What: "schedules", Most: s.most.Schedules}
	}
	return err
}

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
