package pgpool

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Listen calls wake when it has begun to listen to a channel, because of earlier changes, and then at each
// notification. It returns when ctx or its connection ends.
func Listen(ctx context.Context, pool *pgxpool.Pool, channel string, wake func()) error {
	woken := func() error { wake(); return nil }
	return ListenTo(ctx, pool, woken, map[string]func(string) error{channel: func(string) error { return woken() }})
}

// ListenTo listens to some channels by one connection. It calls begun when it has begun to, and then the function of a
// channel with the payload of each notification. It returns when ctx or its connection ends, when the pool drops its
// sessions, or with an error of any function.
func ListenTo(
	ctx context.Context, pool *pgxpool.Pool, begun func() error, on map[string]func(payload string) error,
) error {
	channels := slices.Sorted(maps.Keys(on))
	ctx, end := sessionsOf(pool).untilDropped(ctx)
	defer end(nil)
	raw, err := Session(ctx, pool) // it has a LISTEN, so it must not go back to the pool
	if err != nil {
		return fmt.Errorf("listen to %s: %w", channels, err)
	}
	defer func() { _ = raw.Close(context.WithoutCancel(ctx)) }()
	of := map[string]func(string) error{} // by the names at the server
	for _, channel := range channels {
		own := channelIn(SchemaOf(pool), channel)
		of[own] = on[channel]
		if _, err := raw.Exec(ctx, "LISTEN "+pgx.Identifier{own}.Sanitize()); err != nil {
			return fmt.Errorf("listen to %s: %w", channel, err)
		}
	}
	if err := begun(); err != nil {
		return err
	}
	for {
		notification, err := raw.WaitForNotification(ctx)
		if err != nil {
			err = cmp.Or(context.Cause(ctx), err)
			return fmt.Errorf("listen to %s: %w", channels, err)
		}
		if err := of[notification.Channel](notification.Payload); err != nil {
			return err
		}
	}
}
