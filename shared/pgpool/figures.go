package pgpool

import (
	"cmp"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// Figures returns the statistics of a pool, for the metrics.
func Figures(pool *pgxpool.Pool) telemetry.Pool {
	s := pool.Stat()
	return telemetry.Pool{
		Database: cmp.Or(SchemaOf(pool), pool.Config().ConnConfig.Database), Bytes: sessionsOf(pool).bytes.Load(),
		Used: s.AcquiredConns(), Idle: s.IdleConns(), Opening: s.ConstructingConns(), Limit: s.MaxConns(),
		Acquires: s.AcquireCount(), Waits: s.EmptyAcquireCount(), Waited: s.EmptyAcquireWaitTime(),
	}
}
