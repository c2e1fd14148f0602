package apidb

import (
	"context"

	"github.com/jobweaver/jobweaver/shared/pgpool"
)

// ListenAndNotify is pgpool.Listen that follows which clients watch by the same connection.
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
