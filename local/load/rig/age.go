package rig

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// FillEnded adds copies of a completed job that ended this long ago, with the same ids in the API's and the scheduler's
// database, a hundred in each millisecond.
func (s *Server) FillEnded(ctx context.Context, jobs int, age time.Duration) error {
	begin := time.Now().Add(-age).UnixMilli()
	for database, table := range map[string]string{"jobweaver_api": "jobs", "jobweaver_scheduler": "ended"} {
		err := s.With(ctx, database, func(conn *pgx.Conn) error {
			columns, err := Columns(ctx, conn, table)
			if err != nil {
				return err
			}
			values := slices.Clone(columns)
			for i, column := range columns {
				switch column {
				case "job_id", "trace_id":
					values[i] = `(lpad(to_hex($2 + n / 100), 12, '0') || '7' || substr(md5(n::text), 1, 3) || '8'
						|| substr(md5(n::text), 4, 15))::uuid`
				case "created_at", "updated_at", "started_at", "finished_at":
					values[i] = "to_timestamp(($2 + n / 100) / 1000.0)"
				}
			}
			inserted, err := conn.Exec(ctx, fmt.Sprintf(`INSERT INTO %s (%s) SELECT %s
				FROM (SELECT * FROM %[1]s LIMIT 1) AS job, generate_series(1, $1::bigint) AS n`,
				table, strings.Join(columns, ", "), strings.Join(values, ", ")), jobs, begin)
			if err == nil && inserted.RowsAffected() != int64(jobs) {
				err = fmt.Errorf("%s has no job to copy", table)
			}
			if err == nil {
				_, err = conn.Exec(ctx, "VACUUM ANALYZE "+table)
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("fill %s: %w", database, err)
		}
	}
	return s.Settle(ctx)
}

// Columns returns the columns of a table that are not generated.
func Columns(ctx context.Context, conn *pgx.Conn, table string) ([]string, error) {
	rows, err := conn.Query(ctx, `SELECT column_name FROM information_schema.columns
		WHERE table_schema = current_schema() AND table_name = $1 AND is_generated = 'NEVER'
		ORDER BY ordinal_position`, table)
	if err != nil {
		return nil, fmt.Errorf("list the columns of %s: %w", table, err)
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
