package apidb

import (
	"context"

	"github.com/jobweaver/jobweaver/shared/pgpool"
)

// ListenOperations calls wake whenever there is something to be done for an operation. The store notifies those who
// watch of its commands meanwhile. It ends with ctx or with its connection.
func (s *Store) ListenOperations(ctx context.Context, wake func()) error {
	return s.listenBesides(ctx, "jobweaver_operations", wake)
}

// ListenDeliveries calls wake whenever the end of a job is to be delivered. It ends with ctx or with its connection.
func (s *Store) ListenDeliveries(ctx context.Context, wake func()) error {
	return pgpool.Listen(ctx, s.pool, "jobweaver_deliveries", wake)
}

// ListenSchedules calls wake whenever a schedule has changed. The store notifies those who watch of the jobs that it
// makes meanwhile. It ends with ctx or with its connection.
func (s *Store) ListenSchedules(ctx context.Context, wake func()) error {
	return s.listenBesides(ctx, "jobweaver_schedules", wake)
}

// listenBesides is pgpool.Listen that follows who watches by the same connection.
func (s *Store) listenBesides(ctx context.Context, channel string, wake func()) error {
	return pgpool.ListenTo(ctx, s.pool, s.asksThen(ctx, wake), map[string]func(string) error{
		channel:         func(string) error { wake(); return nil },
		channelWatching: func(string) error { return s.beginTelling(ctx) },
	})
}
