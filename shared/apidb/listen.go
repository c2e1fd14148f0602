package apidb

import (
	"context"

	"github.com/jobweaver/jobweaver/shared/pgpool"
)

// ListenOperations calls wake whenever there is something to be done for an operation. The store notifies those who
// watch of its commands meanwhile. It ends with ctx or with its connection.
func (s *Store) ListenOperations(ctx context.Context, wake func()) error {
	return s.ListenAndNotify(ctx, "jobweaver_operations", wake)
}

// ListenAndNotify is pgpool.Listen that follows who watches by the same connection.
func (s *Store) ListenAndNotify(ctx context.Context, channel string, wake func()) error {
	return pgpool.ListenTo(ctx, s.pool, s.asksThen(ctx, wake), map[string]func(string) error{
		channel:         func(string) error { wake(); return nil },
		channelWatching: func(string) error { return s.beginTelling(ctx) },
	})
}

// Listen calls wake whenever something is notified on a channel. It ends with ctx or with its connection.
func (s *Store) Listen(ctx context.Context, channel string, wake func()) error {
	return pgpool.Listen(ctx, s.pool, channel, wake)
}
