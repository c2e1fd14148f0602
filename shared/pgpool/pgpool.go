// Package pgpool opens PostgreSQL pools for the stores, runs their transactions and classifies
// their errors.
package pgpool

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// openPatience is how long Open waits for a server that is still starting.
const openPatience = 20 * time.Second

// Option changes how a pool is opened. Parameters of the database's address take precedence over options.
type Option func(*pgxpool.Config)

// Open makes a pool for url when its server answers. It waits for a server that is away, and fails
// at once if waiting cannot help: a wrong password, no such database, a certificate that is not trusted.
func Open(ctx context.Context, url string, options ...Option) (*pgxpool.Pool, error) {
	pool, err := Lazy(ctx, url, options...)
	if err != nil {
		return nil, err
	}
	reach := func(ctx context.Context) error { return sessionsOf(pool).pooler.check(ctx, pool) }
	if err := Await(ctx, reach); err != nil {
		pool.Close()
		return nil, fmt.Errorf("reach database: %w", pointOut(err))
	}
	return pool, nil
}

// Lazy makes a pool for url that connects when it is first used.
func Lazy(ctx context.Context, url string, options ...Option) (*pgxpool.Pool, error) {
	cfg, err := readPoolAddress(url)
	if err != nil {
		return nil, fmt.Errorf("read database address: %w", err)
	}
	if cfg.ConnConfig.ConnectTimeout == 0 {
		cfg.ConnConfig.ConnectTimeout = 5 * time.Second
	}
	sessions := &sessions{}
	cfg.ConnConfig.Tracer = spans{databaseOf(cfg.ConnConfig), sessions}
	cfg.BeforeConnect = Renewal(ofPool(url))
	for _, option := range append(options, limits) {
		option(cfg)
	}
	maps.DeleteFunc(cfg.ConnConfig.RuntimeParams, func(_, value string) bool { return value == asItIs })
	Rename(cfg.ConnConfig.RuntimeParams, cfg.ConnConfig.RuntimeParams["application_name"])
	if cfg.ConnConfig.RuntimeParams[readOnly] != "on" {
		cfg.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
		cfg.ConnConfig.OnPgError = sessions.onError
	}
	if IsBehind(url) {
		sessions.pooler = behind(url, cfg)
	}
	return sharedOf(ctx).open(url, cfg, func() (*pgxpool.Pool, error) {
		cfg.AfterConnect = afterConnect(cfg)
		pool, err := pgxpool.NewWithConfig(ctx, cfg)
		if err != nil {
			return nil, fmt.Errorf("open database pool: %w", err)
		}
		sessions.pool.Store(pool)
		return pool, nil
	})
}

// Await calls try until the database answers, for 20 s. It returns at once if waiting cannot help. It logs the first
// failure.
func Await(ctx context.Context, try func(context.Context) error) error {
	logged := false
	for deadline := time.Now().Add(openPatience); ; {
		err := try(ctx)
		if err == nil || !MayPass(err) || time.Now().After(deadline) {
			return err
		}
		if !logged {
			logged = true
			telemetry.Logger(ctx).WarnContext(ctx, "waiting for the database", "patience", openPatience, "error", err)
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// ApplicationName sets the name that the server shows in pg_stat_activity.
func ApplicationName(name string) Option {
	return func(cfg *pgxpool.Config) { set(cfg, map[string]string{"application_name": name}) }
}

// readOnly is the setting of a session that writes nothing.
const readOnly = "default_transaction_read_only"

// ReadOnly makes transactions read only, so that a standby is enough, and formats dates by ISO 8601. It lifts the
// timeouts for transactions that hold locks: a result may be long, and its reader slow.
func ReadOnly() Option {
	return func(cfg *pgxpool.Config) {
		UsersDatabase()(cfg)
		set(cfg, map[string]string{
			readOnly: "on", "datestyle": "ISO, YMD",
			transactionTimeout: "0", "tcp_user_timeout": "0", "idle_in_transaction_session_timeout": "30s",
		})
	}
}

// UsersDatabase leaves the search path and the role of sessions as the database and the role of the address have them.
func UsersDatabase() Option {
	return func(cfg *pgxpool.Config) {
		set(cfg, map[string]string{"search_path": asItIs, "role": asItIs})
		if tracer, ok := cfg.ConnConfig.Tracer.(spans); ok {
			tracer.ofUser = true
		}
	}
}

// asItIs is the value of a setting that is left as it is.
const asItIs = ""

// IndexOnly keeps plans stable without fresh statistics, for stores whose every statement has an index
// to follow. A hot table grows from nothing to a hundred thousand rows before autovacuum has looked
// at it once; the planner then prefers a bitmap or a sequential scan, a sort and a hash join over the
// whole table for every batch (measured: 3,000 jobs/s instead of 25,000). Without those choices it
// walks the index in order and joins by nested loops, however old the statistics are. JIT is off because
// before PostgreSQL 18 a plan that needs a disabled node costs 1e10, and a plan of that cost is compiled
// first by default (measured on 15: jobs that end in 4 s did not end in 60).
func IndexOnly() Option {
	return func(cfg *pgxpool.Config) {
		set(cfg, map[string]string{
			// Why: docs/decisions/databases.md#statements-use-indexes-whatever-the-statistics
			"enable_seqscan":    "off",
			"enable_bitmapscan": "off",
			"enable_hashjoin":   "off",
			"enable_mergejoin":  "off",
			"jit":               "off",
		})
	}
}

// PlannedOnce makes the server plan each statement once a connection, with a plan that suits any values. By default it
// plans a statement with arrays anew each time, since it takes a list of one for cheaper than a list of unknown length:
// for a single job that takes longer than the statement.
func PlannedOnce() Option {
	return func(cfg *pgxpool.Config) { set(cfg, map[string]string{"plan_cache_mode": "force_generic_plan"}) }
}

func set(cfg *pgxpool.Config, params map[string]string) {
	setMissing(cfg.ConnConfig.RuntimeParams, params)
}

func setMissing(given, params map[string]string) {
	for name, value := range params {
		if _, is := given[name]; !is {
			given[name] = value
		}
	}
}
