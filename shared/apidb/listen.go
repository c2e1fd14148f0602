package apidb

import (
	"context"

	"github.com/jobweaver/jobweaver/shared/pgpool"
)

// ListenAndNotify is pgpool.Listen that also follows, on the same connection, whether clients watch.
func (s *Store) ListenAndNotify(ctx context.Context, channel string, wake func()) error {
	return pgpool.ListenTo(ctx, s.pool, s.askThen(ctx, wake), map[string]func(string) error{
		channel:         func(string) error { wake(); return nil },
		channelWatching: func(string) error { return s.beginNotifying(ctx) },
	})
}

// Listen calls wake whenever something is notified on a channel. It ends with ctx or with its connection.
func (s *Store) Listen(ctx context.Context, channel string, wake func()) error {
	return pgpool.Listen(ctx, s.pool, channel, wake)
}
