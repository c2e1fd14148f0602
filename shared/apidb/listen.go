package apidb

import (
	"context"
	"fmt"
)

// ListenOperations calls wake whenever there is something to be done for an operation. It ends with ctx or with its
// connection.
func (s *Store) ListenOperations(ctx context.Context, wake func()) error {
	return s.listen(ctx, "jobweaver_operations", wake)
}

func (s *Store) listen(ctx context.Context, channel string, wake func()) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("listen to %s: %w", channel, err)
	}
	// The connection has a LISTEN on it: it does not go back to the pool.
	raw := conn.Hijack()
	defer func() { _ = raw.Close(context.WithoutCancel(ctx)) }()
	if _, err := raw.Exec(ctx, "LISTEN "+channel); err != nil {
		return fmt.Errorf("listen to %s: %w", channel, err)
	}
	wake() // what came before we listened
	for {
		if _, err := raw.WaitForNotification(ctx); err != nil {
			return fmt.Errorf("listen to %s: %w", channel, err)
		}
		wake()
	}
}
