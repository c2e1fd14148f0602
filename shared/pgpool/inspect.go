package pgpool

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
)

// Through opens one connection as a pool does: by the pooler of an address, if there is one, and without parameters
// that the pooler would refuse.
func Through(ctx context.Context, address string) (*pgx.Conn, error) {
	if !IsBehind(address) {
		return Connect(ctx, address)
	}
	return Connect(ctx, ofPool(address), func(cfg *pgx.ConnConfig) {
		cfg.RuntimeParams, cfg.AfterConnect = map[string]string{}, nil
		cfg.DefaultQueryExecMode = pgx.QueryExecModeExec
	})
}

// IsPooled reports whether a pooler answers a connection: the number of the session that it names is its own, and not
// that of the server's process.
func IsPooled(ctx context.Context, conn *pgx.Conn) (bool, error) {
	var pid uint32
	err := conn.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&pid)
	return err == nil && pid != conn.PgConn().PID(), err
}

// PoolerLacks returns the settings that the role of an address, or the sessions of its pooler, do not have and need. It
// changes nothing: a pool that opens does.
func PoolerLacks(ctx context.Context, address string, options ...Option) (role int, sessions []string, err error) {
	cfg, err := readPoolAddress(address)
	if err != nil {
		return 0, nil, err
	}
	for _, option := range append(options, limits) {
		option(cfg)
	}
	p := behind(address, cfg)
	direct, err := p.connect(ctx)
	if err != nil {
		return 0, nil, err
	}
	defer func() { err = errors.Join(err, direct.Close(ctx)) }()
	lacking, err := p.lacking(ctx, direct)
	if err != nil {
		return 0, nil, err
	}
	want, err := p.settings(ctx, direct)
	if err != nil {
		return 0, nil, err
	}
	pooled, err := Through(ctx, address)
	if err != nil {
		return 0, nil, err
	}
	defer func() { err = errors.Join(err, pooled.Close(ctx)) }()
	have, err := p.settings(ctx, pooled)
	maps.DeleteFunc(want, func(name, value string) bool { return have[name] == value })
	return len(lacking), slices.Sorted(maps.Keys(want)), err
}
