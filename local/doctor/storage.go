package doctor

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/tlsfiles"
)

func disk(ctx context.Context, l *look) {
	l.each(false, func(d *database) error {
		var bytes int64
		err := d.conn.QueryRow(ctx, "SELECT pg_database_size(current_database())").Scan(&bytes)
		if err == nil {
			l.fact("%s has %.1f GB", d.where, float64(bytes)/gigabyte)
		}
		return err
	})
	l.each(true, func(d *database) error {
		if err := l.slots(ctx, d); err != nil {
			return err
		}
		return l.free(ctx, d)
	})
}

// slots finds replication slots that keep WAL back: without max_slot_wal_keep_size they fill the disk.
func (l *look) slots(ctx context.Context, d *database) error {
	rows, err := texts(ctx, d.conn, `
		SELECT format('replication slot %s %s', slot_name, CASE
			WHEN wal_status IN ('unreserved', 'lost') THEN 'has lost its WAL: its standby or backup has to begin anew'
			ELSE format('keeps %s of WAL back%s', pg_size_pretty(kept),
				CASE WHEN active THEN '' ELSE ', and nothing reads it' END) END)
		FROM pg_replication_slots, LATERAL (SELECT CASE WHEN pg_is_in_recovery() THEN 0
			ELSE pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn) END AS kept) AS held
		WHERE wal_status IN ('unreserved', 'lost') OR kept > $1`, l.limits.kept)
	for _, what := range rows {
		l.find(d.where, what, "start what reads it, or SELECT pg_drop_replication_slot(…); set max_slot_wal_keep_size")
	}
	return err
}

// free looks at the disk of a server on this machine.
func (l *look) free(ctx context.Context, d *database) error {
	var dir string
	err := d.conn.QueryRow(ctx, `SELECT CASE WHEN pg_has_role(current_user, 'pg_read_all_settings', 'MEMBER')
		THEN current_setting('data_directory') ELSE '' END`).Scan(&dir)
	if err != nil {
		return err
	}
	for _, place := range pgpool.Places(d.Address.Reveal()) {
		if host, _, err := net.SplitHostPort(place); err != nil || !tlsfiles.IsLoopback(host) {
			dir = "" // the server is on another machine
		}
	}
	if dir == "" {
		l.unseen("%s: the free space of its disk, which its machine knows (alert on node_filesystem_avail_bytes)", d.where)
		return nil
	}
	free, size, err := l.limits.statfs(dir)
	if err != nil {
		l.unseen("%s: the free space of %s: %v", d.where, dir, err)
		return nil
	}
	l.fact("%s: %.1f of %.1f GB are free", dir, float64(free)/gigabyte, float64(size)/gigabyte)
	if free*100 < size*l.limits.free {
		l.find(d.where, fmt.Sprintf("%d %% of the disk of %s is free", free*100/max(1, size), dir),
			"enlarge it, or shorten RETAIN_COMPLETED (docs/operations.md#sizing)")
	}
	return nil
}

func vacuum(ctx context.Context, l *look) {
	l.each(true, func(d *database) error {
		long, err := texts(ctx, d.conn, `
			SELECT format('a transaction of %s on %s is open for %s (pid %s)', coalesce(usename, 'another user'), datname,
				date_trunc('second', clock_timestamp() - xact_start), pid)
			FROM pg_stat_activity WHERE xact_start < clock_timestamp() - $1::interval AND backend_type = 'client backend'
			UNION ALL
			SELECT format('a prepared transaction of %s on %s is open since %s (%s)', owner, database, prepared, gid)
			FROM pg_prepared_xacts WHERE prepared < clock_timestamp() - $1::interval`, l.limits.open)
		for _, what := range long {
			l.find(d.where, what, "end it: SELECT pg_terminate_backend(pid), or ROLLBACK PREPARED; dead rows stay until then")
		}
		if err != nil {
			return err
		}
		old, err := texts(ctx, d.conn, "SELECT datname FROM pg_database WHERE age(datfrozenxid) > $1", l.limits.age)
		for _, name := range old {
			l.find(name, "its oldest transaction id is very old: PostgreSQL would stop all writes in the end",
				"VACUUM (FREEZE) there, and end what holds autovacuum back")
		}
		if err == nil {
			l.unseenActivity(ctx, d)
		}
		return err
	})
	l.each(false, func(d *database) error {
		late, err := texts(ctx, d.conn, `
			SELECT format('%s has %s dead rows beside %s, last cleaned %s', relname, n_dead_tup, n_live_tup,
				coalesce(date_trunc('second', greatest(last_autovacuum, last_vacuum))::text, 'never'))
			FROM pg_stat_user_tables WHERE n_dead_tup > greatest($1, n_live_tup)`, l.limits.dead)
		for _, what := range late {
			l.find(d.where, what,
				"VACUUM that table; look for open transactions, and for autovacuum_max_workers and its cost limit")
		}
		return err
	})
}

// unseenActivity notes that a user without pg_read_all_stats does not see when transactions of others began.
func (l *look) unseenActivity(ctx context.Context, d *database) {
	var sees bool
	err := d.conn.QueryRow(ctx, "SELECT pg_has_role(current_user, 'pg_read_all_stats', 'MEMBER')").Scan(&sees)
	if err == nil && !sees {
		l.unseen("%s: transactions of other users, without the rights of pg_monitor", d.where)
	}
}

func backup(ctx context.Context, l *look) {
	l.each(true, func(d *database) error {
		var mode string
		var failing bool
		var archived *time.Time
		err := d.conn.QueryRow(ctx, `SELECT current_setting('archive_mode'), last_archived_time,
			coalesce(last_failed_time > coalesce(last_archived_time, '-infinity'), false) FROM pg_stat_archiver`).
			Scan(&mode, &archived, &failing)
		switch {
		case err != nil:
			return err
		case failing:
			l.find(d.where, "archiving the log fails: a restore ends at "+since(archived)+", and the disk of the log fills",
				"repair archive_command; its error is in PostgreSQL's log")
		case mode == "off":
			l.unseen("%s: archive_mode is off; whether anything else backs the server up (docs/operations.md#backup)", d.where)
		default:
			l.fact("%s: the log is archived, last at %s", d.where, since(archived))
		}
		return nil
	})
}

func since(at *time.Time) string {
	if at == nil {
		return "no moment"
	}
	return at.UTC().Format(time.RFC3339)
}
