package pgpool

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Listen calls wake once it listens to a channel, for what came before, and then at each notification. It ends with
// ctx or with its connection.
func Listen(ctx context.Context, pool *pgxpool.Pool, channel string, wake func()) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("listen to %s: %w", channel, err)
	}
	// The connection has a LISTEN on it: it does not go back to the pool.
	raw := conn.Hijack()
	defer func() { _ = raw.Close(context.WithoutCancel(ctx)) }()
	if _, err := raw.Exec(ctx, "LISTEN "+channel); err != nil {
		return fmt.Errorf("listen to %s: %w", channel, err)
	}
	wake()
	for {
		if _, err := raw.WaitForNotification(ctx); err != nil {
			return fmt.Errorf("listen to %s: %w", channel, err)
		}
		wake()
	}
}
