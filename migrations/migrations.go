// Package migrations holds the schemas of the three databases and updates databases to them.
package migrations

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

//go:embed api/*.sql scheduler/*.sql worker/*.sql roles/*.sql
var files embed.FS

// Set is the schema of one database, as goose migrations, and the rights of its functions.
type Set struct {
	Name      string
	FS        fs.FS
	Functions []string // the functions that use it, each with a role of its own
	Grants    string   // SQL that gives the roles their rights
}

// The schemas.
var (
	API       = set("api", "gateway", "projection", "bulk", "cron", "notify")
	Scheduler = set("scheduler", "ingest", "dispatch", "outcome", "command", "watchdog", "retention")
	Worker    = set("worker", "runjob", "pull")
)

func set(name string, functions ...string) Set {
	dir, err := fs.Sub(files, name)
	if err != nil {
		panic(err) // the name is no path
	}
	grants, err := files.ReadFile("roles/" + name + ".sql")
	if err != nil {
		panic(err) // each has one
	}
	return Set{Name: name, FS: dir, Functions: functions, Grants: string(grants)}
}

// Database returns the database's name on a server that holds all three.
func (s Set) Database() string { return "jobweaver_" + s.Name }

const (
	// lockPatience is how long a migration waits for a table that a session uses. The statements of all functions wait
	// behind it meanwhile, and fail after 3 s. A vacuum in the way gives up after a second.
	lockPatience = 2 * time.Second
	// lockPause is how long the functions then have the table, before the migration tries again.
	lockPause = 5 * time.Second
)

// Up applies the migrations of set that the database at url lacks. Of concurrent processes one applies them and the
// others wait. As long as another session, such as that of a dump, uses a table that a migration changes, Up tries
// again and again, until ctx ends; also after a deadlock with a function that uses tables in another order.
func Up(ctx context.Context, url string, set Set) error {
	for logged := false; ; {
		done, err := upSome(ctx, url, set)
		if pgpool.NotLocked(err) {
			if !logged {
				logged = true
				telemetry.Logger(ctx).WarnContext(ctx, "waiting for sessions that use a table which a migration changes",
					"database", set.Database(), "error", err)
			}
			select {
			case <-time.After(lockPause):
				continue
			case <-ctx.Done():
			}
		}
		if done || err != nil {
			return err
		}
	}
}

// upSome applies the next migrations, up to one that is a transaction while those before it are not, or the other way
// round. It reports whether there are no others.
func upSome(ctx context.Context, url string, set Set) (done bool, err error) {
	current, newest, err := Versions(ctx, url, set)
	if err != nil || current >= newest {
		return true, err
	}
	last, isTx, err := nextAlike(set, current)
	if err != nil {
		return false, fmt.Errorf("read migrations of %s database: %w", set.Name, err)
	}
	cfg, err := pgpool.ReadAddress(url)
	if err != nil {
		return false, fmt.Errorf("migrate %s database: %w", set.Name, err)
	}
	if isTx { // what builds an index concurrently waits long, and stops no other session
		cfg.RuntimeParams["lock_timeout"] = strconv.FormatInt(lockPatience.Milliseconds(), 10)
	}
	db := stdlib.OpenDB(*cfg)
	defer func() { _ = db.Close() }()
	provider, err := provider(db, set)
	if err == nil {
		_, err = provider.UpTo(ctx, last)
	}
	if err != nil {
		return false, fmt.Errorf("migrate %s database: %w", set.Name, err)
	}
	return last == newest, nil
}

// nextAlike returns the last of the migrations after a version that all are transactions, or all are not.
func nextAlike(set Set, after int64) (last int64, isTx bool, err error) {
	names, err := fs.Glob(set.FS, "*.sql") // sorted
	for _, name := range names {
		version, errName := goose.NumericComponent(name)
		text, errFile := fs.ReadFile(set.FS, name)
		if err := errors.Join(errName, errFile); err != nil {
			return 0, false, err
		}
		if version <= after {
			continue
		}
		tx := !strings.HasPrefix(string(text), "-- +goose NO TRANSACTION")
		if last > 0 && tx != isTx {
			break
		}
		last, isTx = version, tx
	}
	return last, isTx, err
}

// Versions returns the newest migration of the database at url, and the newest of set. A database that a newer
// version has migrated is ahead of set: functions of this version work on it.
func Versions(ctx context.Context, url string, set Set) (database, own int64, err error) {
	cfg, err := pgpool.ReadAddress(url)
	if err != nil {
		return 0, 0, fmt.Errorf("read version of %s database: %w", set.Name, err)
	}
	db := stdlib.OpenDB(*cfg)
	defer func() { _ = db.Close() }()
	provider, err := provider(db, set)
	if err != nil {
		return 0, 0, fmt.Errorf("read version of %s database: %w", set.Name, err)
	}
	if database, own, err = provider.GetVersions(ctx); err != nil {
		return 0, 0, fmt.Errorf("read version of %s database: %w", set.Name, err)
	}
	return database, own, nil
}

func provider(db *sql.DB, set Set) (*goose.Provider, error) {
	// Asks once a second for five minutes.
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300))
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(goose.DialectPostgres, db, set.FS, goose.WithSessionLocker(locker))
}
