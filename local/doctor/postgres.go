package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/pgpool"
)

// needed are settings of the server with the values that they may have, and why.
var needed = []struct{ name, values, why string }{
	{"fsync", "on", "a crash of the machine destroys the databases"},
	{"full_page_writes", "on", "a crash of the machine destroys pages"},
	{"synchronous_commit", "on local remote_write remote_apply", "a crash loses jobs that were accepted"},
	{"autovacuum", "on", "tables and indexes grow without end"},
	{"track_counts", "on", "autovacuum does not know what to clean up"},
	{"server_encoding", "UTF8", "jobs have any Unicode text: create the database again with ENCODING UTF8"},
}

func postgres(ctx context.Context, l *look) {
	l.each(false, func(d *database) error {
		for _, setting := range needed {
			var value string
			var right bool
			err := d.conn.QueryRow(ctx, "SELECT current_setting($1), current_setting($1) = ANY (string_to_array($2, ' '))",
				setting.name, setting.values).Scan(&value, &right)
			if err != nil {
				return err
			}
			if !right {
				best, _, _ := strings.Cut(setting.values, " ")
				l.find(d.where, setting.name+" is "+value+": "+setting.why, "set it to "+best)
			}
		}
		return nil
	})
	l.each(true, func(d *database) error {
		var used, most int
		err := d.conn.QueryRow(ctx, `SELECT (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
			current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int`).Scan(&used, &most)
		if err == nil && used*100 > most*l.limits.crowded {
			l.find(d.where, fmt.Sprintf("%d of %d connections are in use", used, most),
				"raise max_connections, or lower pool_max_conns (docs/operations.md#sizing)")
		}
		l.fact("%s: %d of %d connections", d.where, used, most)
		return err
	})
}

func poolers(ctx context.Context, l *look) {
	for d := range l.answering() {
		if err := l.pooler(ctx, d); err != nil {
			l.unseen("%s: %v", d.where, err)
		}
	}
}

func (l *look) pooler(ctx context.Context, d *database) error {
	address := d.Address.Reveal()
	pooled, err := pgpool.IsPooled(ctx, d.conn)
	if err != nil {
		return err
	}
	if pooled && !pgpool.IsBehind(address) {
		l.find(d.where, "its address leads to a connection pooler", "let DATABASE_DIRECT_URL name the server itself")
	} else if pooled {
		l.find(d.where, "DATABASE_DIRECT_URL leads to a connection pooler", "let it name the server itself")
	}
	if pooled || !pgpool.IsBehind(address) {
		return nil
	}
	through, err := pgpool.Through(ctx, address)
	if err != nil {
		l.find(d.where, "the pooler cannot be used: "+err.Error(),
			"correct the address, the user or the password at the pooler")
		return nil
	}
	defer func() { _ = through.Close(ctx) }()
	if err := l.sameServer(ctx, d, through); err != nil {
		return err
	}
	lacking, sessions, err := pgpool.PoolerLacks(ctx, address, pgpool.IndexOnly(), pgpool.PlannedOnce())
	if lacking > 0 {
		l.find(d.where, fmt.Sprintf("the role lacks %d settings of its sessions", lacking),
			"start a function by the pooler: it sets them (ALTER ROLE)")
	}
	for _, name := range sessions {
		l.find(d.where, "sessions of the pooler have another "+name+" than their role",
			"RECONNECT on the console of PgBouncer; let no other program use the same user and database there")
	}
	return err
}

// sameServer compares what only one server has.
func (l *look) sameServer(ctx context.Context, d *database, through *pgx.Conn) error {
	const identity = "SELECT pg_postmaster_start_time(), current_database()"
	var direct, pooled struct {
		at   time.Time
		name string
	}
	if err := d.conn.QueryRow(ctx, identity).Scan(&direct.at, &direct.name); err != nil {
		return err
	}
	if err := through.QueryRow(ctx, identity).Scan(&pooled.at, &pooled.name); err != nil {
		return err
	}
	if !direct.at.Equal(pooled.at) || direct.name != pooled.name {
		l.find(d.where, "the pooler leads to another database than DATABASE_DIRECT_URL",
			"let both lead to the same server and database")
	}
	return nil
}
