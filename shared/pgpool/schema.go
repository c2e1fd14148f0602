package pgpool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// schemaPatience is how long AwaitSchema waits for migrations that are under way.
const schemaPatience = 20 * time.Second

// ownTables names, for each of the three databases, a table of its first migrations that the other two never have.
var ownTables = map[string]string{
	"jobweaver_api": "attempt_logs", "jobweaver_scheduler": "dispatch_state", "jobweaver_worker": "execution_attempts",
}

// AwaitSchema waits until the database has newest: the relation, table.column or function() that the newest migration
// that the caller needs has made. database is the schema that it should have: jobweaver_api, jobweaver_scheduler or
// jobweaver_worker. It looks for newest in the catalog, since a function's role may not read the table of migrations,
// and a newer schema is good, too. It fails at once if the database has the schema of another of the three.
func AwaitSchema(ctx context.Context, pool *pgxpool.Pool, database, newest string) error {
	return awaitSchema(ctx, pool, database, newest, schemaPatience)
}

func awaitSchema(ctx context.Context, pool *pgxpool.Pool, database, newest string, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var last error
	for logged := false; ; {
		there, err := isMigrated(ctx, pool, database, newest)
		if there {
			return nil
		}
		if ctx.Err() == nil {
			last = err
		}
		if err != nil && ctx.Err() == nil && !IsUnavailable(err) {
			return err
		}
		if !logged {
			logged = true
			telemetry.Logger(ctx).WarnContext(ctx, "waiting for the migrations of this version",
				"lacks", newest, "error", err)
		}
		select {
		case <-ctx.Done():
			if last != nil || errors.Is(ctx.Err(), context.Canceled) {
				return fmt.Errorf("look for %s in the schema: %w", newest, errors.Join(last, ctx.Err()))
			}
			return fmt.Errorf("the schema %s lacks %s, which this version needs: run jobweaver migrate first",
				cmp.Or(SchemaOf(pool), public), newest)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// isMigrated also looks for the database's own table, since the other two may have something with the name newest.
func isMigrated(ctx context.Context, pool *pgxpool.Pool, database, newest string) (bool, error) {
	for _, thing := range []string{ownTables[database], newest} {
		if there, err := HasSchema(ctx, pool, thing); err != nil || !there {
			return false, errors.Join(err, checkDatabase(ctx, pool, database))
		}
	}
	return true, nil
}

// checkDatabase returns an error that names both schemas if the database has another schema than wanted.
func checkDatabase(ctx context.Context, pool *pgxpool.Pool, wanted string) error {
	for other, table := range ownTables {
		if other == wanted {
			continue
		}
		if there, err := HasSchema(ctx, pool, table); err != nil || !there {
			continue // the caller retries
		}
		return fmt.Errorf("DATABASE_URL: the database %q has the schema of %s, and %s is needed",
			cmp.Or(SchemaOf(pool), pool.Config().ConnConfig.Database), other, wanted)
	}
	return nil
}

// HasSchema reports whether the database has a relation, a table.column, a table.constraint, or a function(). db is a
// pool or a connection.
func HasSchema(ctx context.Context, db interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}, thing string,
) (there bool, err error) {
	relation, column, _ := strings.Cut(thing, ".")
	err = db.QueryRow(ctx, `
		SELECT EXISTS (
			SELECT FROM pg_attribute
			WHERE attrelid = named.relation AND $2::text IN ('', attname::text) AND NOT attisdropped
			UNION ALL
			SELECT FROM pg_constraint WHERE conrelid = named.relation AND conname = $2
			UNION ALL
			SELECT FROM pg_proc
			WHERE pronamespace = current_schema()::regnamespace AND proname || '()' = $3
		) FROM to_regclass(quote_ident(current_schema()) || '.' || quote_ident($1)) AS named(relation)`,
		relation, column, thing).Scan(&there)
	if err != nil {
		return false, fmt.Errorf("look for %s: %w", thing, err)
	}
	return there, nil
}

// AwaitServer waits until a server answers, for at most patience. It returns at once if waiting cannot help.
func AwaitServer(ctx context.Context, url string, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for logged := false; ; {
		conn, err := Connect(ctx, url)
		if err == nil {
			return conn.Close(ctx)
		}
		if !MayPass(err) {
			return fmt.Errorf("reach database: %w", err)
		}
		if !logged {
			logged = true
			telemetry.Logger(ctx).WarnContext(ctx, "waiting for the database", "patience", patience.String(), "error", err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("reach database within %s: %w", patience, err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}
