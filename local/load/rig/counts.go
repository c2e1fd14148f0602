package rig

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Counts has the counters of a server that counts statements.
type Counts struct {
	WALBytes     int64
	Transactions int64 // transactions committed in JobWeaver's databases
	Statements   map[Statement]Called
}

// Statement is one text in one database.
type Statement struct{ Database, Text string }

// Called is how often a statement ran, and its total effects.
type Called struct {
	Calls, Rows int64
	Millis      float64
}

// Count reads the counters, except for those of the tables.
func (s *Server) Count(ctx context.Context) (c Counts, err error) {
	c.Statements = map[Statement]Called{}
	err = s.With(ctx, "postgres", func(conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, "CREATE EXTENSION IF NOT EXISTS pg_stat_statements"); err != nil {
			return fmt.Errorf("count statements: %w", err)
		}
		var err error
		if c.WALBytes, err = walBytes(ctx, conn); err != nil {
			return err
		}
		err = conn.QueryRow(ctx, `SELECT coalesce(sum(xact_commit), 0)::bigint FROM pg_stat_database
			WHERE datname = any ($1)`, Databases()).Scan(&c.Transactions)
		if err != nil {
			return fmt.Errorf("count transactions: %w", err)
		}
		rows, err := conn.Query(ctx, `SELECT d.datname, s.query, sum(s.calls)::bigint, sum(s.rows)::bigint,
				sum(s.total_exec_time)
			FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid
			WHERE d.datname = any ($1) GROUP BY 1, 2`, Databases())
		if err != nil {
			return fmt.Errorf("count statements: %w", err)
		}
		var key Statement
		var called Called
		_, err = pgx.ForEachRow(rows, []any{&key.Database, &key.Text, &called.Calls, &called.Rows, &called.Millis},
			func() error {
				c.Statements[key] = called
				return nil
			})
		return err
	})
	return c, err
}

// WALBytes returns how much the server has written to its log.
func (s *Server) WALBytes(ctx context.Context) (bytes int64, err error) {
	err = s.With(ctx, "postgres", func(conn *pgx.Conn) (err error) {
		bytes, err = walBytes(ctx, conn)
		return err
	})
	return bytes, err
}

func walBytes(ctx context.Context, conn *pgx.Conn) (bytes int64, err error) {
	if err = conn.QueryRow(ctx, "SELECT (pg_current_wal_lsn() - '0/0')::bigint").Scan(&bytes); err != nil {
		return 0, fmt.Errorf("read the end of the log: %w", err)
	}
	return bytes, nil
}

// Minus returns what was counted since before.
func (c Counts) Minus(before Counts) Counts {
	since := Counts{
		WALBytes: c.WALBytes - before.WALBytes, Transactions: c.Transactions - before.Transactions,
		Statements: map[Statement]Called{},
	}
	for key, now := range c.Statements {
		was := before.Statements[key]
		if now.Calls > was.Calls {
			since.Statements[key] = Called{now.Calls - was.Calls, now.Rows - was.Rows, now.Millis - was.Millis}
		}
	}
	return since
}

// Table has the changes to a table since it was created, and its size.
type Table struct {
	Database, Name                        string
	Inserts, Updates, HotUpdates, Deletes int64
	Dead                                  int64 // dead rows that are not vacuumed yet
	Bytes, IndexBytes                     int64
}

// Tables returns all tables of JobWeaver.
func (s *Server) Tables(ctx context.Context) (all []Table, err error) {
	const sql = `SELECT current_database()::text, relname::text, n_tup_ins, n_tup_upd, n_tup_hot_upd, n_tup_del,
			n_dead_tup, pg_table_size(relid), pg_indexes_size(relid)
		FROM pg_stat_user_tables WHERE relname <> 'goose_db_version' ORDER BY relname`
	for _, database := range Databases() {
		err := s.With(ctx, database, func(conn *pgx.Conn) error {
			rows, err := conn.Query(ctx, sql)
			if err != nil {
				return err
			}
			tables, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Table])
			all = append(all, tables...)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("look at the tables of %s: %w", database, err)
		}
	}
	return all, nil
}
