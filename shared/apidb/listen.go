package apidb

import (
	"context"

	"github.com/jobweaver/jobweaver/shared/pgpool"
)

// ListenOperations calls wake whenever there is something to be done for an operation. It ends with ctx or with its
// connection.
func (s *Store) ListenOperations(ctx context.Context, wake func()) error {
	return pgpool.Listen(ctx, s.pool, "jobweaver_operations", wake)
}

// ListenDeliveries calls wake whenever the end of a job is to be delivered. It ends with ctx or with its connection.
func (s *Store) ListenDeliveries(ctx context.Context, wake func()) error {
	return pgpool.Listen(ctx, s.pool, "jobweaver_deliveries", wake)
}

// ListenSchedules calls wake whenever a schedule has changed. It ends with ctx or with its connection.
func (s *Store) ListenSchedules(ctx context.Context, wake func()) error {
	return pgpool.Listen(ctx, s.pool, "jobweaver_schedules", wake)
}
