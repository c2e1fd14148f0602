package afterrestore_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// dump has the contents of a database like pg_dump --data-only: each table and sequence, all of one moment.
type dump struct {
	tables    map[string][]byte // by table with its columns
	sequences map[string]int64
}

func takeDump(ctx context.Context, url string) (d dump, err error) {
	d = dump{tables: map[string][]byte{}, sequences: map[string]int64{}}
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return d, err
	}
	defer func() { _ = conn.Close(ctx) }()
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return d, err
	}
	tables, err := listOf(ctx, tx, `
		select format('%I (%s)', table_name, string_agg(format('%I', column_name), ', ' order by ordinal_position))
		from information_schema.columns join information_schema.tables using (table_schema, table_name)
		where table_schema = 'public' and table_type = 'BASE TABLE' and is_generated = 'NEVER'
			and table_name <> 'goose_db_version'
		group by table_name`)
	if err != nil {
		return d, err
	}
	for _, table := range tables {
		var rows bytes.Buffer
		if _, err := conn.PgConn().CopyTo(ctx, &rows, "copy "+table+" to stdout"); err != nil {
			return d, err
		}
		d.tables[table] = rows.Bytes()
	}
	sequences, err := listOf(ctx, tx, `
		select format('%s %s', sequencename, last_value) from pg_sequences where last_value is not null`)
	for _, s := range sequences {
		var name string
		var last int64
		if _, err := fmt.Sscan(s, &name, &last); err != nil {
			return d, err
		}
		d.sequences[name] = last
	}
	return d, err
}

func listOf(ctx context.Context, q interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}, sql string) ([]string, error) {
	rows, err := q.Query(ctx, sql)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// restore loads a dump that is an hour old into a database that was just migrated.
func (d dump) restore(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	// Like pg_restore --disable-triggers: triggers and foreign keys would see incomplete data.
	if _, err := conn.Exec(ctx, "set session_replication_role = replica"); err != nil {
		return err
	}
	for table, rows := range d.tables {
		name, _, _ := strings.Cut(table, " ")
		if _, err := conn.Exec(ctx, "delete from "+name); err != nil {
			return err
		}
		if _, err := conn.PgConn().CopyFrom(ctx, bytes.NewReader(rows), "copy "+table+" from stdin"); err != nil {
			return fmt.Errorf("restore %s: %w", name, err)
		}
	}
	for name, last := range d.sequences {
		if _, err := conn.Exec(ctx, "select setval($1, $2)", name, last); err != nil {
			return err
		}
	}
	instants, err := listOf(ctx, conn, `
		select format('update %I set %s', table_name,
			string_agg(format('%1$I = %1$I - interval ''1 hour''', column_name), ', '))
		from information_schema.columns join information_schema.tables using (table_schema, table_name)
		where table_schema = 'public' and table_type = 'BASE TABLE' and data_type = 'timestamp with time zone'
			and table_name <> 'goose_db_version'
		group by table_name`)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, strings.Join(instants, ";"))
	return err
}
