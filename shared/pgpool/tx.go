package pgpool

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// txTries is how often a transaction runs before its conflict with another is an error.
const txTries = 5

// Tx runs fn in one transaction and commits it. If PostgreSQL aborts the transaction in favor of another one
// (deadlock, serialization), fn runs again, so it must have no effect except through tx. Classify classifies
// the error.
func Tx(ctx context.Context, pool *pgxpool.Pool, fn func(tx pgx.Tx) error) error {
	return repeated(ctx, func() error { return pgx.BeginFunc(ctx, pool, fn) })
}

func repeated(ctx context.Context, transaction func() error) error {
	for try := 1; ; try++ {
		err := transaction()
		if !isConflict(err) || try == txTries {
			return Classify(err)
		}
		// Without jitter the two transactions would meet again in the same order.
		wait := time.Duration(try) * (5 + rand.N[time.Duration](20)) * time.Millisecond
		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait):
		}
	}
}
