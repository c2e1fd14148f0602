package pgpool

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// between stands between the address of a pooler and that of its server: neither has that.
const between = "\x01"

// Behind returns an address at which pools connect by a pooler, and single connections, which migrate, listen or hold a
// lock, to its server.
// Why: docs/decisions/databases.md#behind-a-pooler-the-role-has-the-settings-of-its-sessions
func Behind(pooler, server string) string { return pooler + between + server }

// IsBehind reports whether pools of an address connect by a pooler.
func IsBehind(address string) bool { return strings.Contains(address, between) }

// ofPool returns the address of the pooler, if there is one, and ofServer that of its server.
func ofPool(address string) string { return strings.Split(address, between)[0] }

func ofServer(address string) string {
	all := strings.Split(address, between)
	return all[len(all)-1]
}

// directName is the application name of single connections, which no pooler has.
const directName = "jobweaver-direct"

// configuring is an advisory lock: two concurrent changes of a role's settings may fail each other.
const configuring = 0x6a77_7073

// pooler has what the pool of an address behind a pooler needs at the server; nil: there is no pooler.
type pooler struct {
	server   string            // its address
	sessions map[string]string // the settings that the role gives its sessions
}

// behind takes the settings of sessions out of a pool's configuration: a pooler refuses most parameters of a start, and
// hands one session to many clients, so the role has them. Statements are not prepared for the same reason.
func behind(address string, cfg *pgxpool.Config) *pooler {
	p := &pooler{server: ofServer(address), sessions: maps.Clone(cfg.ConnConfig.RuntimeParams)}
	delete(p.sessions, "application_name")
	delete(p.sessions, "role")
	maps.DeleteFunc(cfg.ConnConfig.RuntimeParams, func(name, _ string) bool { return name != "application_name" })
	if !strings.Contains(address, "default_query_exec_mode") {
		cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	return p
}

// errOtherSessions is about sessions that the pooler opened before the role had its settings, or in which another
// client has changed them.
var errOtherSessions = errors.New("sessions of the pooler do not have the settings that ALTER ROLE gave their role " +
	"(PgBouncer: RECONNECT on its console)")

// check gives the role of the address its settings, and returns an error unless the pooler's sessions have them.
func (p *pooler) check(ctx context.Context, pool *pgxpool.Pool) error {
	if p == nil {
		return pool.Ping(ctx)
	}
	changed, err := p.configure(ctx)
	if err != nil {
		return fmt.Errorf("give the role the settings of its sessions: %w", err)
	}
	conn, err := p.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	want, err := p.settings(ctx, conn)
	if err != nil {
		return err
	}
	have, err := p.settings(ctx, pool)
	if err != nil {
		return err
	}
	maps.DeleteFunc(want, func(name, value string) bool { return have[name] == value })
	if changed || len(want) > 0 {
		if err := endIdle(ctx, conn); err != nil {
			return err
		}
	}
	if len(want) > 0 {
		return fmt.Errorf("%w: %s", errOtherSessions, strings.Join(slices.Sorted(maps.Keys(want)), ", "))
	}
	return nil
}

// configure stores those settings of the role that differ. They hold in this database only.
func (p *pooler) configure(ctx context.Context) (changed bool, err error) {
	conn, err := p.connect(ctx)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	return changed, pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", configuring); err != nil {
			return err
		}
		statements, err := p.lacking(ctx, tx)
		if err == nil && len(statements) > 0 {
			changed = true
			_, err = tx.Exec(ctx, strings.Join(statements, "; "))
		}
		return err
	})
}

// queryer is a connection, a pool or a transaction.
type queryer interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// lacking returns the statements that give the role the settings that it does not have.
func (p *pooler) lacking(ctx context.Context, db queryer) ([]string, error) {
	rows, err := db.Query(ctx, `
		SELECT format('ALTER ROLE CURRENT_USER IN DATABASE %I SET %I = %L', current_database(), name, value)
		FROM jsonb_each_text($1) AS wanted(name, value) JOIN pg_settings USING (name)
		WHERE NOT EXISTS (SELECT FROM pg_db_role_setting WHERE setrole = current_user::regrole
			AND setdatabase = (SELECT oid FROM pg_database WHERE datname = current_database())
			AND wanted.name || '=' || wanted.value = ANY (setconfig))`, p.sessions)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// settings returns those of a session, without those of its connection.
func (p *pooler) settings(ctx context.Context, db queryer) (map[string]string, error) {
	rows, err := db.Query(ctx, "SELECT name, setting FROM pg_settings WHERE name = ANY ($1) AND name NOT LIKE 'tcp%'",
		slices.Collect(maps.Keys(p.sessions)))
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	var name, value string
	_, err = pgx.ForEachRow(rows, []any{&name, &value}, func() error { found[name] = value; return nil })
	return found, err
}

// endIdle ends idle sessions of the role that are none of its direct ones: the pooler opens others.
func endIdle(ctx context.Context, conn *pgx.Conn) error {
	telemetry.Logger(ctx).WarnContext(ctx,
		"idle sessions of the pooler are ended: they do not have the settings of the role")
	_, err := conn.Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE usename = current_user AND datname = current_database() AND state = 'idle'
			AND (application_name = '' OR application_name LIKE 'jobweaver-%')
			AND application_name NOT LIKE $1 AND application_name NOT LIKE 'jobweaver-serve%'`, directName+"%")
	return err
}

// connect opens a session at the server itself, with the settings of its role.
func (p *pooler) connect(ctx context.Context) (*pgx.Conn, error) {
	return Connect(ctx, p.server, func(cfg *pgx.ConnConfig) {
		Rename(cfg.RuntimeParams, directName)
		named := cfg.RuntimeParams["application_name"]
		cfg.RuntimeParams, cfg.AfterConnect = map[string]string{"application_name": named}, nil
	})
}

// Session returns a connection for a caller that needs a session of its own, and closes it: one of the pool's, or one
// beside its pooler.
func Session(ctx context.Context, pool *pgxpool.Pool) (*pgx.Conn, error) {
	if p := sessionsOf(pool).pooler; p != nil {
		conn, err := p.connect(ctx) // the role has its settings
		if err == nil {
			registerCodecs(conn.TypeMap())
		}
		return conn, err
	}
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	return conn.Hijack(), nil
}

// unbounded undoes what the role of a single connection has for sessions behind a pooler, and keeps after a pooler is
// gone: a migration takes longer.
func unbounded(ctx context.Context, conn *pgconn.PgConn) error {
	return conn.ExecParams(ctx, `SELECT set_config(name, boot_val, false) FROM pg_settings
		WHERE source IN ('user', 'database user') AND (name LIKE '%\_timeout' OR name LIKE 'enable\_%'
			OR name LIKE 'tcp\_%' OR name IN ('jit', 'plan_cache_mode'))`, nil, nil, nil, nil).Read().Err
}
