// Package migrations holds the schemas of the three databases and updates databases to them.
package migrations

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/jobweaver/jobweaver/shared/installation"
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

	installation installation.Name
	schema       string // empty: public, in a database of its own
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

// Database returns the database's name on a server that holds all three, or that of its schema in one database.
func (s Set) Database() string { return s.installation.InPostgres("jobweaver_" + s.Name) }

const (
	// lockPatience is how long a migration waits for a table that a session uses. The statements of all functions wait
	// behind it meanwhile, and fail after 3 s. A vacuum in the way gives up after a second.
	lockPatience = 2 * time.Second
	// lockPause is how long the functions then have the table, before the migration tries again.
	lockPause = 5 * time.Second
)

// Up applies the migrations of set that the database at url lacks. Of concurrent processes one applies them and the
// others wait. As long as another session, such as that of a dump, uses a table that a migration changes, Up tries
// again and again, until ctx ends; also after a deadlock with a function that uses tables in another order. It calls
// begins, which may be nil, with the name of each migration before it applies it, since one may take long.
func Up(ctx context.Context, url string, set Set, begins func(migration string)) error {
	for begun := ""; ; {
		next, err := following(ctx, url, set)
		if err != nil || next == nil {
			return err
		}
		if begins != nil && begun != next.name {
			begins(next.name)
		}
		err = next.apply(ctx, url, set)
		if !pgpool.NotLocked(err) {
			if err != nil {
				return err
			}
			continue
		}
		if begun != next.name {
			telemetry.Logger(ctx).WarnContext(ctx, "waiting for sessions that use a table which a migration changes",
				"database", set.Database(), "error", err)
		}
		begun = next.name
		select {
		case <-time.After(lockPause):
		case <-ctx.Done():
			return err
		}
	}
}

// migration is one file of a set.
type migration struct {
	name    string
	version int64
	isTx    bool
}

// apply applies a migration, unless another process has.
func (m *migration) apply(ctx context.Context, url string, set Set) error {
	cfg, err := pgpool.ReadAddress(url)
	if err != nil {
		return fmt.Errorf("migrate %s database: %w", set.Name, err)
	}
	if m.isTx { // what builds an index concurrently waits long, and stops no other session
		cfg.RuntimeParams["lock_timeout"] = strconv.FormatInt(lockPatience.Milliseconds(), 10)
	}
	db := stdlib.OpenDB(*cfg, stdlib.OptionBeforeConnect(pgpool.Renewal(url)))
	defer func() { _ = db.Close() }()
	provider, err := provider(db, set)
	if err == nil {
		_, err = provider.UpTo(ctx, m.version)
	}
	if err != nil {
		return fmt.Errorf("migrate %s database: %w", set.Name, err)
	}
	return nil
}

// following returns the first migration of set that the database lacks; nil: it lacks none.
func following(ctx context.Context, url string, set Set) (*migration, error) {
	current, newest, err := Versions(ctx, url, set)
	if err != nil || current >= newest {
		return nil, err
	}
	names, err := fs.Glob(set.FS, "*.sql") // sorted
	for _, name := range names {
		version, errName := goose.NumericComponent(name)
		text, errFile := fs.ReadFile(set.FS, name)
		if err := errors.Join(errName, errFile); err != nil {
			return nil, fmt.Errorf("read migrations of %s database: %w", set.Name, err)
		}
		if version > current {
			isTx := !strings.HasPrefix(string(text), "-- +goose NO TRANSACTION")
			return &migration{name: name, version: version, isTx: isTx}, nil
		}
	}
	return nil, err
}

// Newest returns the number of the set's newest migration.
func (s Set) Newest() (newest int64, err error) {
	names, err := fs.Glob(s.FS, "*.sql")
	for _, name := range names {
		version, err := goose.NumericComponent(name)
		if err != nil {
			return 0, fmt.Errorf("read migrations of %s database: %w", s.Name, err)
		}
		newest = max(newest, version)
	}
	return newest, err
}

// Versions returns the newest migration of the database at url, and the newest of set. A database that a newer
// version has migrated is ahead of set: functions of this version work on it.
func Versions(ctx context.Context, url string, set Set) (database, own int64, err error) {
	cfg, err := pgpool.ReadAddress(url)
	if err != nil {
		return 0, 0, fmt.Errorf("read version of %s database: %w", set.Name, err)
	}
	db := stdlib.OpenDB(*cfg, stdlib.OptionBeforeConnect(pgpool.Renewal(url)))
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

// lock is the advisory lock of those who migrate: that of goose, or another one for each schema of a database.
func (s Set) lock() int64 { return lock.DefaultLockID + int64(crc32.ChecksumIEEE([]byte(s.schema))) }

func provider(db *sql.DB, set Set) (*goose.Provider, error) {
	// Asks once a second for five minutes.
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300), lock.WithLockID(set.lock()))
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(goose.DialectPostgres, db, set.FS, goose.WithSessionLocker(locker))
}
